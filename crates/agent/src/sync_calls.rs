//! The workload's sync calls: each fsync, fdatasync and O_SYNC write that a file system
//! received from the cell's processes. Also calls of other programs that sync every file system.

use crate::error::{Context, Result};
use fscost_trace::{Durations, OutsideCalls, Tracepoints};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Size limit of the call times in a mark. A mark may have 256 KiB, but a message on a socket is
/// limited to its send buffer, which is 208 KiB by default (socket(7)).
const LONGEST_TEXT_BYTES: usize = 128 * 1024;

/// Counts and times calls.
#[derive(Debug)]
pub struct SyncCalls {
    tracepoints: Tracepoints,
    /// Time of the last mark, CLOCK_MONOTONIC.
    marked_ns: u64,
}

/// The calls of one interval.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// Number of calls.
    pub count: u64,
    /// Call times in microseconds: the first since the interval's mark, the others since the
    /// previous call. Fewer than `count` if there were too many to keep.
    pub after_us: Vec<u64>,
}

impl SyncCalls {
    /// Listens to the tracepoints (`ext4/ext4_sync_file_enter`). Covers processes that this thread
    /// starts from now on.
    pub fn listen(tracepoints: &[String]) -> Result<Self> {
        Ok(Self {
            tracepoints: Tracepoints::observe(tracepoints).internal(|| "observe sync calls")?,
            marked_ns: monotonic_ns(),
        })
    }

    /// Returns the calls since the last mark, while the next mark is being set.
    pub fn take(&mut self) -> Result<Calls> {
        let passes = self.tracepoints.take().internal(|| "count sync calls")?;
        Ok(Calls {
            count: passes.count,
            after_us: differences_us(self.marked_ns, &passes.times_ns),
        })
    }

    /// Notes that a mark requested at `asked_ns` was made at `marked_ns`, according to the server.
    /// Later calls belong to the next interval.
    pub fn marked(&mut self, asked_ns: u64, marked_ns: Option<u64>) {
        self.marked_ns = instant_of_mark(asked_ns, marked_ns, monotonic_ns());
    }
}

/// Durations of fsync(2) and fdatasync(2), on any file system.
#[derive(Debug)]
pub struct SyncTimes(Durations);

impl SyncTimes {
    /// Starts timing the calls of processes that this thread starts from now on.
    pub fn listen() -> Result<Self> {
        Durations::observe(&[
            ("syscalls/sys_enter_fsync", "syscalls/sys_exit_fsync"),
            (
                "syscalls/sys_enter_fdatasync",
                "syscalls/sys_exit_fdatasync",
            ),
        ])
        .map(Self)
        .internal(|| "time sync calls")
    }

    /// Returns the durations since the previous `take`, each with its number of calls.
    pub fn take(&mut self) -> Result<Vec<(u64, u64)>> {
        self.0.take().internal(|| "time sync calls")
    }
}

/// Calls of programs outside the cell that also write back the cell's file system.
#[derive(Debug)]
pub struct OutsideSyncs(OutsideCalls);

impl OutsideSyncs {
    /// Listens to the system calls `names`. The calling process must be in the cell's PID
    /// namespace: calls from within this namespace are the cell's own.
    pub fn listen(names: &[String]) -> Result<Self> {
        OutsideCalls::observe(names)
            .map(Self)
            .internal(|| "observe sync calls of other programs")
    }

    /// Returns the number of calls that ran since the previous `take`.
    pub fn take(&mut self) -> u64 {
        self.0.take()
    }
}

/// Returns the differences between successive call times, as many as fit into a mark.
fn differences_us(begin_ns: u64, times_ns: &[u64]) -> Vec<u64> {
    let mut before_us = 0;
    let mut text_bytes = 0;
    let mut differences = Vec::new();
    for time_ns in times_ns {
        let after_us = time_ns.saturating_sub(begin_ns) / 1000;
        let difference_us = after_us - before_us;
        text_bytes += 2 + difference_us.checked_ilog10().unwrap_or(0) as usize;
        if text_bytes > LONGEST_TEXT_BYTES {
            break;
        }
        differences.push(difference_us);
        before_us = after_us;
    }
    differences
}

/// Returns the time of a mark: the server's time if it is plausible. Otherwise the server has
/// another clock (it may run under another kernel), and the midpoint between request and answer is
/// the best estimate.
fn instant_of_mark(asked_ns: u64, marked_ns: Option<u64>, answered_ns: u64) -> u64 {
    marked_ns
        .filter(|at| (asked_ns..=answered_ns).contains(at))
        .unwrap_or_else(|| asked_ns.midpoint(answered_ns))
}

/// Returns the time of the clock that the kernel's samples use.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_add_up_to_the_times() {
        let times_ns = [5_000, 1_005_999, 1_006_000, 9_000_000];
        let found = differences_us(1_000, &times_ns);
        assert_eq!(found, [4, 1000, 1, 7994]);
        // A call during the mark counts as if it came right after it.
        assert_eq!(differences_us(6_000, &times_ns)[0], 0);
    }

    #[test]
    fn a_mark_was_made_between_question_and_answer() {
        assert_eq!(instant_of_mark(100, Some(110), 180), 110);
        assert_eq!(instant_of_mark(100, Some(99), 180), 140);
        assert_eq!(instant_of_mark(100, Some(181), 180), 140);
        assert_eq!(instant_of_mark(100, None, 180), 140);
    }

    #[test]
    fn no_more_than_a_mark_can_hold() {
        let times_ns: Vec<u64> = (0..1_000_000).map(|n| n * 1_000_000).collect();
        let kept = Calls {
            count: 1_000_000,
            after_us: differences_us(0, &times_ns),
        };
        let text = serde_json::to_vec(&kept).unwrap();
        assert!(kept.after_us.len() > 20_000);
        assert!((LONGEST_TEXT_BYTES - 8..LONGEST_TEXT_BYTES + 64).contains(&text.len()));
    }
}
