//! Contract between the engine and a family: the input of a family, and its output.

use crate::{Causes, Disks, Row, Rows, Structure};
use fscost_recording::Result;

/// One write as the family sees it.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// Event number.
    pub event: u64,
    /// Time of completion, nanoseconds since the recording began.
    pub time_ns: u64,
    /// Index of the disk.
    pub disk: u16,
    /// Byte offset.
    pub offset: u64,
    /// Content; empty for a write-zeroes request.
    pub content: &'a [u8],
    /// Length in bytes. It equals the length of the content, except for a write-zeroes request.
    pub length: u64,
    /// True if the write precedes the mark `mount`, that is, mkfs or a similar tool wrote it.
    pub formatting: bool,
}

impl<'a> Write<'a> {
    /// Returns one row for the whole write, without an owner.
    pub fn row(&self, structure: Structure, causes: Causes) -> Row {
        Row {
            event: self.event,
            disk: self.disk,
            offset: self.offset,
            length: self.length,
            structure,
            causes,
            ..Row::default()
        }
    }

    /// Returns the part of the write that begins at byte `from` and is `length` bytes long.
    pub fn part(&self, from: u64, length: u64) -> Write<'a> {
        let within = |at: u64| at.min(self.content.len() as u64) as usize;
        let end = from.saturating_add(length);
        Write {
            offset: self.offset + from,
            length,
            content: &self.content[within(from)..within(end)],
            ..*self
        }
    }

    /// Removes and returns the first `length` bytes of the write, which has at least as many.
    pub fn take_front(&mut self, length: u64) -> Write<'a> {
        let front = self.part(0, length);
        *self = self.part(length, self.length - length);
        front
    }

    /// Returns whether the disk already holds the content of this write.
    pub fn is_on(&self, disks: &mut Disks<'_>) -> Result<bool> {
        let mut known = [0; 4096];
        let mut rest = *self;
        while rest.length > 0 {
            let part = rest.take_front(rest.length.min(known.len() as u64));
            let known = &mut known[..part.length as usize];
            disks.read(part.disk, part.offset, known)?;
            let is_same = match part.content {
                [] => known.iter().all(|&byte| byte == 0),
                content => known == content,
            };
            if !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The current write, the disks, and the rows to which its explanation is added.
pub struct Now<'r, 'd> {
    /// The current write.
    pub write: &'r Write<'r>,
    /// The disks before the current write.
    pub disks: &'r mut Disks<'d>,
    /// The rows so far.
    pub rows: &'r mut Rows,
}

impl Now<'_, '_> {
    /// Reads from the disk of the current write, as it is after that write.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        let Write { disk, content, .. } = *self.write;
        self.disks.read(disk, offset, into)?;
        let end = offset.saturating_add(into.len() as u64);
        let stop = self.write.offset.saturating_add(content.len() as u64);
        let (from, to) = (offset.max(self.write.offset), end.min(stop));
        if from < to {
            let written = self.write.part(from - self.write.offset, to - from);
            let into = &mut into[(from - offset) as usize..(to - offset) as usize];
            into.copy_from_slice(written.content);
        }
        Ok(())
    }
}

/// Follows one file system. Every write on its disks must become rows that cover it exactly,
/// without gaps or overlap. A family may push rows later, and may complete them until
/// [`finish`](Family::finish).
pub trait Family: Send {
    /// Returns the name of the family: `ext`, `xfs`, `btrfs`.
    fn name(&self) -> &'static str;

    /// Returns whether this disk is part of the file system: its main device, its external journal
    /// or log, or a member.
    fn owns(&self, disk: u16) -> bool;

    /// Returns whether `write` reads the content of every write. If it does not, content stays
    /// packed until [`reads`](Self::reads) asks for it.
    fn reads_all(&self) -> bool {
        true
    }

    /// Returns whether `write` would read the content of this write if it came next. If `false`,
    /// `write` gets zeros of the same length instead.
    fn reads(&self, _disk: u16, _offset: u64, _length: u64) -> bool {
        true
    }

    /// Explains a write or write-zeroes request on one of the family's disks. `disks` do not
    /// include it yet.
    fn write(&mut self, write: &Write<'_>, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()>;

    /// Returns whether the whole range is in use by blocks that are never discarded. If so, a hole
    /// punched there must have been a write of zeroes. Returns `false` if unknown; xfs and btrfs
    /// never issue write-zeroes requests that may unmap.
    fn is_in_use(&self, _disk: u16, _offset: u64, _length: u64) -> bool {
        false
    }

    /// Handles a discard: the range then reads as zeros. Most families already know from the
    /// metadata which blocks were freed.
    fn discard(&mut self, _disk: u16, _offset: u64, _length: u64, _rows: &mut Rows) -> Result<()> {
        Ok(())
    }

    /// Handles a completed flush.
    fn flush(&mut self, _disk: u16, _event: u64, _rows: &mut Rows) -> Result<()> {
        Ok(())
    }

    /// Handles a mark. Between the phases of a run, all data is on the disk.
    fn mark(&mut self, _event: u64, _disks: &mut Disks<'_>, _rows: &mut Rows) -> Result<()> {
        Ok(())
    }

    /// Completes the remaining rows at an unmount or at the end of the recording.
    fn finish(&mut self, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()>;
}
