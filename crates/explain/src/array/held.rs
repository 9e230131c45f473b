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
    /// Event of the part that was added last.
    newest: Option<u64>,
    /// Event whose first parts were taken before its last ones arrived. Those are not joined with
    /// parts of other events: the whole would be named after this event, as the taken one is.
    split: Option<u64>,
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

    /// Returns the content of this range if one held part contains it; empty for zeroes.
    pub fn content(&self, start: u64, end: u64) -> Option<&[u8]> {
        let (&at, whole) = self.parts.range(..=start).next_back()?;
        let (from, to) = ((start - at) as usize, (end - at) as usize);
        match whole.content.is_empty() {
            true => (end - at <= whole.length).then_some(&[]),
            false => whole.content.get(from..to),
        }
    }

    /// Adds a write to the array. No held part may overlap it.
    pub fn push(&mut self, write: &Write<'_>, part: Part) {
        if self.parts.is_empty() {
            self.split = self.newest.filter(|&newest| newest == write.event);
        }
        self.newest = Some(write.event);
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
                Some(whole) if whole.continues(&next, self.split) => whole.join(next),
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
    fn continues(&self, next: &Whole, split: Option<u64>) -> bool {
        let is_one = self.event == next.event
            || [self.event, next.event]
                .iter()
                .all(|&event| Some(event) != split);
        is_one
            && self.offset + self.length == next.offset
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

#[cfg(test)]
mod tests {
    use super::*;
    use fscost_recording::Op;

    fn push(held: &mut Held, event: u64, offset: u64) {
        let write = Write {
            event,
            time_ns: 0,
            disk: 0,
            offset,
            content: &[0; 4],
            length: 4,
            formatting: false,
        };
        let part = Part {
            placed: 0,
            frame: 0,
            event: Event {
                submit_ns: 0,
                complete_ns: 0,
                offset,
                length: 4,
                content_offset: 0,
                disk: 0,
                op: Op::Write,
                fua: false,
            },
        };
        held.push(&write, part);
    }

    fn taken(held: &mut Held) -> Vec<(u64, u64, u64)> {
        let wholes = held.take().into_iter();
        wholes
            .map(|whole| (whole.event, whole.offset, whole.length))
            .collect()
    }

    #[test]
    fn neighbours_are_joined_and_named_after_the_first_event() {
        let mut held = Held::default();
        for (event, offset) in [(1, 4), (2, 0), (2, 8), (3, 16)] {
            push(&mut held, event, offset);
        }
        assert_eq!(taken(&mut held), [(1, 0, 12), (3, 16, 4)]);
    }

    /// Two wholes of one name may not overlap: their rows could not be told apart.
    #[test]
    fn the_rest_of_a_split_event_is_joined_with_no_other_event() {
        let mut held = Held::default();
        push(&mut held, 1, 0);
        assert_eq!(taken(&mut held), [(1, 0, 4)]);
        for (event, offset) in [(1, 4), (1, 8), (2, 0), (2, 12), (3, 16)] {
            push(&mut held, event, offset);
        }
        assert_eq!(taken(&mut held), [(1, 4, 8), (2, 0, 4), (2, 12, 8)]);
        push(&mut held, 4, 0);
        push(&mut held, 3, 4);
        assert_eq!(taken(&mut held), [(3, 0, 8)], "no longer split");
    }
}
