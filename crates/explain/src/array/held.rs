//! Parts of writes to an array, held back until the writes are whole again.

use crate::Write;
use fscost_recording::Event;
use std::collections::BTreeMap;

/// Maximum time from the completion of held parts to the submission of more parts. md submits the
/// parts of a request together, but RAID 5 may have to read before it can write some of them. If a
/// file system waits for a write, a flush follows, which ends the wait here too.
const WINDOW_NS: u64 = 1_000_000_000;
const MOST_BYTES: u64 = 16 << 20;
const MOST_PARTS: usize = 4096;

/// Held parts of writes, by their place in the array. They do not overlap.
#[derive(Debug, Default)]
pub struct Held {
    parts: BTreeMap<u64, Whole>,
    bytes: u64,
    /// Time when the last part completed, in nanoseconds.
    until_ns: u64,
}

/// A part of a write.
#[derive(Debug)]
pub struct Part {
    /// Number of the part in [`super::Placed`].
    pub placed: usize,
    /// Frame that holds the content.
    pub frame: u32,
    /// The part as a request to the array.
    pub event: Event,
}

/// A write to the array, reassembled from its parts.
#[derive(Debug)]
pub struct Whole {
    event: u64,
    time_ns: u64,
    offset: u64,
    length: u64,
    formatting: bool,
    /// Content of the write; empty for zeroes.
    content: Vec<u8>,
    /// Parts of the write, by their place in the array.
    pub parts: Vec<Part>,
}

impl Held {
    /// Returns whether a request submitted at `submit_ns` was not in flight together with any held
    /// part.
    pub fn is_older_than(&self, submit_ns: u64) -> bool {
        !self.parts.is_empty() && submit_ns > self.until_ns.saturating_add(WINDOW_NS)
    }

    pub fn is_full(&self) -> bool {
        self.bytes >= MOST_BYTES || self.parts.len() >= MOST_PARTS
    }

    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        let last = self.parts.range(..end).next_back();
        last.is_some_and(|(&at, part)| at + part.length > start)
    }

    /// Adds a write to the array. No held part may overlap it.
    pub fn push(&mut self, write: &Write<'_>, part: Part) {
        self.bytes += write.length;
        self.until_ns = self.until_ns.max(write.time_ns);
        self.parts.insert(
            write.offset,
            Whole {
                event: write.event,
                time_ns: write.time_ns,
                offset: write.offset,
                length: write.length,
                formatting: write.formatting,
                content: write.content.to_vec(),
                parts: vec![part],
            },
        );
    }

    /// Removes and returns all held writes, with neighbours joined, in the order of their first
    /// events.
    pub fn take(&mut self) -> Vec<Whole> {
        let mut wholes: Vec<Whole> = Vec::new();
        for next in std::mem::take(&mut self.parts).into_values() {
            match wholes.last_mut() {
                Some(whole) if whole.continues(&next) => whole.join(next),
                _ => wholes.push(next),
            }
        }
        self.bytes = 0;
        self.until_ns = 0;
        wholes.sort_by_key(|whole| (whole.event, whole.offset));
        wholes
    }
}

impl Whole {
    fn continues(&self, next: &Whole) -> bool {
        self.offset + self.length == next.offset
            && self.formatting == next.formatting
            && self.content.is_empty() == next.content.is_empty()
    }

    fn join(&mut self, next: Whole) {
        if next.event < self.event {
            (self.event, self.time_ns) = (next.event, next.time_ns);
        }
        self.length += next.length;
        self.content.extend_from_slice(&next.content);
        self.parts.extend(next.parts);
    }

    /// Returns the write as a family sees it, with the number of the first event that contributed a
    /// part.
    pub fn write(&self, disk: u16) -> Write<'_> {
        Write {
            event: self.event,
            time_ns: self.time_ns,
            disk,
            offset: self.offset,
            content: &self.content,
            length: self.length,
            formatting: self.formatting,
        }
    }
}
