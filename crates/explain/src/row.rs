//! Explanation of one written extent.

use crate::{Cause, Causes, PathId, Structure};
use std::num::NonZeroU64;

/// [`Row::inode`] of blocks that belong to no inode.
pub const NO_INODE: u64 = 0;

/// Distance from an offset on a disk to the offset in the file whose data is there, modulo 2⁶⁴. It
/// is the same for all bytes of an extent, so that parts of a row need no other. Blocks begin at
/// even offsets; bit 0 is set, so that `Option<Shift>` takes no more space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shift(NonZeroU64);

impl Shift {
    /// Returns the distance from `offset` on the disk to `file_offset`.
    pub fn between(offset: u64, file_offset: u64) -> Shift {
        Shift::from_bits(file_offset.wrapping_sub(offset))
    }

    /// Returns the offset in the file of the byte at `offset` on the disk.
    pub fn file_offset(self, offset: u64) -> u64 {
        offset.wrapping_add(self.0.get() & !1)
    }

    pub(super) fn bits(self) -> u64 {
        self.0.get()
    }

    pub(super) fn from_bits(bits: u64) -> Shift {
        Shift(NonZeroU64::MIN | bits)
    }
}

/// Run of bytes of one write with one explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Row {
    /// Number of the event in the recording (marks included), from 0.
    pub event: u64,
    /// Index of the disk.
    pub disk: u16,
    /// Byte offset on the disk.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Kind of the written block.
    pub structure: Structure,
    /// Kind of the copied block, for a copy in a journal.
    pub home: Option<Structure>,
    /// Byte offset of the copied block on the main disk, for a copy in a journal.
    pub home_offset: Option<u64>,
    /// Reasons for the write.
    pub causes: Causes,
    /// The owning inode, or [`NO_INODE`]. A block of an inode table with a single changed inode has
    /// that inode.
    pub inode: u64,
    /// Distance to the offset in the owner, for file data whose place in its file is known.
    pub shift: Option<Shift>,
    /// The tree: for btrfs the root objectid, otherwise 0.
    pub tree: u64,
    /// Path of the owner at the time of the write.
    pub path: Option<PathId>,
    /// Transaction of the journal, log or tree that the write belongs to, if known.
    pub transaction: Option<u64>,
    /// Copy number: 0 for the first copy, 1… for further copies of the same content (DUP, RAID1).
    pub copy: u8,
    /// True if the recording does not determine the owner: `inode` is then the most likely one, or
    /// missing.
    pub is_doubtful: bool,
}

impl Row {
    /// Returns a row of data without an owner, for tests.
    #[cfg(test)]
    pub fn data(offset: u64, length: u64) -> Row {
        Row {
            event: 1,
            offset,
            length,
            structure: Structure::FileData,
            causes: Causes::one(Cause::Data),
            ..Row::default()
        }
    }

    /// Returns the offset in the owner of the row's first byte, for file data whose place in its
    /// file is known.
    pub fn file_offset(&self) -> Option<u64> {
        self.shift.map(|shift| shift.file_offset(self.offset))
    }

    /// Returns the row in its final form. File data whose owner never became known is marked
    /// doubtful, except during mkfs, which has no files. Only file data with an owner has a place
    /// in a file.
    pub(super) fn finished(&self) -> Row {
        let is_data = self.home.unwrap_or(self.structure) == Structure::FileData;
        let is_nobodys = is_data && self.inode == NO_INODE && !self.causes.has(Cause::Format);
        Row {
            is_doubtful: self.is_doubtful || is_nobodys,
            shift: self.shift.filter(|_| is_data && self.inode != NO_INODE),
            ..*self
        }
    }

    /// Merges `next` into this row if it continues the same write with the same explanation.
    pub(super) fn absorb(&mut self, next: &Row) -> bool {
        let follows = Row {
            offset: self.offset.saturating_add(self.length),
            length: next.length,
            home_offset: self
                .home_offset
                .map(|home| home.saturating_add(self.length)),
            ..*self
        };
        let same = *next == follows;
        if same {
            self.length = self.length.saturating_add(next.length);
        }
        same
    }
}
