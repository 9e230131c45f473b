//! Parts of writes to an array, held back until the writes are whole again.

use crate::Write;
use fscost_recording::{Event, Op};
use std::collections::BTreeMap;

/// Maximum time from the completion of held parts to the submission of more parts. md submits the
/// parts of a request together, but RAID 5 may have to read before it can write some of them. If a
/// file system waits for a write, a flush follows, which ends the wait here too.
const WINDOW_NS: u64 = 1_000_000_000;
const MOST_BYTES: u64 = 16 << 20;
const MOST_PARTS: usize = 4096;

/// Held parts by their place in the array, without overlap.
#[derive(Debug, Default)]
pub struct Held {
    parts: BTreeMap<u64, Part>,
    bytes: u64,
    /// Time when the last part completed, in nanoseconds.
    until_ns: u64,
}

/// Origin of a part.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// Number of the part in [`super::Placed`].
    pub placed: usize,
    /// Frame that holds the content; `content_offset` is the content's place in the frame.
    pub frame: u32,
    pub content_offset: u32,
    pub op: Op,
}

/// A part of a write to the array.
#[derive(Debug)]
struct Part {
    origin: Origin,
    event: u64,
    time_ns: u64,
    length: u64,
    formatting: bool,
    /// Content of the part; empty for zeroes.
    content: Vec<u8>,
}

/// A write to the array, reassembled from its parts.
#[derive(Debug)]
pub struct Whole {
    event: u64,
    time_ns: u64,
    offset: u64,
    length: u64,
    formatting: bool,
    content: Vec<u8>,
    /// Parts of the write: place in the array, length, origin.
    pub parts: Vec<(u64, u64, Origin)>,
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
    pub fn push(&mut self, write: &Write<'_>, origin: Origin) {
        self.bytes += write.length;
        self.until_ns = self.until_ns.max(write.time_ns);
        self.parts.insert(
            write.offset,
            Part {
                origin,
                event: write.event,
                time_ns: write.time_ns,
                length: write.length,
                formatting: write.formatting,
                content: write.content.to_vec(),
            },
        );
    }

    /// Removes and returns all held writes, with neighbours joined, in the order of their first
    /// events.
    pub fn take(&mut self) -> Vec<Whole> {
        let mut wholes: Vec<Whole> = Vec::new();
        for (offset, part) in std::mem::take(&mut self.parts) {
            match wholes
                .last_mut()
                .filter(|whole| whole.continues(offset, &part))
            {
                Some(whole) => whole.join(offset, part),
                None => wholes.push(Whole::new(offset, part)),
            }
        }
        self.bytes = 0;
        self.until_ns = 0;
        wholes.sort_by_key(|whole| (whole.event, whole.offset));
        wholes
    }
}

impl Whole {
    fn new(offset: u64, part: Part) -> Whole {
        Whole {
            event: part.event,
            time_ns: part.time_ns,
            offset,
            length: part.length,
            formatting: part.formatting,
            content: part.content,
            parts: vec![(offset, part.length, part.origin)],
        }
    }

    fn continues(&self, offset: u64, part: &Part) -> bool {
        self.offset + self.length == offset
            && self.formatting == part.formatting
            && self.content.is_empty() == part.content.is_empty()
    }

    fn join(&mut self, offset: u64, part: Part) {
        if part.event < self.event {
            (self.event, self.time_ns) = (part.event, part.time_ns);
        }
        self.length += part.length;
        self.content.extend_from_slice(&part.content);
        self.parts.push((offset, part.length, part.origin));
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

    /// Returns the effect of each part on the array's content, with the part's frame.
    pub fn events(&self, disk: u16) -> impl Iterator<Item = (u32, Event)> {
        self.parts.iter().map(move |&(offset, length, origin)| {
            let event = Event {
                submit_ns: 0,
                complete_ns: 0,
                offset,
                length,
                content_offset: origin.content_offset,
                disk,
                op: origin.op,
                fua: false,
            };
            (origin.frame, event)
        })
    }
}
