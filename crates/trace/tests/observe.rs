//! Counts and times against what the test itself did: it needs root and syscall tracepoints.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use fscost_trace::{Durations, Names, Tracepoints, histogram};
use std::process::Command;
use std::time::{Duration, Instant};

const EXEC: &str = "sched/sched_process_exec";
const GETPPID: &str = "syscalls/sys_enter_getppid";

fn observe(test: &str, name: &str) -> Option<Tracepoints> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: {test}: perf events of tracepoints need root");
        return None;
    }
    Some(Tracepoints::observe(&[name.to_owned()]).unwrap())
}

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[test]
fn what_descendants_pass_is_counted_and_timed_once() {
    let Some(mut tracepoints) = observe("descendants", EXEC) else {
        return;
    };
    let begin_ns = monotonic_ns();
    for _ in 0..3 {
        assert!(
            Command::new("/bin/sh")
                .args(["-c", "/bin/true; /bin/true"])
                .status()
                .unwrap()
                .success()
        );
    }
    let passes = tracepoints.take().unwrap();
    // The shell, one that it starts and waits for, and perhaps itself again for the last.
    assert!((6..=9).contains(&passes.count), "{passes:?}");
    let times_ns: Vec<u64> = passes.each.iter().map(|pass| pass.at_ns).collect();
    assert_eq!(times_ns.len() as u64, passes.count);
    assert!(times_ns.is_sorted());
    assert!(begin_ns <= times_ns[0] && *times_ns.last().unwrap() <= monotonic_ns());
    assert_eq!(tracepoints.take().unwrap().count, 0);
}

#[test]
fn times_survive_many_turns_of_the_ring_and_what_has_no_room_is_only_counted() {
    let Some(mut tracepoints) = observe("ring", GETPPID) else {
        return;
    };
    for turn in 0..10 {
        (0..5000).for_each(|_| {
            let _ = rustix::process::getppid();
        });
        let passes = tracepoints.take().unwrap();
        assert_eq!(
            (passes.count, passes.each.len()),
            (5000, 5000),
            "turn {turn}"
        );
    }
    (0..100_000).for_each(|_| {
        let _ = rustix::process::getppid();
    });
    let passes = tracepoints.take().unwrap();
    assert_eq!(passes.count, 100_000);
    let cpus = std::thread::available_parallelism().unwrap().get();
    assert!(
        (14_000..=26_300 * cpus).contains(&passes.each.len()),
        "{}",
        passes.each.len()
    );
}

#[test]
fn the_names_of_descendants_are_those_of_their_time() {
    let Some(mut tracepoints) = observe("names", "syscalls/sys_enter_getppid") else {
        return;
    };
    let mut names = Names::follow().unwrap();
    // A child inherits its parent's name, and one name follows another.
    let script = "import os; name = lambda text: open('/proc/self/comm', 'w').write(text)\n\
        name('first'); os.getppid()\n\
        if os.fork(): os.wait(); name('second'); os.getppid()\n\
        else: os.getppid()";
    let status = Command::new("python3").args(["-c", script]).status();
    assert!(status.unwrap().success());
    let passes = tracepoints.take().unwrap();
    let found = names.at(passes.each.iter().map(|pass| (pass.at_ns, pass.thread)));
    let found: Vec<_> = found.iter().map(Option::as_deref).collect();
    // `python3` may be a script, whose shell asks too.
    let own = found.len() - 3;
    assert_eq!(found[own..], [Some("first"), Some("first"), Some("second")]);
    let processes: Vec<_> = passes.each[own..].iter().map(|pass| pass.process).collect();
    assert_eq!(processes[0], processes[2]);
    assert_ne!(processes[0], processes[1]);
}

#[test]
fn calls_of_descendants_take_as_long_as_they_take() {
    if observe("durations", EXEC).is_none() {
        return;
    }
    let name = "clock_nanosleep";
    let (begin, end) = (
        format!("syscalls/sys_enter_{name}"),
        format!("syscalls/sys_exit_{name}"),
    );
    let mut sleeps = Durations::observe(&[(&begin, &end)]).unwrap();
    let begun = Instant::now();
    let shell = "sleep 0.3 & sleep 0.1; sleep 0.1; wait";
    assert!(
        Command::new("/bin/sh")
            .args(["-c", shell])
            .status()
            .unwrap()
            .success()
    );
    let whole = begun.elapsed();
    let found = histogram(&sleeps.take().unwrap());
    assert_eq!(
        found.iter().map(|(_, count)| count).sum::<u64>(),
        3,
        "{found:?}"
    );
    let all: Vec<_> = found
        .iter()
        .flat_map(|&(ns, count)| (0..count).map(move |_| Duration::from_nanos(ns)))
        .collect();
    // A rounded duration may be 0.4 % too short.
    for (slept, asked_ms) in all.iter().zip([99, 99, 298]) {
        assert!(
            *slept >= Duration::from_millis(asked_ms) && *slept <= whole,
            "{all:?}"
        );
    }
    assert_eq!(sleeps.take().unwrap(), []);
}

#[test]
fn where_a_ring_is_full_the_calls_before_are_known() {
    if observe("full ring", EXEC).is_none() {
        return;
    }
    let call = ("syscalls/sys_enter_getppid", "syscalls/sys_exit_getppid");
    let mut calls = Durations::observe(&[call]).unwrap();
    for calls_made in [1000, 100_000, 1000] {
        (0..calls_made).for_each(|_| {
            let _ = rustix::process::getppid();
        });
        let count = calls.take().unwrap().len();
        if calls_made == 1000 {
            assert_eq!(count, 1000);
        } else {
            assert!((10_000..100_000).contains(&count), "{count}");
        }
    }
}
