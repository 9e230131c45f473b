//! Counts and times against what the test itself did: it needs root and syscall tracepoints.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use fscost_trace::Tracepoints;
use std::process::Command;

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
    assert_eq!(passes.times_ns.len() as u64, passes.count);
    assert!(passes.times_ns.is_sorted());
    assert!(begin_ns <= passes.times_ns[0] && *passes.times_ns.last().unwrap() <= monotonic_ns());
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
            (passes.count, passes.times_ns.len()),
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
        (16_000..=16_384 * cpus).contains(&passes.times_ns.len()),
        "{}",
        passes.times_ns.len()
    );
}
