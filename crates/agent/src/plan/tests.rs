//! Tests of plans and placeholders.

use super::*;
use serde_json::{Value, json};

fn plan() -> Value {
    json!({
        "version": 1, "parent_pid": 1, "log": "/l", "base": "/mnt",
        "disks": [{"name": "main", "file": "/x"}],
        "mkfs": [["mkfs.ext4", "{disk.main}"]],
        "mount": {"type": "ext4", "device": "{disk.main}", "options": "noatime"},
        "steps": [{"name": "a", "shell": "true", "measured": true, "settle": "sync", "timeout_s": 9}]
    })
}

fn read(value: &Value) -> Result<Plan> {
    parse(value.to_string().as_bytes())
}

fn refused(change: impl FnOnce(&mut Value)) -> String {
    let mut value = plan();
    change(&mut value);
    let error = read(&value).expect_err("the plan should be refused");
    assert_eq!(error.kind, Kind::Plan);
    error.paragraph()
}

#[test]
fn a_small_plan_is_read() {
    let plan = read(&plan()).unwrap();
    assert_eq!(plan.disks[0].logical_block_bytes, 512);
    assert_eq!(plan.steps[0].settle, Settle::Sync);
}

#[test]
fn bad_plans_are_refused_with_a_reason() {
    assert!(refused(|plan| plan["version"] = json!(2)).contains("version 2"));
    assert!(refused(|plan| plan["surprise"] = json!(1)).contains("surprise"));
    assert!(refused(|plan| plan["steps"][0]["settle"] = json!("later")).contains("later"));
    assert!(refused(|plan| plan["mkfs"][0][1] = json!("{disk.other}")).contains("{disk.other}"));
    assert!(
        refused(|plan| plan["steps"][0]["shell"] = json!("cp {input}/x .")).contains("{input}")
    );
    assert!(refused(|plan| plan["steps"][0]["name"] = json!("")).contains("is empty"));
    assert!(refused(|plan| plan["steps"][0]["name"] = json!("end")).contains("is reserved"));
    let repeat = |plan: &mut Value| {
        let step = plan["steps"][0].clone();
        plan["steps"] = json!([step, step]);
    };
    assert!(refused(repeat).contains("is used twice"));
    assert!(refused(|plan| plan["disks"] = json!([{"name": "main"}])).contains("disk_server"));
    assert!(refused(|plan| plan["disks"][0]["name"] = json!("../x")).contains("letters"));
    assert!(refused(|plan| plan["log"] = json!("relative")).contains("absolute"));
    assert_eq!(parse(b"not json").unwrap_err().kind, Kind::Plan);
}

#[test]
fn placeholders_are_filled_and_shell_braces_stay() {
    let mut value = plan();
    value["input"] = json!("/in");
    let plan = read(&value).unwrap();
    let placeholders = Placeholders::new(&plan, vec![("main".into(), "/dev/loop7".into())]);
    let filled = placeholders
        .fill("cp {input}/a {dir}; x() { echo ${dir} ${x:-{scratch}} {a,b}; }; dd of={disk.main} {")
        .unwrap();
    assert_eq!(
        filled,
        "cp /mnt/input/a /mnt/fs; x() { echo ${dir} ${x:-/mnt/scratch} {a,b}; }; dd of=/dev/loop7 {"
    );
}
