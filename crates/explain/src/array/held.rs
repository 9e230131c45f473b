//! Parts of writes to an array, held back until they are whole again.

use crate::Write;
use fscost_recording::{Event, Op};
use std::collections::BTreeMap;

/// md submits the parts of a request together, but RAID 5 may have to read for some of them first.
/// What a file system waits for is behind a flush, which ends the wait here too.
const WINDOW_NS: u64 = 1_000_000_000;
const MOST_BYTES: u64 = 16 << 20;
const MOST_PARTS: usize = 4096;

/// Parts by their place in the array, without overlap.
#[derive(Debug, Default)]
pub struct Held {
    parts: BTreeMap<u64, Part>,
    bytes: u64,
    /// When the last of them completed.
    until_ns: u64,
}

/// Where a part came from.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// Its number in [`super::Placed`].
    pub placed: usize,
    /// The frame that has its content, and where in it.
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
    /// Empty for zeroes.
    content: Vec<u8>,
}

/// A write to the array, put together.
#[derive(Debug)]
pub struct Whole {
    event: u64,
    time_ns: u64,
    offset: u64,
    length: u64,
    formatting: bool,
    content: Vec<u8>,
    /// Its parts, with their place in the array and their length.
    pub parts: Vec<(u64, u64, Origin)>,
}

impl Held {
    /// Whether what is submitted now was not under way together with any part.
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

    /// `write` is of the array; nothing that is held overlaps it.
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

    /// All that is held, neighbours joined, in the order of first events.
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

    /// As a family sees it: with the number of the first event that brought a part of it.
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

    /// What each part does to the array's content.
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
