//! Cells on disks that `fscost-disk` serves: conservation, and the outcome when the server dies,
//! hangs or runs out of space.
//!
//! The tests are skipped with a message if `fscost-disk` has not been built: cargo does not build
//! another package's binary for a test.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{Agent, LIMIT, Place, can_run};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const INSTANTS_MS: [u64; 12] = [0, 1, 3, 6, 10, 15, 25, 40, 70, 120, 250, 500];

/// Finds the newest `fscost-disk` beside this build.
fn server(test: &str) -> Option<PathBuf> {
    if !can_run(test) {
        return None;
    }
    let target = Path::new(env!("CARGO_BIN_EXE_fscost-agent"))
        .parent()
        .unwrap()
        .parent()
        .unwrap();
    let candidates = ["release", "debug"].map(|profile| target.join(profile).join("fscost-disk"));
    let age = |path: &PathBuf| path.metadata().and_then(|meta| meta.modified()).ok();
    let found = candidates
        .into_iter()
        .filter(|path| path.exists())
        .max_by_key(age);
    if found.is_none() || !Path::new("/dev/fuse").exists() {
        eprintln!(
            "SKIPPED: {test}: needs fscost-disk (`cargo build -p fscost-device`; found: \
            {found:?}) and /dev/fuse"
        );
        return None;
    }
    found
}

fn disk_size(place: &Place) -> String {
    format!("{}=268435456", place.name())
}

fn served_plan(place: &Place, server: &Path, shell: &str) -> Value {
    let name = place.name();
    // Placeholders and all: the disk has this place's name instead of `main`.
    let text = place
        .plan(shell)
        .to_string()
        .replace("{disk.main}", &format!("{{disk.{name}}}"));
    let mut plan: Value = serde_json::from_str(&text).unwrap();
    let recording = place.path("recording.fsc");
    let _ = std::fs::remove_file(&recording);
    plan["disk_server"] = json!([
        server,
        "serve",
        "--recording",
        recording,
        "--disk",
        disk_size(place)
    ]);
    plan["disks"] = json!([{"name": name}]);
    plan
}

const BUSY: &str = "while :; do head -c 2000000 /dev/zero > f; sync f; sleep 0.01; done";

#[test]
fn kernel_and_recording_agree_to_the_byte() {
    let Some(server) = server("kernel_and_recording_agree_to_the_byte") else {
        return;
    };
    let place = Place::new();
    let mut plan = served_plan(&place, &server, "true");
    plan["steps"] = json!([
        place.step("write", "for i in $(seq 200); do echo $i > f$i; done; head -c 5000000 /dev/urandom > big; sync big"),
        place.step("rewrite", "rm f*; head -c 1000000 /dev/urandom > big"),
    ]);
    plan["steps"][0]["settle"] = json!("remount");
    let events = place.run(&plan);
    events.assert_done();
    let number = |value: &Value, name: &str| {
        value[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name}: {value}"))
    };
    let recorded = &events.one("done")["recording"]["totals"][place.name()];
    let kernel = |name: &str| -> u64 {
        events
            .of("interval")
            .iter()
            .map(|interval| number(&interval["counters"][place.name()], name))
            .sum()
    };
    let changed: u64 = ["write_bytes", "zero_bytes", "punch_bytes", "discard_bytes"]
        .iter()
        .map(|name| number(recorded, name))
        .sum();
    assert_eq!(changed, kernel("write_bytes") + kernel("discard_bytes"));
    assert_eq!(number(recorded, "read_bytes"), kernel("read_bytes"));
    assert!(
        events
            .of("interval")
            .iter()
            .all(|interval| interval["cpu_disk_server_ns"].as_u64().is_some())
    );
    place.assert_clean("after a served cell");
}

#[test]
fn the_server_is_killed_at_many_instants() {
    let Some(server) = server("the_server_is_killed_at_many_instants") else {
        return;
    };
    let place = Place::new();
    for wait in INSTANTS_MS {
        let mut agent = place.start(&served_plan(&place, &server, BUSY));
        let [server] = agent.first_children(agent.pid());
        std::thread::sleep(Duration::from_millis(wait));
        Agent::kill(server, Signal::KILL);
        let start = Instant::now();
        let events = agent.finish();
        let failed = events.assert_failed("disk-server");
        assert!(
            failed["message"].as_str().unwrap().contains("signal 9"),
            "{failed}"
        );
        assert!(
            start.elapsed() < LIMIT,
            "server killed after {wait} ms: took {:?}",
            start.elapsed()
        );
        place.assert_clean(&format!("server killed after {wait} ms"));
    }
}

