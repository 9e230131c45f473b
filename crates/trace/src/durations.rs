//! Durations of calls, measured from an entry tracepoint to an exit tracepoint of the same thread.

use crate::ring::{Kind, Ring};
use crate::{Result, rings_of};
use std::collections::{BTreeMap, HashMap};

/// Number of significant bits kept of a duration: neighbouring values differ by less than 0.8 %.
const KEPT_BITS: u32 = 8;

/// Times calls from its creation until it is dropped.
#[derive(Debug)]
pub struct Durations {
    sides: Vec<Side>,
}

/// One end (entry or exit) of the calls on one CPU.
#[derive(Debug)]
struct Side {
    ring: Ring,
    is_end: bool,
    /// Number of passes counted so far, including lost ones.
    known: u64,
}

/// A call of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The calling thread, as the PID namespace of the observer numbers it.
    pub thread: u32,
    /// CLOCK_MONOTONIC time of the entry.
    pub begin_ns: u64,
    /// CLOCK_MONOTONIC time of the exit.
    pub end_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Pass {
    at_ns: u64,
    thread: u32,
    is_end: bool,
}

impl Durations {
    /// Starts observing calls between each pair of tracepoints (such as `syscalls/sys_enter_fsync`
    /// and `syscalls/sys_exit_fsync`) in this thread and in every process that it starts from now
    /// on.
    pub fn observe(calls: &[(&str, &str)]) -> Result<Self> {
        let mut sides = Vec::new();
        let ends = calls
            .iter()
            .flat_map(|(begin, end)| [(begin, false), (end, true)]);
        for (name, is_end) in ends {
            let rings = rings_of(name, Kind::Threads)?;
            sides.extend(rings.into_iter().map(|ring| Side {
                ring,
                is_end,
                known: 0,
            }));
        }
        Ok(Self { sides })
    }

    /// Returns the calls that ended since the previous call, in the order of their ends. If a ring
    /// was full, only the calls until then are included.
    pub fn take(&mut self) -> Result<Vec<Span>> {
        let mut passes = Vec::new();
        let mut known_until_ns = u64::MAX;
        for side in &mut self.sides {
            let before = passes.len();
            // Read the count first: a pass between the two readings then never looks lost.
            let count = side.ring.count()?;
            let is_end = side.is_end;
            side.ring.take(|pass| {
                passes.push(Pass {
                    at_ns: pass.at_ns,
                    thread: pass.thread,
                    is_end,
                });
            });
            side.known += (passes.len() - before) as u64;
            if side.known < count {
                let last = passes[before..].last().map_or(0, |pass| pass.at_ns);
                known_until_ns = known_until_ns.min(last);
                side.known = count;
            }
        }
        passes.retain(|pass| pass.at_ns <= known_until_ns);
        Ok(spans(&mut passes))
    }
}

/// Returns the durations of calls in nanoseconds, ascending, each with its number of calls.
pub fn histogram(spans: &[Span]) -> Vec<(u64, u64)> {
    let mut found = BTreeMap::new();
    for span in spans {
        *found
            .entry(rounded(span.end_ns - span.begin_ns))
            .or_insert(0) += 1;
    }
    found.into_iter().collect()
}

fn spans(passes: &mut [Pass]) -> Vec<Span> {
    passes.sort_unstable_by_key(|pass| pass.at_ns);
    let mut begun = HashMap::new();
    let mut found = Vec::new();
    for pass in passes {
        if !pass.is_end {
            begun.insert(pass.thread, pass.at_ns);
        } else if let Some(begin_ns) = begun.remove(&pass.thread) {
            found.push(Span {
                thread: pass.thread,
                begin_ns,
                end_ns: pass.at_ns,
            });
        }
    }
    found
}

/// Rounds to the nearest value with [`KEPT_BITS`] significant bits.
fn rounded(ns: u64) -> u64 {
    let dropped = (u64::BITS - ns.leading_zeros()).saturating_sub(KEPT_BITS);
    let half = (1_u64 << dropped) >> 1;
    (ns.saturating_add(half) >> dropped) << dropped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(at_ns: u64, thread: u32, is_end: bool) -> Pass {
        Pass {
            at_ns,
            thread,
            is_end,
        }
    }

    #[test]
    fn calls_of_threads_overlap() {
        let mut passes = [
            pass(10, 1, false),
            pass(30, 2, true), // begun before it was observed
            pass(20, 2, false),
            pass(40, 1, true),
            pass(25, 2, true),
            pass(50, 1, false), // killed inside
        ];
        // Thread 2 begins at 20 and ends at 25; the end at 30 has no beginning.
        assert_eq!(histogram(&spans(&mut passes)), [(5, 1), (30, 1)]);
    }

    #[test]
    fn durations_keep_three_digits() {
        assert_eq!(rounded(0), 0);
        assert_eq!(rounded(255), 255);
        for ns in [256, 999, 123_456, 1_234_567_890, u64::MAX >> 1] {
            assert!(rounded(ns).abs_diff(ns) <= ns / 256, "{ns}");
        }
    }
}
