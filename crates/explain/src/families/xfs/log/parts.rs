//! Parts of one record, and their explanations.

use super::super::log_record::Record;
use super::item::Explanation;
use super::record::Place;
use crate::Cause;
use std::ops::Range;

/// Part of a log record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Transaction number in the log; None for the record's own headers.
    pub transaction: Option<u32>,
    /// Start of the transaction.
    pub lsn: u64,
    /// Explanation of the part; None if the item ends in a later record.
    pub explanation: Option<Explanation>,
}

impl Slot {
    /// Returns whether access times are the only cause of the part.
    pub fn is_atime(&self) -> bool {
        self.explanation.is_some_and(|known| known.is_atime())
    }

    /// Returns whether the part holds no item: headers and padding.
    pub fn is_overhead(&self) -> bool {
        let overhead = [Explanation::OWN, Explanation::PADDING];
        self.explanation
            .is_some_and(|known| overhead.contains(&known))
    }
}

/// Record being read.
pub struct Parts {
    /// Slots of the record; the first is the record's own.
    pub slots: Vec<Slot>,
    /// Byte ranges of the record in order, each with the index of its slot.
    pub ranges: Vec<(Range<usize>, usize)>,
}

impl Parts {
    /// Begins with the record's own headers.
    pub fn of(record: &Record<Place>) -> Parts {
        /// Most items take more than this.
        const ITEM_BYTES: usize = 128;
        let count = record.bytes.len() / ITEM_BYTES;
        let mut parts = Parts {
            slots: Vec::with_capacity(count),
            ranges: Vec::with_capacity(count),
        };
        parts.slots.push(Slot {
            transaction: None,
            lsn: record.lsn,
            explanation: Some(Explanation::OWN),
        });
        parts.add(0..record.content_at, 0);
        parts
    }

    /// Adds the end of the record, which is padding.
    pub fn pad(&mut self, range: Range<usize>, lsn: u64) {
        if range.is_empty() {
            return;
        }
        self.slots.push(Slot {
            transaction: None,
            lsn,
            explanation: Some(Explanation::PADDING),
        });
        self.add(range, self.slots.len() - 1);
    }

    /// Begins or continues an item.
    pub fn open(&mut self, id: u32, lsn: u64) -> usize {
        self.slots.push(Slot {
            transaction: Some(id),
            lsn,
            explanation: None,
        });
        self.slots.len() - 1
    }

    /// Adds a slot for the transaction's parts that are not items.
    pub fn of_transaction(&mut self, id: u32, lsn: u64) -> usize {
        let slot = self.open(id, lsn);
        self.close(slot, Explanation::OWN);
        slot
    }

    /// Closes a slot whose item is complete.
    pub fn close(&mut self, slot: usize, explanation: Explanation) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.explanation = Some(explanation);
        }
    }

    /// Assigns the next bytes of the record to a slot.
    pub fn add(&mut self, range: Range<usize>, slot: usize) {
        if range.is_empty() {
            return;
        }
        match self
            .ranges
            .last_mut()
            .filter(|(last, of)| *of == slot && last.end == range.start)
        {
            Some((last, _)) => last.end = range.end,
            None => self.ranges.push((range, slot)),
        }
    }

    /// Attributes the padding of the record that ends a transaction, which is rounded up to `unit`.
    /// Without its access times, the record would be padded as well. Bytes of access times that
    /// would have been padding anyway count as padding. Padding that only the access times
    /// made necessary is charged to them, the rest to padding.
    pub fn round(&mut self, used: usize, atime: usize, unit: usize) {
        let Some(padding) = self.ranges.pop() else {
            return;
        };
        let padded = padding.0.len();
        if padded >= unit || padding.0.start != used {
            self.ranges.push(padding);
            return;
        }
        let without = (unit - (used + unit - atime % unit) % unit) % unit;
        if without <= padded {
            let (begin, end) = (padding.0.end - (padded - without), padding.0.end);
            self.add(used..begin, padding.1);
            let slot = self.copy(padding.1, |own| own.because(Cause::Atime));
            self.add(begin..end, slot);
            return;
        }
        let mut excess = without - padded;
        let mut tail = vec![padding];
        while excess > 0 {
            let Some((range, slot)) = self.ranges.pop() else {
                break;
            };
            if !self.slots.get(slot).is_some_and(Slot::is_atime) {
                tail.push((range, slot));
                continue;
            }
            let count = excess.min(range.len());
            excess -= count;
            let cut = range.end - count;
            let shared = self.copy(slot, |item| item.because(Cause::Padding));
            tail.push((cut..range.end, shared));
            tail.push((range.start..cut, slot));
        }
        for (range, slot) in tail.into_iter().rev() {
            self.add(range, slot);
        }
    }

    /// Adds a copy of a slot with a changed explanation.
    fn copy(&mut self, slot: usize, change: impl FnOnce(Explanation) -> Explanation) -> usize {
        if let Some(&like) = self.slots.get(slot) {
            self.slots.push(Slot {
                explanation: like.explanation.map(change),
                ..like
            });
        }
        self.slots.len() - 1
    }

    /// Merges neighbouring ranges with equal explanations.
    pub fn merged(&self) -> impl Iterator<Item = (Range<usize>, usize)> + '_ {
        let mut ranges = self.ranges.iter().peekable();
        std::iter::from_fn(move || {
            let (range, slot) = ranges.next()?;
            let mut range = range.clone();
            while let Some((next, _)) = ranges.next_if(|(_, other)| {
                self.slots
                    .get(*slot)
                    .is_some_and(|s| s.explanation.is_some())
                    && self.slots.get(*slot) == self.slots.get(*other)
            }) {
                range.end = next.end;
            }
            Some((range, *slot))
        })
    }
}