#[test]
fn the_agent_is_killed_while_a_disk_is_served() {
    let Some(server) = server("the_agent_is_killed_while_a_disk_is_served") else {
        return;
    };
    let place = Place::new();
    for wait in INSTANTS_MS {
        let mut agent = place.start(&served_plan(&place, &server, BUSY));
        std::thread::sleep(Duration::from_millis(wait));
        agent.child.kill().unwrap();
        agent.child.wait().unwrap();
        place.assert_clean(&format!("agent killed after {wait} ms"));
    }
}

#[test]
fn init_is_killed_while_a_disk_is_served() {
    let Some(server) = server("init_is_killed_while_a_disk_is_served") else {
        return;
    };
    let place = Place::new();
    for wait in INSTANTS_MS {
        let mut agent = place.start(&served_plan(&place, &server, BUSY));
        let [_, init] = agent.first_children(agent.pid());
        std::thread::sleep(Duration::from_millis(wait));
        Agent::kill(init, Signal::KILL);
        agent.finish().assert_failed("internal");
        place.assert_clean(&format!("init killed after {wait} ms"));
    }
}

#[test]
fn a_hanging_server_is_a_timeout_and_leaves_nothing() {
    let Some(server) = server("a_hanging_server_is_a_timeout_and_leaves_nothing") else {
        return;
    };
    let place = Place::new();
    let input = place.path("in");
    std::fs::create_dir(&input).unwrap();
    // In the command (a process hangs in the kernel), and after it (init itself does, in syncfs).
    let to_syncfs =
        "head -c 2000000 /dev/zero > f; until [ -e {input}/stopped ]; do sleep 0.02; done";
    for shell in [BUSY, to_syncfs] {
        let mut plan = served_plan(&place, &server, shell);
        plan["steps"][0]["timeout_s"] = json!(5);
        plan["input"] = json!(input);
        let mut agent = place.start(&plan);
        agent.read_until("interval", "mount");
        std::thread::sleep(Duration::from_millis(150));
        let [server] = agent.first_children(agent.pid());
        Agent::kill(server, Signal::STOP);
        std::fs::write(input.join("stopped"), "").unwrap();
        let start = Instant::now();
        agent.finish().assert_failed("timeout");
        assert!(start.elapsed() < 2 * LIMIT, "{:?}", start.elapsed());
        place.assert_clean("hanging server");
        std::fs::remove_file(input.join("stopped")).unwrap();
    }
}

#[test]
fn no_room_for_the_recording_is_told_as_such() {
    let Some(server) = server("no_room_for_the_recording_is_told_as_such") else {
        return;
    };
    let place = Place::new();
    let mut plan = served_plan(&place, &server, "head -c 20000000 /dev/urandom > f; sync f");
    // A small memory file system that is visible to the server only.
    let room = place.path("room");
    std::fs::create_dir(&room).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=6m none {} && exec \"$0\" \"$@\"",
        room.display()
    );
    plan["disk_server"] = json!([
        "unshare",
        "-m",
        "sh",
        "-c",
        script,
        server,
        "serve",
        "--recording",
        room.join("r.fsc"),
        "--disk",
        disk_size(&place)
    ]);
    let events = place.run(&plan);
    events.assert_failed("host-disk-full");
    place.assert_clean("host disk full");
}

#[test]
fn a_server_that_does_not_start_is_told_with_its_words() {
    if !can_run("a_server_that_does_not_start_is_told_with_its_words") {
        return;
    }
    let place = Place::new();
    let mut plan = served_plan(&place, Path::new("/bin/sh"), "true");
    plan["disk_server"] = json!(["/bin/sh", "-c", "echo no fuse here >&2; exit 7"]);
    let events = place.run(&plan);
    let failed = events.assert_failed("disk-server");
    assert!(
        failed["message"].as_str().unwrap().contains("no fuse here"),
        "{failed}"
    );
    assert_eq!(failed["status"], 7);
    plan["disk_server"] = json!(["/no/such/server"]);
    place.run(&plan).assert_failed("disk-server");
    place.assert_clean("no server");
}
