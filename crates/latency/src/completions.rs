//! Completions that lie in the future.

use crate::Completion;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Completions by time; those of one instant in the order in which they were added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Completions {
    heap: BinaryHeap<Reverse<(u64, u64, u64)>>,
    added: u64,
}

impl Completions {
    pub(crate) fn add(&mut self, id: u64, at_ns: u64) {
        self.heap.push(Reverse((at_ns, self.added, id)));
        self.added += 1;
    }

    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|&Reverse((at_ns, ..))| at_ns)
    }

    /// The earliest, if it lies at or before an instant.
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<Completion> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.heap
            .pop()
            .map(|Reverse((at_ns, _, id))| Completion { id, at_ns })
    }
}
