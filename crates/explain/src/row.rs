//! One written extent, explained.

use crate::{Cause, Causes, PathId, Structure};

/// [`Row::inode`] of what belongs to no inode.
pub const NO_INODE: u64 = 0;

/// A run of bytes of one write with one explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The event's number in the recording (marks included), from 0.
    pub event: u64,
    /// Index of the disk.
    pub disk: u16,
    /// Byte offset on the disk.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// What was written.
    pub structure: Structure,
    /// For a journal's copy, what the copied block is.
    pub home: Option<Structure>,
    /// For a journal's copy, the byte offset on the main disk of the block that it copies.
    pub home_offset: Option<u64>,
    /// Why.
    pub causes: Causes,
    /// The owning inode, or [`NO_INODE`]; for an inode table's block with one changed inode, that
    /// inode.
    pub inode: u64,
    /// The tree (btrfs: root objectid; else 0).
    pub tree: u64,
    /// The owner's path as of that write.
    pub path: Option<PathId>,
    /// The journal's, log's or tree's transaction that it belongs to, if it is known.
    pub transaction: Option<u64>,
    /// 0 for the first copy, 1… for further copies of the same content (DUP, RAID1).
    pub copy: u8,
    /// Whether the recording cannot tell the owner for certain: the inode is the most likely one,
    /// or missing.
    pub is_doubtful: bool,
}

impl Row {
    /// Data of nobody, for tests.
    #[cfg(test)]
    pub fn data(offset: u64, length: u64) -> Row {
        Row {
            event: 1,
            disk: 0,
            offset,
            length,
            structure: Structure::FileData,
            home: None,
            home_offset: None,
            causes: Causes::one(Cause::Data),
            inode: NO_INODE,
            tree: 0,
            path: None,
            transaction: None,
            copy: 0,
            is_doubtful: false,
        }
    }

    /// The row as it stays: file data whose owner never became known has a doubtful one. mkfs has
    /// no files.
    pub(super) fn finished(&self) -> Row {
        let is_data = self.home.unwrap_or(self.structure) == Structure::FileData;
        let is_nobodys = is_data && self.inode == NO_INODE && !self.causes.has(Cause::Format);
        Row {
            is_doubtful: self.is_doubtful || is_nobodys,
            ..*self
        }
    }

    /// Take `next` into this row, if it is the same write going on with the same explanation.
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
