//! Whole cells on ext4 over a plain file: measured values and failure modes.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{Events, LIMIT, Place, can_run};
use serde_json::{Value, json};
use std::time::Instant;

fn number(value: &Value) -> u64 {
    let number = value.as_u64();
    number.unwrap_or_else(|| panic!("not a number: {value}"))
}

/// A plan with every kind of setup, and with steps that write, read and leave an orphan.
fn plan_with_everything(place: &Place) -> Value {
    std::fs::create_dir(place.path("in")).unwrap();
    std::fs::write(place.path("in/seed"), vec![7; 300_000]).unwrap();
    let mut plan = place.plan("true");
    plan["input"] = json!(place.path("in"));
    plan["mount"]["options"] = json!("noatime,lazytime,commit=17");
    plan["after_mount"] = json!([["chattr", "+A", "{dir}"]]);
    plan["inspect"] = json!([{"name": "superblock", "command": ["dumpe2fs", "-h", "{disk.main}"]}, {"name": "none", "command": ["/no/such"]}]);
    plan["sync_tracepoints"] = json!(["ext4/ext4_sync_file_enter"]);
    let mut steps = vec![
        place.step(
            "prepare",
            "cp {input}/seed seed && ! touch {input}/x 2>/dev/null && lsattr -d . | grep -q A",
        ),
        // The root directory changes twice with each operation of the probe. Then a grandchild
        // outlives its parents: reaped by init, and counted.
        place.step(
            "write",
            "cmp seed {input}/seed; head -c 1000000 /dev/zero > f; \
            for change in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \
            touch -r . {scratch}/seen; until [ . -nt {scratch}/seen ]; do sleep 0.002; done; done; \
            (sleep 0.2; head -c 500000 /dev/zero > g) & exit 0",
        ),
        place.step("read", "cat seed > /dev/null"),
    ];
    steps[0]["measured"] = json!(false);
    steps[1]["probe_interval_ms"] = json!(10);
    steps[0]["settle"] = json!("remount");
    steps[2]["drop_caches"] = json!(true);
    plan["steps"] = json!(steps);
    plan
}

#[test]
fn intervals_tell_what_was_done() {
    if !can_run("intervals_tell_what_was_done") {
        return;
    }
    let place = Place::new();
    let events = place.run(&plan_with_everything(&place));
    events.assert_done();

    let names: Vec<&Value> = events
        .of("interval")
        .into_iter()
        .map(|interval| &interval["name"])
        .collect();
    assert_eq!(names, ["mkfs", "mount", "prepare", "write", "read"]);
    assert_setup_is_told(&events);
    assert_writes_are_measured(&events);
    assert_reads_are_measured(&events);
    let log = place.log();
    for name in ["mkfs", "mount", "superblock", "write"] {
        assert!(log.contains(&format!("=== {name}\n")), "{log}");
    }
    place.assert_clean("after a good cell");
}

fn assert_setup_is_told(events: &Events) {
    assert!(
        events.one("attached")["device"]
            .as_str()
            .unwrap()
            .starts_with("/dev/loop")
    );
    assert_eq!(events.one("attached")["queue"]["logical_block_size"], 512);
    let mounted = events.one("mounted");
    assert_eq!(mounted["type"], "ext4");
    assert!(
        mounted["options"].as_str().unwrap().contains("noatime"),
        "{mounted}"
    );
    let super_options = mounted["super_options"].as_str().unwrap();
    assert!(
        super_options.contains("lazytime") && super_options.contains("commit=17"),
        "{mounted}"
    );
    let inspected = events.of("inspected");
    assert!(
        inspected[0]["output"]
            .as_str()
            .unwrap()
            .contains("Filesystem magic number:  0xEF53")
    );
    assert_eq!(
        (&inspected[0]["status"], &inspected[1]["status"]),
        (&json!(0), &Value::Null)
    );
}

