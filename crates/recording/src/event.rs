//! One request that a disk received, or one mark.

use crate::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// What was asked of the disk. The numbers are those of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Bytes were read; their content is not kept.
    Read = 0,
    /// Bytes were written; their content is in the frame.
    Write = 1,
    /// What had completed before this was issued is durable once this has completed.
    Flush = 2,
    /// The range's content is no longer needed; it reads as zeros here.
    Discard = 3,
    /// The range now reads as zeros.
    WriteZeroes = 4,
    /// `Discard`, or `WriteZeroes` that may unmap: a loop device sends the same request for both.
    /// Reads as zeros.
    Punch = 5,
    /// A named instant; its content is a [`Mark`] as JSON.
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

    /// The operation with this number.
    pub fn from_number(number: u8) -> Option<Op> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The name used in tables and exports.
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

    /// Whether the range reads as zeros afterwards.
    pub fn clears(self) -> bool {
        matches!(self, Op::Discard | Op::WriteZeroes | Op::Punch)
    }

    /// Whether the event carries content.
    pub fn has_content(self) -> bool {
        matches!(self, Op::Write | Op::Mark)
    }
}

/// One entry of the log. Times are nanoseconds since the recording began; entries are in the order
/// of completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When the disk received the request.
    pub submit_ns: u64,
    /// When its effect was in the disk's cache (or, for a flush, on the medium).
    pub complete_ns: u64,
    /// Byte offset on the disk; 0 for flushes and marks.
    pub offset: u64,
    /// Bytes; 0 for flushes; for marks, the length of the mark's content.
    pub length: u64,
    /// Where the content begins among the frame's content; 0 when there is none.
    pub content_offset: u32,
    /// Index into the header's disks.
    pub disk: u16,
    /// The operation.
    pub op: Op,
    /// Forced unit access: this write alone was durable at its completion.
    pub fua: bool,
}

/// A named instant, sent by the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The interval that begins here; `end` closes the last.
    pub name: String,
    /// Whatever the lab wants kept with it (the kernel's counters).
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub detail: serde_json::Value,
}

impl Mark {
    /// The longest JSON form that a mark may have.
    pub const MAX_BYTES: usize = 256 * 1024;

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let bytes = serde_json::to_vec(self)
            .map_err(|e| Error::new(ErrorKind::Invalid, format!("mark {}: {e}", self.name)))?;
        if bytes.len() > Self::MAX_BYTES {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "mark {} is longer than {} bytes",
                    self.name,
                    Self::MAX_BYTES
                ),
            ));
        }
        Ok(bytes)
    }

    /// The mark in a frame's content.
    pub fn from_bytes(bytes: &[u8]) -> Result<Mark> {
        serde_json::from_slice(bytes).map_err(|e| {
            Error::new(
                ErrorKind::Corrupt,
                format!("a mark is not what was written: {e}"),
            )
        })
    }
}
