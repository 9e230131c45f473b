//! The workload's sync calls: each fsync, fdatasync and O_SYNC write that a file system
//! received from the cell's processes. Also calls of other programs that sync every file system.

use crate::error::{Context, Result};
use fscost_trace::{Durations, Names, OutsideCalls, Pass, Span, Tracepoints, histogram};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::collections::HashMap;

/// Size limits of the call times in a mark, and of their callers. A mark may have 256 KiB, but a
/// message on a socket is limited to its send buffer, which is 208 KiB by default (socket(7)).
const LONGEST_TEXT_BYTES: usize = 128 * 1024;
const LONGEST_CALLERS_BYTES: usize = 64 * 1024;

/// Counts and times calls.
#[derive(Debug)]
pub struct SyncCalls {
    tracepoints: Tracepoints,
    names: Names,
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
    /// Durations of the calls in microseconds, rounded up; 0 if unknown, as for O_SYNC writes.
    /// Fewer than `after_us` if there were too many to keep.
    pub took_us: Vec<u64>,
    /// Caller of each call in `took_us`: its place in `callers`.
    pub caller: Vec<usize>,
    /// The callers, in the order of their first calls.
    pub callers: Vec<Caller>,
}

/// A process that made calls for one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Caller {
    /// The process, as the cell numbers it.
    pub process: u32,
    /// Its name; None if it is unknown.
    pub name: Option<String>,
    /// The file; None if the tracepoint does not tell it.
    pub inode: Option<u64>,
}

impl SyncCalls {
    /// Listens to the tracepoints (`ext4/ext4_sync_file_enter`). Covers processes that this thread
    /// starts from now on.
    pub fn listen(tracepoints: &[String]) -> Result<Self> {
        Ok(Self {
            tracepoints: Tracepoints::observe(tracepoints).internal(|| "observe sync calls")?,
            names: Names::follow().internal(|| "follow names")?,
            marked_ns: monotonic_ns(),
        })
    }

    /// Returns the calls since the last mark, while the next mark is being set. `timed` are the
    /// calls of fsync and fdatasync since then.
    pub fn take(&mut self, timed: &[Span]) -> Result<Calls> {
        let passes = self.tracepoints.take().internal(|| "count sync calls")?;
        let times_ns: Vec<u64> = passes.each.iter().map(|pass| pass.at_ns).collect();
        let threads = passes.each.iter().map(|pass| (pass.at_ns, pass.thread));
        let names = self.names.at(threads);
        let mut calls = Calls {
            count: passes.count,
            after_us: differences_us(self.marked_ns, &times_ns),
            ..Calls::default()
        };
        calls.add_callers(&passes.each, &names, timed);
        Ok(calls)
    }

    /// Notes that a mark requested at `asked_ns` was made at `marked_ns`, according to the server.
    /// Later calls belong to the next interval.
    pub fn marked(&mut self, asked_ns: u64, marked_ns: Option<u64>) {
        self.marked_ns = instant_of_mark(asked_ns, marked_ns, monotonic_ns());
    }
}

impl Calls {
    /// Adds the duration and the caller of as many calls as fit into a mark.
    fn add_callers(&mut self, passes: &[Pass], names: &[Option<String>], timed: &[Span]) {
        let mut spans: HashMap<u32, Vec<Span>> = HashMap::new();
        for span in timed {
            spans.entry(span.thread).or_default().push(*span);
        }
        let mut places = HashMap::new();
        let mut text_bytes = 0;
        for (pass, name) in passes.iter().zip(names).take(self.after_us.len()) {
            let took_us = took_us(pass, spans.get(&pass.thread).map_or(&[], Vec::as_slice));
            let caller = Caller {
                process: pass.process,
                name: name.clone(),
                inode: pass.inode,
            };
            let next = places.len();
            let place = *places.entry(caller.clone()).or_insert(next);
            text_bytes += text_bytes_of(took_us) + text_bytes_of(place as u64);
            if place == next {
                // Its fields and their names; a name may be escaped (`\u0001`).
                text_bytes += 70 + 6 * name.as_ref().map_or(0, String::len);
            }
            if text_bytes > LONGEST_CALLERS_BYTES {
                break;
            }
            if place == next {
                self.callers.push(caller);
            }
            self.took_us.push(took_us);
            self.caller.push(place);
        }
    }
}

