//! One written extent, explained.

use crate::classify::{Causes, PathId, Paths, Structure};

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
    /// The owning inode, or [`NO_INODE`]; for an inode table's block with one changed inode, that inode.
    pub inode: u64,
    /// The tree (btrfs: root objectid; else 0).
    pub tree: u64,
    /// The owner's path as of that write.
    pub path: Option<PathId>,
    /// The journal's, log's or tree's transaction that it belongs to, if it is known.
    pub transaction: Option<u64>,
    /// 0 for the first copy, 1… for further copies of the same content (DUP, RAID1).
    pub copy: u8,
}

/// Where a family puts its rows.
#[derive(Debug, Default)]
pub struct Rows {
    rows: Vec<Row>,
    /// The paths that rows name.
    pub paths: Paths,
}

impl Rows {
    /// Add a row; its number, to change it by while it is known to be unfinished.
    pub fn push(&mut self, row: Row) -> usize {
        self.rows.push(row);
        self.rows.len() - 1
    }

    /// A row that was pushed: families complete rows when they learn who owns a block.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut Row> {
        self.rows.get_mut(number)
    }

    /// All rows so far.
    pub fn as_slice(&self) -> &[Row] {
        &self.rows
    }

    /// The rows in the order of events and offsets, neighbours of one write with the same explanation merged.
    pub(super) fn into_parts(self) -> (Vec<Row>, Paths) {
        let Rows { mut rows, paths } = self;
        rows.sort_by_key(|r| (r.event, r.offset));
        rows.dedup_by(|row, before| {
            let follows = Row {
                offset: before.offset.saturating_add(before.length),
                length: row.length,
                home_offset: before
                    .home_offset
                    .map(|home| home.saturating_add(before.length)),
                ..*before
            };
            let same = *row == follows;
            if same {
                before.length = before.length.saturating_add(row.length);
            }
            same
        });
        (rows, paths)
    }
}
