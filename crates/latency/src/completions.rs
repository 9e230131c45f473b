//! Pending completions, ordered by time.

use crate::Completion;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// Completions ordered by time; completions at the same instant keep the order in which they were
/// added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Completions {
    /// Entries that were added in ascending order of time, as most are.
    run: VecDeque<Entry>,
    /// All other entries.
    heap: BinaryHeap<Reverse<Entry>>,
    added: u64,
}

/// Returns the earlier of two instants, either of which may be absent.
#[inline]
pub(crate) fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, None) => one,
        (None, other) => other,
    }
}

/// Instant, number, and the name of the request.
type Entry = (u64, u64, u64);

impl Completions {
    pub(crate) fn add(&mut self, id: u64, at_ns: u64) {
        let entry = (at_ns, self.added, id);
        self.added += 1;
        let last = self.run.back();
        if last.is_none_or(|&(last_ns, ..)| last_ns <= at_ns) {
            self.run.push_back(entry);
        } else {
            self.heap.push(Reverse(entry));
        }
    }

    #[inline]
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let first = self.run.front().map(|&(at_ns, ..)| at_ns);
        let other = self.heap.peek().map(|&Reverse((at_ns, ..))| at_ns);
        earlier(first, other)
    }

    /// Removes and returns the earliest completion if its instant is at or before `now_ns`.
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<Completion> {
        self.next_ns().filter(|&at_ns| at_ns <= now_ns)?;
        let first = self.run.front();
        let (at_ns, _, id) = match self.heap.peek() {
            Some(Reverse(other)) if first.is_none_or(|first| other < first) => self.heap.pop()?.0,
            _ => self.run.pop_front()?,
        };
        Some(Completion { id, at_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a stable sort by time.
        #[test]
        fn they_come_by_time_and_then_in_the_order_of_adding(
            steps in prop::collection::vec((0u64..40, 0u64..20), 0..200),
        ) {
            let mut completions = Completions::default();
            let (mut expected, mut now_ns): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);
            for (id, (delay_ns, passed_ns)) in (0..).zip(steps) {
                completions.add(id, now_ns + delay_ns);
                expected.push((now_ns + delay_ns, id));
                expected.sort_by_key(|&(at_ns, _)| at_ns);
                now_ns += passed_ns;
                while let Some(found) = completions.pop(now_ns) {
                    prop_assert_eq!((found.at_ns, found.id), expected.remove(0));
                }
                let next_ns = expected.first().map(|&(at_ns, _)| at_ns);
                prop_assert_eq!(completions.next_ns(), next_ns);
                prop_assert!(next_ns.is_none_or(|at_ns| at_ns > now_ns));
            }
        }
    }
}
