//! A frame, unpacked.

use crate::{
    DiskInfo, Error, ErrorKind, Event, Mark, Op, Reply, Result, format::RawEvent,
    packed::PackedPieces, raw_frame::RawFrame,
};
use std::fs::File;

/// Predicts whether the content of an event will be read.
pub type Expected<'e> = dyn Fn(&Event) -> bool + Sync + 'e;

/// The part of a frame's content to unpack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// All content of frames with a mark; otherwise none.
    OfMarks,
    /// None for now: [`Frame::unpack`] unpacks it later. Checksums are verified nevertheless.
    Packed,
    /// All content.
    All,
}

/// One frame, unpacked.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// Events of the frame, in order of completion.
    pub events: Vec<Event>,
    /// Content of the frame; [`content_of`](Self::content_of) returns that of an event.
    pub content: Vec<u8>,
    /// Replies that were sent while the frame was filled; also to requests of earlier frames.
    pub replies: Vec<Reply>,
    /// Pieces that are still packed.
    packed: PackedPieces,
    /// Reused buffers: the frame's index as stored, and events unpacked.
    stored: Vec<u8>,
    raw: Vec<RawEvent>,
}

impl Frame {
    /// Unpacks a frame of the file into this one, reusing its buffers.
    pub(crate) fn unpack_from(
        &mut self,
        raw: &RawFrame,
        file: &File,
        disks: &[DiskInfo],
        contents: Contents,
    ) -> Result<()> {
        raw.read_index(file, &mut self.stored)?;
        raw.unpack_events(&self.stored, &mut self.raw)?;
        raw.unpack_replies(&self.stored, &mut self.replies)?;
        let corrupt = |what| Error::corrupt(raw.at, what);
        let content_bytes = raw.header.content_raw_bytes.get() as usize;
        self.events.clear();
        self.events.reserve(self.raw.len());
        for event in &self.raw {
            event
                .parse_into(&mut self.events, disks, content_bytes)
                .map_err(corrupt)?;
        }
        check_content(&self.events, content_bytes).map_err(|what| corrupt(what.into()))?;
        self.packed.clear();
        let has_mark = || self.events.iter().any(|e| e.op == Op::Mark);
        if contents == Contents::OfMarks && !has_mark() {
            self.content.clear();
            return Ok(());
        }
        self.content.resize(content_bytes, 0);
        match contents {
            Contents::Packed => self.packed.read(raw, file),
            Contents::OfMarks | Contents::All => raw.unpack_content(file, &mut self.content),
        }
        .inspect_err(|_| self.content.clear())
    }

    /// Unpacks the content of one of this frame's events, in a walk that leaves content packed.
    /// Before that, [`content_of`](Self::content_of) returns meaningless bytes.
    pub fn unpack(&mut self, event: &Event) -> Result<()> {
        self.packed.unpack(event.content_range(), &mut self.content)
    }

    /// Unpacks the content that is expected to be read. Content that cannot be unpacked stays
    /// packed, so that its reader gets the error.
    pub(crate) fn unpack_expected(&mut self, expected: &Expected<'_>) {
        if self.packed.is_empty() {
            return;
        }
        for event in self.events.iter().filter(|event| expected(event)) {
            let _ = self.packed.unpack(event.content_range(), &mut self.content);
        }
    }

    /// Returns the content of all events, at the places that their locations name.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Returns the content of one of this frame's events; empty if it has none.
    pub fn content_of(&self, event: &Event) -> &[u8] {
        self.content.get(event.content_range()).unwrap_or_default()
    }

    /// Returns the mark that an event of this frame carries.
    pub fn mark_of(&self, event: &Event) -> Result<Mark> {
        Mark::from_bytes(self.content_of(event))
    }
}

/// Reads marks for callers that keep all of them. It rejects more marks than any real recording
/// needs, since a mark takes a few bytes in the file and up to ten times its length in memory.
#[derive(Debug, Default)]
pub struct MarkReader {
    bytes: u64,
}

impl MarkReader {
    const MAX_BYTES: u64 = 8 << 20;

    /// Returns the next mark, which an event of this frame carries.
    pub fn mark_of(&mut self, frame: &Frame, event: &Event) -> Result<Mark> {
        self.bytes += event.length;
        if self.bytes > Self::MAX_BYTES {
            let what = format!("more than {} MiB of marks", Self::MAX_BYTES >> 20);
            return Err(Error::new(ErrorKind::Corrupt, what));
        }
        frame.mark_of(event)
    }
}

/// Checks that each byte of a frame's content belongs to exactly one event. Otherwise a small frame
/// could unpack to a large one.
fn check_content(events: &[Event], content_bytes: usize) -> std::result::Result<(), &'static str> {
    let mut end = 0;
    for event in events.iter().filter(|e| e.op.has_content() && e.length > 0) {
        if u64::from(event.content_offset) != end {
            return Err("an event's content does not follow the content of the previous event");
        }
        end += event.length;
    }
    if end != content_bytes as u64 {
        return Err("a frame has content that belongs to no event");
    }
    match events.iter().position(|e| e.op == Op::Mark) {
        Some(first) if first + 1 < events.len() => Err("a mark is not the last event of its frame"),
        _ => Ok(()),
    }
}
