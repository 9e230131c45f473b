//! An event: one request that a disk received, or one mark.

use crate::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// An operation of a disk. The numbers are part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Reads a range; the content is not recorded.
    Read = 0,
    /// Writes a range; the content is in the frame.
    Write = 1,
    /// Makes durable all requests that completed before it was issued.
    Flush = 2,
    /// Discards a range whose content is no longer needed; it reads as zeros here.
    Discard = 3,
    /// Zeroes a range.
    WriteZeroes = 4,
    /// `Discard`, or `WriteZeroes` that may unmap: a loop device sends the same request for both.
    /// The range reads as zeros.
    Punch = 5,
    /// Marks a named instant; the content is a [`Mark`] as JSON.
    Mark = 6,
}

impl Op {
    /// All operations, in the order of their numbers.
    pub const ALL: [Op; 7] = [
        Op::Read,
        Op::Write,
        Op::Flush,
        Op::Discard,
        Op::WriteZeroes,
        Op::Punch,
        Op::Mark,
    ];

    /// Returns the operation with this number.
    #[inline]
    pub fn from_number(number: u8) -> Option<Op> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the name used in tables and exports.
    pub fn name(self) -> &'static str {
        [
            "read",
            "write",
            "flush",
            "discard",
            "write_zeroes",
            "punch",
            "mark",
        ][self as usize]
    }

    /// True if the range reads as zeros afterwards.
    pub fn clears(self) -> bool {
        matches!(self, Op::Discard | Op::WriteZeroes | Op::Punch)
    }

    /// True if the event carries content.
    #[inline]
    pub fn has_content(self) -> bool {
        matches!(self, Op::Write | Op::Mark)
    }
}

/// One entry of the log. Times are nanoseconds since the recording began. Entries are in order of
/// completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time at which the disk received the request.
    pub submit_ns: u64,
    /// Time at which the effect was in the disk's cache or, for a flush, on the medium.
    pub complete_ns: u64,
    /// Byte offset on the disk; 0 for flushes and marks.
    pub offset: u64,
    /// Length in bytes; 0 for flushes. For marks, the length of the mark's content.
    pub length: u64,
    /// Offset of the content in the frame's content; 0 if there is none.
    pub content_offset: u32,
    /// Index into the header's disks.
    pub disk: u16,
    /// The operation.
    pub op: Op,
    /// Forced unit access: this write alone was durable on completion.
    pub fua: bool,
}

impl Event {
    /// Creates an event of the first disk at an instant, with no range.
    pub(crate) fn new(op: Op, at_ns: u64) -> Event {
        Event {
            submit_ns: at_ns,
            complete_ns: at_ns,
            offset: 0,
            length: 0,
            content_offset: 0,
            disk: 0,
            op,
            fua: false,
        }
    }

    /// Range of the event's content in its frame's content; empty if the event has none.
    pub(crate) fn content_range(&self) -> Range<usize> {
        let from = self.content_offset as usize;
        match self.op.has_content() {
            true => from..from + self.length as usize,
            false => 0..0,
        }
    }
}

/// A named instant, sent by the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Name of the interval that begins here; `end` closes the last one.
    pub name: String,
    /// Additional data from the lab, such as the kernel's counters.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub detail: serde_json::Value,
}

impl Mark {
    /// Maximum length of a mark's JSON form, in bytes.
    pub const MAX_BYTES: usize = 256 * 1024;

    /// Creates a mark without additional data.
    pub(crate) fn new(name: impl Into<String>) -> Mark {
        Mark {
            name: name.into(),
            detail: serde_json::Value::Null,
        }
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let (name, most) = (&self.name, Self::MAX_BYTES);
        let bytes =
            serde_json::to_vec(self).map_err(|e| Error::invalid(format!("mark {name}: {e}")))?;
        if bytes.len() > most {
            return Err(Error::invalid(format!(
                "mark {name} is longer than {most} bytes"
            )));
        }
        Ok(bytes)
    }

    /// Parses the mark in a frame's content.
    pub fn from_bytes(bytes: &[u8]) -> Result<Mark> {
        serde_json::from_slice(bytes)
            .map_err(|e| Error::new(ErrorKind::Corrupt, format!("a mark cannot be parsed: {e}")))
    }
}
