//! No residue: no mount, loop device, process or file is left, whichever process is killed and at
//! any time.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{Agent, LIMIT, Place, can_run};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Kill times in milliseconds, from before the first process starts until well into the workload.
const INSTANTS_MS: [u64; 14] = [0, 1, 2, 4, 7, 11, 16, 25, 40, 60, 90, 140, 250, 500];

/// Plan of a cell that keeps all parts busy until it is killed.
fn busy_plan(place: &Place) -> Value {
    let mut plan = place
        .plan("while :; do head -c 2000000 /dev/zero > f; sync f; (sleep 60 &) ; sleep 0.01; done");
    plan["steps"][0]["probe_interval_ms"] = json!(1);
    plan
}

#[test]
fn the_agent_is_killed_at_many_instants() {
    if !can_run("the_agent_is_killed_at_many_instants") {
        return;
    }
    let place = Place::new();
    for wait in INSTANTS_MS {
        let mut agent = place.start(&busy_plan(&place));
        std::thread::sleep(Duration::from_millis(wait));
        agent.child.kill().unwrap();
        agent.child.wait().unwrap();
        place.assert_clean(&format!("agent killed after {wait} ms"));
    }
}

#[test]
fn init_is_killed_at_many_instants() {
    if !can_run("init_is_killed_at_many_instants") {
        return;
    }
    let place = Place::new();
    for wait in INSTANTS_MS {
        let mut agent = place.start(&busy_plan(&place));
        let [init] = agent.first_children(agent.pid());
        std::thread::sleep(Duration::from_millis(wait));
        Agent::kill(init, Signal::KILL);
        let start = Instant::now();
        let events = agent.finish();
        events.assert_failed("internal");
        assert!(start.elapsed() < LIMIT);
        // The agent ends only when all processes have ended.
        place.assert_ended(&format!("init killed after {wait} ms"));
    }
}

#[test]
fn the_workload_is_killed() {
    if !can_run("the_workload_is_killed") {
        return;
    }
    let place = Place::new();
    let mut agent = place.start(&busy_plan(&place));
    agent.read_until("interval", "mount");
    let [init] = agent.first_children(agent.pid());
    let [shell] = agent.first_children(init);
    std::thread::sleep(Duration::from_millis(100));
    Agent::kill(shell, Signal::KILL);
    let events = agent.finish();
    assert_eq!(events.assert_failed("workload")["signal"], 9);
    place.assert_clean("workload killed");
}

#[test]
fn asked_to_end_the_agent_ends_everything_first() {
    if !can_run("asked_to_end_the_agent_ends_everything_first") {
        return;
    }
    let place = Place::new();
    for signal in [Signal::TERM, Signal::INT] {
        let mut agent = place.start(&busy_plan(&place));
        agent.read_until("interval", "mount");
        Agent::kill(agent.pid(), signal);
        let start = Instant::now();
        agent.finish().assert_failed("interrupted");
        assert!(start.elapsed() < LIMIT);
        place.assert_ended("asked to end");
    }
}

#[test]
fn without_a_reader_the_agent_ends() {
    if !can_run("without_a_reader_the_agent_ends") {
        return;
    }
    let place = Place::new();
    let input = place.path("in");
    std::fs::create_dir(&input).unwrap();
    let mut plan = place.plan("until [ -e {input}/unread ]; do sleep 0.02; done");
    plan["input"] = json!(input);
    let mut agent = place.start(&plan);
    agent.read_until("interval", "mount");
    drop(agent.child.stdout.take());
    std::fs::write(input.join("unread"), "").unwrap();
    assert_eq!(agent.child.wait().unwrap().code(), Some(1));
    place.assert_ended("without a reader");
}
