//! What was durable and what was pending when the power went.

use crate::{Requests, requests::Change};

/// One atomic unit of a pending write, or a whole pending discard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    /// Place of the change in [`Requests`].
    pub(crate) change: u32,
    /// The event's number in the recording, marks counted.
    pub event: u64,
    /// The disk.
    pub disk: u16,
    /// Byte offset on the disk.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// The disks at an instant. `pending` is in the order in which the writes took effect.
#[derive(Debug)]
pub struct Cut<'a> {
    pub(crate) requests: &'a Requests,
    pub(crate) at_ns: u64,
    /// What the power cut may lose.
    pub pending: Vec<Pending>,
}

impl Requests {
    /// Returns the state of all disks at `at_ns`. Writes are cut into units of `unit_bytes`, which
    /// the device writes as a whole or not at all: its physical block, or 512 for a device that
    /// tears blocks. `is_protected`: the device keeps its cache when the power goes, so that only
    /// requests in flight are pending.
    pub fn cut(&self, at_ns: u64, unit_bytes: u64, is_protected: bool) -> Cut<'_> {
        let mut pending = Vec::new();
        for (place, change) in self.changes.iter().enumerate() {
            let event = &change.event;
            let is_pending = match is_protected {
                true => change.complete_ns > at_ns,
                false => change.durable_ns > at_ns,
            };
            if event.submit_ns > at_ns || !is_pending {
                continue;
            }
            let mut unit = |offset, length| {
                pending.push(Pending {
                    change: place as u32,
                    event: change.number,
                    disk: event.disk,
                    offset,
                    length,
                });
            };
            if event.op.clears() {
                unit(event.offset, event.length);
                continue;
            }
            let end = event.offset + event.length;
            let mut offset = event.offset;
            while offset < end {
                let next = ((offset / unit_bytes + 1) * unit_bytes).min(end);
                unit(offset, next - offset);
                offset = next;
            }
        }
        Cut {
            requests: self,
            at_ns,
            pending,
        }
    }
}

impl Cut<'_> {
    /// True if the change had been submitted, and no pending unit stands for it.
    pub(crate) fn is_kept(&self, change: &Change, is_pending: bool) -> bool {
        change.event.submit_ns <= self.at_ns && !is_pending
    }
}
