//! System calls of processes outside this process's PID namespace.

use crate::ring::{Kind, Ring};
use crate::{Result, rings_of};

/// Counts calls from its creation until it is dropped.
///
/// A ring holds 10,922 calls of the whole machine; if one is full, further calls go unnoticed until
/// the next [`OutsideCalls::take`]. The kernel traces no calls of 32-bit programs on a 64-bit
/// machine (kernel/trace/trace_syscalls.c).
#[derive(Debug)]
pub struct OutsideCalls {
    begins: Vec<Ring>,
    ends: Vec<Ring>,
    running: u64,
}

impl OutsideCalls {
    /// Starts observing the system calls `names` (such as `sync`).
    pub fn observe(names: &[String]) -> Result<Self> {
        let rings = |side: &str| -> Result<Vec<Ring>> {
            let of_name =
                |name: &String| rings_of(&format!("syscalls/sys_{side}_{name}"), Kind::Everyone);
            let found: Vec<Vec<Ring>> = names.iter().map(of_name).collect::<Result<_>>()?;
            Ok(found.into_iter().flatten().collect())
        };
        Ok(Self {
            begins: rings("enter")?,
            ends: rings("exit")?,
            running: 0,
        })
    }

    /// Returns the number of calls that ran since the previous call: those that have begun since
    /// then, and those that were still running.
    pub fn take(&mut self) -> u64 {
        // Read the ends first: the beginning of a call whose end is read is then never missing.
        let ended = outsiders(&mut self.ends);
        let begun = outsiders(&mut self.begins);
        let (ran, running) = count(self.running, begun, ended);
        self.running = running;
        ran
    }
}

/// Counts the samples of threads outside the PID namespace.
fn outsiders(rings: &mut [Ring]) -> u64 {
    let mut count = 0;
    for ring in rings {
        ring.take(|pass| count += u64::from(pass.thread == 0));
    }
    count
}

/// Returns the number of calls that ran in an interval, and of those that still run at its end.
/// Calls that had begun before they were observed are known only by their ends.
fn count(running: u64, begun: u64, ended: u64) -> (u64, u64) {
    let known = running + begun;
    (known.max(ended), known.saturating_sub(ended))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_counts_wherever_it_ran() {
        assert_eq!(count(0, 2, 2), (2, 0));
        // It begins in one interval, runs through the next, and ends in the third.
        assert_eq!(count(0, 1, 0), (1, 1));
        assert_eq!(count(1, 0, 0), (1, 1));
        assert_eq!(count(1, 0, 1), (1, 0));
        // It began before it was observed.
        assert_eq!(count(0, 0, 1), (1, 0));
    }
}