fn assert_writes_are_measured(events: &Events) {
    let calls = |name: &str| number(&events.interval(name)["sync_calls"]);
    let calls = ["mkfs", "prepare", "write", "read"].map(calls);
    assert_eq!(calls, [0, 0, 0, 0]);
    let write = events.interval("write");
    assert_eq!(number(&write["program_write_bytes"]), 1_500_000);
    let written = number(&write["counters"]["main"]["write_bytes"]);
    assert!((1_500_000..3_000_000).contains(&written), "{write}");
    assert!(number(&write["command_ns"]) > 200_000_000);
    assert_eq!(
        number(&write["command_ns"]) + number(&write["settle_ns"]),
        number(&write["wall_ns"])
    );
    assert!(number(&write["counters"]["main"]["flush_requests"]) > 0);
    assert!(
        number(&write["cpu_user_ns"]) + number(&write["cpu_system_ns"]) > 1_000_000,
        "{write}"
    );
    // A container's PID namespace has no numbers for kernel threads.
    let is_seen = std::fs::read("/proc/2/comm").is_ok_and(|name| name == b"kthreadd\n");
    let threads_ns = write["cpu_kernel_threads_ns"].as_u64();
    assert_eq!(threads_ns.is_some_and(|ns| ns > 0), is_seen, "{write}");
    // The step saw 20 changes by the probe, which runs every 10 ms and once at the start.
    let pauses = write["probe"]["pauses_ns"].as_array().unwrap().len() as u64;
    let most = number(&write["command_ns"]) / 10_000_000 + 1;
    assert!((10..=most).contains(&pauses), "{write}");
    assert_eq!(write["cpu_disk_server_ns"], Value::Null);
    let space = |name: &str| number(&events.interval(name)["space_used_bytes"]);
    assert!((1_500_000..1_600_000).contains(&(space("write") - space("prepare"))));
    let part = |name: &str| number(&events.interval("write")[name]);
    let parts = ["overhead", "reserved", "used"].map(|name| part(&format!("space_{name}_bytes")));
    assert!(parts.iter().all(|&bytes| bytes > 0), "{parts:?}");
    assert_eq!(part("space_taken_bytes"), parts.iter().sum::<u64>());
}

fn assert_reads_are_measured(events: &Events) {
    let read = events.interval("read");
    // The cache was dropped; 300,000 bytes come from the disk, once.
    assert!(
        (300_000..500_000).contains(&number(&read["counters"]["main"]["read_bytes"])),
        "{read}"
    );
    assert!(number(&read["program_read_bytes"]) > 300_000);
    assert_eq!(read["measured"], true);
    assert_eq!(events.interval("prepare")["measured"], false);
    assert_eq!(read["probe"], Value::Null);
}

#[test]
fn counters_of_the_intervals_add_up_to_the_device_s() {
    if !can_run("counters_of_the_intervals_add_up_to_the_device_s") {
        return;
    }
    let place = Place::new();
    let mut plan = place.plan("head -c 3000000 /dev/zero > f; sync f; rm f");
    // A real block device: a loop device that the test attaches itself, so that its counters can be
    // read after the cell.
    let attached = std::process::Command::new("losetup")
        .args(["-f", "--show"])
        .arg(place.image())
        .output()
        .unwrap();
    let device = String::from_utf8(attached.stdout)
        .unwrap()
        .trim()
        .to_owned();
    let stat = || {
        let text =
            std::fs::read_to_string(format!("/sys/class/block/{}/stat", &device[5..])).unwrap();
        let fields: Vec<u64> = text
            .split_whitespace()
            .map(|field| field.parse().unwrap())
            .collect();
        (fields[6] * 512, fields[15])
    };
    let before = stat();
    plan["disks"] = json!([{"name": "main", "device": device}]);
    let events = place.run(&plan);
    let after = stat();
    std::process::Command::new("losetup")
        .args(["-d", &device])
        .status()
        .unwrap();
    events.assert_done();
    assert_eq!(events.one("attached")["device"], json!(device));
    let sum = |counter: &str| -> u64 {
        events
            .of("interval")
            .iter()
            .map(|interval| number(&interval["counters"]["main"][counter]))
            .sum()
    };
    assert_eq!(
        (sum("write_bytes"), sum("flush_requests")),
        (after.0 - before.0, after.1 - before.1)
    );
    place.assert_clean("after a cell on a device");
}

#[test]
fn a_refused_mount_has_the_kernel_s_words() {
    if !can_run("a_refused_mount_has_the_kernel_s_words") {
        return;
    }
    let place = Place::new();
    let mut plan = place.plan("true");
    plan["mount"]["options"] = json!("noatime,no_such_option");
    let events = place.run(&plan);
    let failed = events.assert_failed("mount");
    assert_eq!(failed["step"], "mount");
    assert!(
        failed["message"]
            .as_str()
            .unwrap()
            .contains("(ext4: Unknown parameter 'no_such_option')"),
        "{failed}"
    );
    assert!(
        failed["message"]
            .as_str()
            .unwrap()
            .contains("noatime,no_such_option"),
        "{failed}"
    );
    place.assert_clean("after a refused mount");
}

