//! The contract between the engine and a family: what a family is given, and what it answers.

use crate::{Causes, Disks, NO_INODE, Row, Rows, Structure};
use fscost_recording::Result;

/// One write as a family sees it.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// The event's number.
    pub event: u64,
    /// When it completed, nanoseconds since the recording began.
    pub time_ns: u64,
    /// Index of the disk.
    pub disk: u16,
    /// Byte offset.
    pub offset: u64,
    /// What was written; for a write-zeroes, empty.
    pub content: &'a [u8],
    /// Bytes (the content's length, but for a write-zeroes).
    pub length: u64,
    /// Whether it is before the mark `mount`: mkfs and its kin wrote it.
    pub formatting: bool,
}

impl<'a> Write<'a> {
    /// One row for the whole write, without an owner.
    pub fn row(&self, structure: Structure, causes: Causes) -> Row {
        Row {
            event: self.event,
            disk: self.disk,
            offset: self.offset,
            length: self.length,
            structure,
            home: None,
            home_offset: None,
            causes,
            inode: NO_INODE,
            tree: 0,
            path: None,
            transaction: None,
            copy: 0,
            is_doubtful: false,
        }
    }

    /// The part of the write that begins at byte `from` and is `length` bytes long.
    pub fn part(&self, from: u64, length: u64) -> Write<'a> {
        let content = usize::try_from(from)
            .ok()
            .and_then(|at| self.content.get(at..));
        let content = content.unwrap_or_default();
        let end = usize::try_from(length)
            .unwrap_or(usize::MAX)
            .min(content.len());
        Write {
            offset: self.offset + from,
            length,
            content: &content[..end],
            ..*self
        }
    }
}

/// What a disk holds with the write that is being looked at.
pub struct Now<'r, 'd> {
    /// That write.
    pub write: &'r Write<'r>,
    /// The disks without it.
    pub disks: &'r mut Disks<'d>,
}

impl Now<'_, '_> {
    /// Read the disk of the write.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        let Write { disk, content, .. } = *self.write;
        self.disks.read(disk, offset, into)?;
        let end = offset.saturating_add(into.len() as u64);
        let stop = self.write.offset.saturating_add(content.len() as u64);
        let (from, to) = (offset.max(self.write.offset), end.min(stop));
        if from < to {
            let at = |place: u64, begin: u64| (place - begin) as usize;
            let written = &content[at(from, self.write.offset)..at(to, self.write.offset)];
            into[at(from, offset)..at(to, offset)].copy_from_slice(written);
        }
        Ok(())
    }
}

/// Follows one file system. Every write on its disks must become rows that cover it exactly,
/// without gaps or overlap; it may push them later, and
/// complete them until [`finish`](Family::finish).
pub trait Family {
    /// Its name: `ext`, `xfs`, `btrfs`.
    fn name(&self) -> &'static str;

    /// Whether this disk is (part of) the file system: its main device, external journal or log, or
    /// a member.
    fn owns(&self, disk: u16) -> bool;

    /// Whether `write` looks at the content of every write. Where it need not, content stays packed
    /// until [`reads`](Self::reads) asks for it.
    fn reads_all(&self) -> bool {
        true
    }

    /// Whether `write` will look at the content of this write, were it the next. Where it is
    /// `false`,
    /// `write` gets zeros of the same length.
    fn reads(&self, _disk: u16, _offset: u64, _length: u64) -> bool {
        true
    }

    /// A write or write-zeroes on a disk of its own. `disks` do not have it yet.
    fn write(&mut self, write: &Write<'_>, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()>;

    /// Whether all of the range is now in use for what no discard touches: a hole punched there was
    /// zeroes written. `false` where that cannot be
    /// told; xfs and btrfs write none that may unmap.
    fn is_in_use(&self, _disk: u16, _offset: u64, _length: u64) -> bool {
        false
    }

    /// A discard: the range reads as zeros. Most know what was released from the metadata before.
    fn discard(&mut self, _disk: u16, _offset: u64, _length: u64, _rows: &mut Rows) -> Result<()> {
        Ok(())
    }

    /// A flush has completed.
    fn flush(&mut self, _disk: u16, _event: u64, _rows: &mut Rows) -> Result<()> {
        Ok(())
    }

    /// A mark: between the phases of a run all is on the disk.
    fn mark(&mut self, _event: u64, _disks: &mut Disks<'_>, _rows: &mut Rows) -> Result<()> {
        Ok(())
    }

    /// An unmount or the recording's end: say what is left to say.
    fn finish(&mut self, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()>;
}
