//! Explanation of one written extent.

use crate::{Cause, Causes, PathId, Structure};

/// [`Row::inode`] of blocks that belong to no inode.
pub const NO_INODE: u64 = 0;

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

    /// Returns the row in its final form. File data whose owner never became known is marked
    /// doubtful, except during mkfs, which has no files.
    pub(super) fn finished(&self) -> Row {
        let is_data = self.home.unwrap_or(self.structure) == Structure::FileData;
        let is_nobodys = is_data && self.inode == NO_INODE && !self.causes.has(Cause::Format);
        Row {
            is_doubtful: self.is_doubtful || is_nobodys,
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