/// Returns the duration of the call that the pass belongs to, at least 1; 0 if it is none of the
/// `spans`, which are those of its thread, in order.
fn took_us(pass: &Pass, spans: &[Span]) -> u64 {
    let place = spans.partition_point(|span| span.end_ns < pass.at_ns);
    spans
        .get(place)
        .filter(|span| span.begin_ns <= pass.at_ns)
        .map_or(0, |span| {
            (span.end_ns - span.begin_ns).div_ceil(1000).max(1)
        })
}

/// Returns the bytes of a number in a list.
fn text_bytes_of(number: u64) -> usize {
    2 + number.checked_ilog10().unwrap_or(0) as usize
}

/// Durations of fsync(2) and fdatasync(2), on any file system.
#[derive(Debug)]
pub struct SyncTimes {
    durations: Durations,
    /// Calls since the last mark.
    since_mark: Vec<Span>,
}

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
        .map(|durations| Self {
            durations,
            since_mark: Vec::new(),
        })
        .internal(|| "time sync calls")
    }

    /// Returns the durations since the previous `take` or `marked`, each with its number of calls.
    pub fn take(&mut self) -> Result<Vec<(u64, u64)>> {
        let found = self.durations.take().internal(|| "time sync calls")?;
        self.since_mark.extend(&found);
        Ok(histogram(&found))
    }

    /// Returns the calls since the last mark, while the next mark is being set.
    pub fn marked(&mut self) -> Result<Vec<Span>> {
        self.take()?;
        Ok(std::mem::take(&mut self.since_mark))
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
        text_bytes += text_bytes_of(difference_us);
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
            ..Calls::default()
        };
        let text = serde_json::to_vec(&kept).unwrap();
        assert!(kept.after_us.len() > 20_000);
        assert!((LONGEST_TEXT_BYTES - 8..LONGEST_TEXT_BYTES + 128).contains(&text.len()));
        let mut callers = Calls {
            after_us: kept.after_us,
            ..Calls::default()
        };
        let passes: Vec<Pass> = (0..20_000).map(|n| pass(n, 7, n)).collect();
        callers.add_callers(&passes, &vec![Some("\u{1}".repeat(15)); passes.len()], &[]);
        callers.after_us.clear();
        let text = serde_json::to_vec(&callers).unwrap();
        assert!(text.len() < LONGEST_CALLERS_BYTES + 128, "{}", text.len());
        assert!(callers.callers.len() > 300);
    }

    fn pass(at_ns: u64, thread: u32, inode: u64) -> Pass {
        Pass {
            at_ns,
            process: 5,
            thread,
            inode: Some(inode),
        }
    }

    #[test]
    fn each_call_has_its_caller_and_the_duration_of_its_own_thread() {
        let span = |thread, begin_ns, end_ns| Span {
            thread,
            begin_ns,
            end_ns,
        };
        let timed = [
            span(7, 900, 3_100),
            span(8, 900, 9_000),
            span(7, 4_000, 4_500),
        ];
        let mut calls = Calls {
            after_us: vec![0; 4],
            ..Calls::default()
        };
        // The third is an O_SYNC write between two fsyncs.
        let passes = [
            pass(1_000, 7, 12),
            pass(1_000, 8, 13),
            pass(3_500, 7, 12),
            pass(4_100, 7, 13),
        ];
        let names = ["a", "a", "a", "b"].map(|name| Some(name.to_owned()));
        calls.add_callers(&passes, &names, &timed);
        assert_eq!(calls.took_us, [3, 9, 0, 1]);
        assert_eq!(calls.caller, [0, 1, 0, 2]);
        let told: Vec<_> = calls
            .callers
            .iter()
            .map(|each| (each.name.as_deref(), each.inode))
            .collect();
        assert_eq!(
            told,
            [
                (Some("a"), Some(12)),
                (Some("a"), Some(13)),
                (Some("b"), Some(13))
            ]
        );
    }
}