#[test]
fn failing_commands_are_told_with_their_last_words() {
    if !can_run("failing_commands_are_told_with_their_last_words") {
        return;
    }
    let place = Place::new();
    let events = place.run(&place.plan("echo fine; echo the reason >&2; exit 3"));
    let failed = events.assert_failed("workload");
    assert_eq!(
        (&failed["status"], &failed["signal"], &failed["step"]),
        (&json!(3), &Value::Null, &json!("work"))
    );
    assert!(
        failed["message"].as_str().unwrap().contains("the reason"),
        "{failed}"
    );
    assert!(
        !events.events.iter().any(|event| event["name"] == "work"),
        "a failed step has no interval"
    );

    let events = place.run(&place.plan("kill -TERM $$"));
    assert_eq!(events.assert_failed("workload")["signal"], 15);

    let mut plan = place.plan("true");
    plan["mkfs"] = json!([["mkfs.ext4", "-O", "nonsense", "{disk.main}"]]);
    let events = place.run(&plan);
    let failed = events.assert_failed("mkfs");
    assert!(
        failed["message"].as_str().unwrap().contains("nonsense"),
        "{failed}"
    );
    plan["mkfs"] = json!([["mkfs.no-such-type"]]);
    assert!(
        place.run(&plan).assert_failed("mkfs")["message"]
            .as_str()
            .unwrap()
            .contains("mkfs.no-such-type")
    );
    let mut plan = place.plan("true");
    plan["after_mount"] = json!([["false"]]);
    place.run(&plan).assert_failed("mount");
    place.assert_clean("after failing commands");
}

#[test]
fn a_full_disk_is_told_as_such() {
    if !can_run("a_full_disk_is_told_as_such") {
        return;
    }
    let place = Place::new();
    let fill =
        |more: &str| place.run(&place.plan(&format!("head -c 100000000 /dev/zero > f{more}")));
    fill("").assert_failed("disk-full");
    let failed = fill(" 2> /dev/null").assert_failed("disk-full").to_string();
    assert!(failed.contains("raise --size"), "{failed}");
    // Another place is full, or a limit was reached (inotify_add_watch(2)).
    let plan = place.plan("dd if=/dev/zero of=/dev/full bs=1k count=1");
    let failed = place.run(&plan).assert_failed("workload").to_string();
    assert!(failed.contains("of space now"), "{failed}");
    place.assert_clean("after a full disk");
}

#[test]
fn a_step_past_its_time_is_ended() {
    if !can_run("a_step_past_its_time_is_ended") {
        return;
    }
    let place = Place::new();
    let mut plan = place.plan("setsid sh -c 'trap \"\" TERM HUP; sleep 300' & sleep 300");
    plan["steps"][0]["timeout_s"] = json!(1);
    let start = Instant::now();
    let events = place.run(&plan);
    events.assert_failed("timeout");
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    place.assert_clean("after a timeout");
}

#[test]
fn what_a_step_leaves_running_is_named() {
    if !can_run("what_a_step_leaves_running_is_named") {
        return;
    }
    let place = Place::new();
    let events = place.run(&place.plan("setsid sleep 4321 & exit 0"));
    let failed = events.assert_failed("left-running");
    assert!(
        failed["message"].as_str().unwrap().contains("sleep 4321"),
        "{failed}"
    );
    place.assert_clean("after left-running");
}

/// Background programs keep the file system busy: they must be stopped before each unmount, and no
/// step may wait for them.
#[test]
fn a_background_program_runs_from_mount_to_unmount() {
    if !can_run("a_background_program_runs_from_mount_to_unmount") {
        return;
    }
    let place = Place::new();
    let mut plan =
        place.plan("test $(wc -l < {scratch}/begun) = 2 && test $(wc -l < {scratch}/ended) = 1");
    let program = "cd {dir}; trap 'echo >> {scratch}/ended; exit' TERM; echo >> {scratch}/begun; \
        while :; do sleep 0.001; done";
    // A daemon: another parent, another session.
    plan["background"] = json!([["sh", "-c", "setsid sh -c \"$0\" &", program]]);
    plan["after_unmount"] = json!([[
        "sh",
        "-c",
        "! mountpoint -q {dir} && test $(wc -l < {scratch}/ended) = 2"
    ]]);
    let mut first = place.step(
        "first",
        "until test -s {scratch}/begun; do sleep 0.02; done",
    );
    first["settle"] = json!("remount");
    let orphan = "(sleep 0.3; head -c 700000 /dev/zero > f) & until test $(wc -l < \
        {scratch}/begun) = 2; do sleep 0.02; done";
    let last = plan["steps"][0].take();
    plan["steps"] = json!([first, place.step("second", orphan), last]);
    let events = place.run(&plan);
    events.assert_done();
    let second = events.of("interval")[3].clone();
    assert!(
        number(&second["program_write_bytes"]) >= 700_000,
        "the orphan is waited for: {second}"
    );
    place.assert_clean("after a background program");
}

#[test]
fn a_background_program_that_ends_by_itself_fails_the_cell() {
    if !can_run("a_background_program_that_ends_by_itself_fails_the_cell") {
        return;
    }
    let place = Place::new();
    let mut plan = place.plan("sleep 0.2");
    plan["background"] = json!([["true"]]);
    let events = place.run(&plan);
    let failed = events.assert_failed("mount");
    assert!(
        failed["message"]
            .as_str()
            .unwrap()
            .contains("true exited before the unmount"),
        "{failed}"
    );
    place.assert_clean("after a background program that ended");

    let mut plan = place.plan("true");
    plan["after_unmount"] = json!([["sh", "-c", "echo no such array; exit 3"]]);
    let events = place.run(&plan);
    let failed = events.assert_failed("unmount");
    assert!(
        failed["message"]
            .as_str()
            .unwrap()
            .contains("no such array"),
        "{failed}"
    );
    place.assert_clean("after a refused release");
}

#[test]
fn a_second_mount_of_the_file_system_is_noticed() {
    if !can_run("a_second_mount_of_the_file_system_is_noticed") {
        return;
    }
    let place = Place::new();
    let events = place.run(&place.plan("mkdir {scratch}/b && mount --bind . {scratch}/b"));
    let failed = events.assert_failed("unmount");
    assert!(
        failed["message"].as_str().unwrap().contains("still in use"),
        "{failed}"
    );
    place.assert_clean("after a second mount");
    let events = place.run(&place.plan("mkdir m && mount -t tmpfs x m"));
    let failed = events.assert_failed("unmount");
    assert!(
        failed["message"].as_str().unwrap().contains("base/fs/m"),
        "{failed}"
    );
    place.assert_clean("after a mount inside");
}

#[test]
fn what_a_workload_does_to_its_mount_is_named() {
    if !can_run("what_a_workload_does_to_its_mount_is_named") {
        return;
    }
    let place = Place::new();
    for (shell, words) in [
        ("cd /; umount {dir}", "did the workload unmount it?"),
        ("mount -o remount,ro {dir}", "did the workload remount it"),
        ("cd /; mount -t tmpfs x {dir}", "did the workload mount it?"),
    ] {
        let failed = place
            .run(&place.plan(shell))
            .assert_failed("unmount")
            .clone();
        let message = failed["message"].as_str().unwrap();
        assert!(message.contains(words), "{failed}");
        assert_eq!(failed["kernel"].as_array().unwrap().len(), 0, "{failed}");
    }
    place.assert_clean("after its mount was changed");
}

#[test]
fn a_command_that_stops_itself_is_ended() {
    if !can_run("a_command_that_stops_itself_is_ended") {
        return;
    }
    let place = Place::new();
    let failed = place
        .run(&place.plan("kill -STOP $$"))
        .assert_failed("timeout")
        .clone();
    assert!(
        failed["message"].as_str().unwrap().contains("SIGSTOP"),
        "{failed}"
    );
    // Continued again and again, because the first time may come before it has stopped.
    let continued = "touch {scratch}/on; (while [ -e {scratch}/on ]; do sleep 0.3; \
        kill -CONT $$; done) & kill -STOP $$; rm {scratch}/on; wait";
    place.run(&place.plan(continued)).assert_done();
    place.assert_clean("after a stop");
}

#[test]
fn of_many_processes_left_a_few_are_named() {
    if !can_run("of_many_processes_left_a_few_are_named") {
        return;
    }
    let place = Place::new();
    let many = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 4321 & done";
    let failed = place
        .run(&place.plan(many))
        .assert_failed("left-running")
        .clone();
    assert!(
        failed["message"].as_str().unwrap().contains("and 10 more"),
        "{failed}"
    );
}

#[test]
fn a_bad_plan_does_nothing() {
    let place = Place::new();
    let mut plan = place.plan("true");
    plan["parent_pid"] = json!(1);
    assert!(
        place.run(&plan).assert_failed("plan")["message"]
            .as_str()
            .unwrap()
            .contains("parent")
    );
    let mut plan = place.plan("true");
    plan["colour"] = json!("blue");
    assert!(
        place.run(&plan).assert_failed("plan")["message"]
            .as_str()
            .unwrap()
            .contains("colour")
    );
    assert!(!place.path("output.log").exists());
}
