//! Owners of blocks according to written metadata, and data that waits for its owner.
//!
//! xfs writes data before the log names its owner: the allocation is in the in-memory log when the
//! data is submitted, and reaches the log on disk with the next checkpoint. A data row of unknown
//! owner therefore waits for the checkpoints that follow, and is *claimed* by the inode that turns
//! out to have its blocks.

use crate::hash::HashMap;
use crate::track::newer::{Age, Newer};
use crate::track::reused::{self, Open, Reused};
use crate::track::runs::Runs;
use crate::track::waiting::{MAX_WAITING, Piece, Waiting};
use crate::{Rows, Shift, Structure};
use std::{cmp::Reverse, mem::take};

/// Owner of a run of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Inode number.
    pub inode: u64,
    /// Structure of the inode's blocks.
    pub structure: Structure,
    /// Place of the blocks in the inode's fork, if known.
    pub shift: Option<Shift>,
}

impl Owner {
    fn file(&self) -> reused::Owner {
        reused::Owner {
            inode: self.inode,
            shift: self.shift,
        }
    }

    /// Returns whether both are the same fork of the same inode, at any place.
    fn is_of(&self, other: &Owner) -> bool {
        (self.inode, self.structure) == (other.inode, other.structure)
    }
}

/// Number of log records with checkpoints that a row waits. A checkpoint may have begun before the
/// blocks were allocated, and end after the data was written.
const PATIENCE: u32 = 3;

/// Owners of blocks (numbered from the start of the disk), and rows that wait for an owner.
#[derive(Debug, Default)]
pub struct Owners {
    owners: Runs<Owner>,
    /// Blocks freed by the checkpoint being read.
    dropped: Runs<Owner>,
    /// Blocks that the checkpoint gave to others, by previous owner: all may share them (reflink).
    sharing: HashMap<u64, Runs<()>>,
    /// Blocks that the checkpoint gave to an owner.
    given: Runs<()>,
    taken: Vec<Taken>,
    open: Open,
    waiting: Waiting,
    /// Data rows at whose places the log named metadata since the caller last took them. Nothing
    /// has overwritten them.
    pub(super) misplaced: Vec<usize>,
}

/// Blocks of one inode that the checkpoint being read gives to another.
#[derive(Debug, Clone, Copy)]
struct Taken {
    start: u64,
    end: u64,
    from: Owner,
    to: Owner,
    /// True if the same checkpoint had already given the blocks to the first inode.
    is_given: bool,
}

impl Owners {
    /// Returns the owner of a block, and the number of blocks (at most `most`) from it on with the
    /// same owner.
    pub fn of(&self, block: u64, most: u64) -> (Option<Owner>, u64) {
        match self.owners.at(block) {
            Some((end, owner)) => (Some(owner), most.min(end - block)),
            None => (
                None,
                most.min(self.owners.next(block).map_or(most, |next| next - block)),
            ),
        }
    }

    /// Gives these blocks to `owner`. If `may_share`, the owner may share them with others.
    pub fn give(&mut self, block: u64, count: u64, owner: Owner, may_share: bool) {
        let end = block.saturating_add(count);
        let owned = self.owners.take(block, end);
        for &(start, end, before) in &owned {
            if may_share && before.structure == owner.structure && before.inode != owner.inode {
                let shared = self.sharing.entry(before.inode).or_default();
                shared.take(start, end);
                shared.insert(start, end, ());
            }
        }
        for (start, end, before) in owned.into_iter().chain(self.dropped.take(block, end)) {
            if owner.structure == Structure::FileData && !before.is_of(&owner) {
                self.taken.push(Taken {
                    start,
                    end,
                    from: before,
                    to: owner,
                    is_given: self.given.at(start).is_some(),
                });
            }
        }
        if count > 0 {
            self.owners.insert(block, end, owner);
            self.given.take(block, end);
            self.given.insert(block, end, ());
        }
    }

    /// Removes these blocks from `inode`.
    pub fn drop_of(&mut self, block: u64, count: u64, inode: u64) {
        let end = block.saturating_add(count);
        if let Some(shared) = self.sharing.get_mut(&inode) {
            shared.take(block, end);
        }
        for (start, end, owner) in self.owners.take(block, end) {
            if owner.inode != inode {
                self.owners.insert(start, end, owner);
            } else {
                self.dropped.take(start, end);
                self.dropped.insert(start, end, owner);
            }
        }
    }

    /// Adds a pushed data row without an owner to the waiting rows.
    pub fn wait(&mut self, row: usize, offset: u64, length: u64) {
        self.waiting.insert(row, offset, length, MAX_WAITING);
    }

    /// Returns the rows that wait for an owner and that no other of them has overwritten.
    pub fn newest_waiting(&mut self, rows: &mut Rows) -> Vec<Piece> {
        let mut pieces = self.waiting.pieces();
        pieces.sort_by_cached_key(|piece| Reverse(rows.age(piece.row)));
        let mut newer = Newer::default();
        pieces.retain(|piece| {
            let end = piece.offset.saturating_add(piece.length);
            newer.add(piece.offset, end, ()) == Age::Newest
        });
        pieces
    }

    /// Handles the end of mkfs: rows without an owner stay without one.
    pub fn end_formatting(&mut self) {
        self.waiting = Waiting::default();
    }

    /// Drops the rows that wait in a range in which metadata is now written: they belonged to
    /// another owner.
    pub fn forget(&mut self, offset: u64, length: u64, rows: &mut Rows) {
        self.waiting.take(offset, length, rows);
    }

    /// Attributes the rows that wait in this range to `owner`, cut to the range. Returns their
    /// numbers.
    ///
    /// Rows written before an earlier checkpoint and overwritten since may belong to another owner,
    /// so they are left out. Freed blocks are not reused for data before the log contains the free
    /// (`xfs_extent_busy_trim`), so two writes with no checkpoint between them both belong to
    /// `owner`.
    /// Metadata is written home after the checkpoint that allocated its block. Data that waits
    /// there belongs to a file that released the block before the log contained it.
    pub fn claim(&mut self, offset: u64, length: u64, owner: Owner, rows: &mut Rows) -> Vec<usize> {
        let mut taken = self.waiting.take_with_commits(offset, length, rows);
        let is_alone = taken.len() < 2;
        taken.sort_by_cached_key(|&(number, _)| Reverse(rows.age(number)));
        let is_metadata = owner.structure != Structure::FileData;
        let (mut newer, mut claimed) = (Newer::default(), Vec::new());
        for (number, commit) in taken {
            let Some(row) = rows.get_mut(number) else {
                continue;
            };
            let end = row.offset.saturating_add(row.length);
            let age = match is_alone {
                true => Age::Newest,
                false => newer.add(row.offset, end, commit),
            };
            if is_metadata && row.structure == Structure::FileData {
                let is_newest = age == Age::Newest;
                self.misplaced.extend(is_newest.then_some(number));
            } else if age != Age::OfBefore {
                row.structure = owner.structure;
                row.inode = owner.inode;
                row.shift = owner.shift;
                claimed.push(number);
            }
        }
        claimed
    }

    /// Handles a checkpoint in the log.
    ///
    /// Returns the rows that belong to another owner because of this checkpoint, with that owner.
    /// Blocks that two inodes share from now on were written by one of them. If this checkpoint is
    /// the first to name both, the writer is unknown and the rows become doubtful.
    pub fn checkpoint(&mut self, block_bytes: u64, rows: &mut Rows) -> Vec<(usize, u64)> {
        self.dropped = Runs::default();
        self.given = Runs::default();
        let sharing = take(&mut self.sharing);
        let (mut reused, mut shared) = (Reused::default(), Reused::default());
        for taken in take(&mut self.taken) {
            let Taken { start, end, .. } = taken;
            let offset = start.saturating_mul(block_bytes);
            let length = (end - start).saturating_mul(block_bytes);
            let mut owners = self.owners.within(start, end);
            let runs = sharing.get(&taken.from.inode);
            let has_shared = runs.is_some_and(|runs| runs.within(start, end).next().is_some());
            if !has_shared && !owners.any(|owner| owner.inode == taken.from.inode) {
                reused.add(offset, length, taken.from.inode, taken.to.file());
            } else if taken.is_given {
                shared.add(offset, length, taken.from.inode, taken.from.file());
            }
        }
        for (row, _) in shared.settle(self.open.first(), rows) {
            if let Some(row) = rows.get_mut(row) {
                row.is_doubtful = true;
            }
        }
        reused.settle(self.open.first(), rows)
    }

    /// Handles the end of a log record with checkpoints. Rows that have waited too long stay without
    /// an owner: their file was removed before it was ever logged.
    ///
    /// A record counts once, however many checkpoints end in it: threads that call fsync make many
    /// of them while a row waits.
    pub fn record(&mut self, rows: &Rows) {
        self.waiting.commit(PATIENCE);
        // The time at which a checkpoint was closed and the next one opened is not known, except
        // that the previous record was in the log by then.
        self.open.next(0, rows.next());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Row;

    fn owner(inode: u64) -> Owner {
        Owner {
            inode,
            structure: Structure::FileData,
            shift: None,
        }
    }

    fn push(rows: &mut Rows, offset: u64, length: u64) -> usize {
        rows.push(Row::data(offset, length))
    }

    #[test]
    fn the_newest_owner_wins() {
        let mut owners = Owners::default();
        owners.give(10, 10, owner(1), false);
        owners.give(14, 2, owner(2), false);
        assert_eq!(owners.of(10, 99), (Some(owner(1)), 4));
        assert_eq!(owners.of(15, 99), (Some(owner(2)), 1));
        assert_eq!(owners.of(16, 99), (Some(owner(1)), 4));
        assert_eq!(owners.of(0, 99), (None, 10));
        owners.drop_of(0, 99, 1);
        assert_eq!(owners.of(0, 99), (None, 14));
        assert_eq!(owners.of(14, 99), (Some(owner(2)), 2));
    }

    /// Writes a block of one inode and then gives it to a second one. Returns the inode of the row,
    /// and whether it is doubtful.
    fn written_and_cloned(is_logged: bool, is_kept: bool, may_share: bool) -> (u64, bool) {
        let (mut owners, mut rows) = (Owners::default(), Rows::default());
        let row = push(&mut rows, 0, 1);
        owners.wait(row, 0, 1);
        owners.give(0, 1, owner(1), false);
        owners.claim(0, 1, owner(1), &mut rows);
        if is_logged {
            owners.checkpoint(1, &mut rows);
            owners.record(&rows);
        }
        owners.give(0, 1, owner(2), may_share);
        if !is_kept {
            owners.drop_of(0, 1, 1);
        }
        owners.checkpoint(1, &mut rows);
        let row = rows.to_vec()[row];
        (row.inode, row.is_doubtful)
    }

    #[test]
    fn what_was_cloned_is_still_whose_it_was_unless_that_let_it_go() {
        assert_eq!(written_and_cloned(true, true, true), (1, false));
        assert_eq!(written_and_cloned(false, true, true), (1, true));
        assert_eq!(written_and_cloned(true, false, true), (2, false));
        assert_eq!(written_and_cloned(true, true, false), (2, false));
    }

    #[test]
    fn the_writer_of_blocks_that_several_files_share_at_once_is_doubtful() {
        let (mut owners, mut rows) = (Owners::default(), Rows::default());
        let row = push(&mut rows, 0, 1);
        owners.wait(row, 0, 1);
        owners.give(0, 1, owner(1), true);
        owners.claim(0, 1, owner(1), &mut rows);
        for inode in [2, 3] {
            owners.give(0, 1, owner(inode), true);
        }
        owners.checkpoint(1, &mut rows);
        let row = rows.to_vec()[row];
        assert_eq!((row.inode, row.is_doubtful), (1, true));
    }

    #[test]
    fn what_was_written_over_is_claimed_unless_a_checkpoint_came_between() {
        for (is_later, expected) in [(false, [1, 1]), (true, [0, 1])] {
            let (mut owners, mut rows) = (Owners::default(), Rows::default());
            for _ in 0..2 {
                let row = push(&mut rows, 0, 100);
                owners.wait(row, 0, 100);
                if is_later {
                    owners.record(&rows);
                }
            }
            owners.claim(0, 100, owner(1), &mut rows);
            let inodes = rows.to_vec().into_iter().map(|row| row.inode);
            assert!(inodes.eq(expected));
        }
    }

    #[test]
    fn what_is_left_of_an_older_write_is_not_newer_than_a_later_one() {
        let (mut owners, mut rows) = (Owners::default(), Rows::default());
        for (event, offset) in [(1, 0), (2, 50)] {
            let length = 100 - offset;
            let row = rows.push(Row {
                event,
                ..Row::data(offset, length)
            });
            owners.wait(row, offset, length);
            owners.record(&rows);
        }
        for (offset, inode) in [(0, 7), (50, 8)] {
            owners.claim(offset, 50, owner(inode), &mut rows);
        }
        let rows = rows.to_vec().into_iter();
        let found: Vec<_> = rows.map(|row| (row.event, row.offset, row.inode)).collect();
        assert_eq!(found, [(1, 0, 7), (2, 50, 8), (1, 50, 0)]);
    }

    #[test]
    fn what_metadata_was_written_over_is_not_claimed() {
        let (mut owners, mut rows) = (Owners::default(), Rows::default());
        let row = push(&mut rows, 0, 100);
        owners.wait(row, 0, 100);
        owners.forget(50, 10, &mut rows);
        assert_eq!(owners.claim(0, 100, owner(1), &mut rows).len(), 2);
        let mut found: Vec<_> = rows
            .to_vec()
            .iter()
            .map(|r| (r.offset, r.length, r.inode))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [(0, 50, 1), (50, 10, 0), (60, 40, 1)]);
    }

    #[test]
    fn data_that_waits_where_a_directory_is_later_is_not_its() {
        for (is_mkfs, expected) in [(false, 0), (true, 2)] {
            let (mut owners, mut rows) = (Owners::default(), Rows::default());
            let row = push(&mut rows, 0, 100);
            if is_mkfs {
                rows.get_mut(row).unwrap().structure = Structure::Unknown;
            }
            owners.wait(row, 0, 100);
            let directory = Owner {
                inode: 2,
                structure: Structure::DirectoryIndex,
                shift: None,
            };
            owners.claim(0, 100, directory, &mut rows);
            assert!(owners.claim(0, 100, owner(3), &mut rows).is_empty());
            assert_eq!(rows.to_vec()[row].inode, expected);
        }
    }

    #[test]
    fn patience_ends() {
        let (mut owners, mut rows) = (Owners::default(), Rows::default());
        let row = push(&mut rows, 0, 100);
        owners.wait(row, 0, 100);
        for _ in 0..PATIENCE {
            owners.record(&rows);
        }
        assert!(owners.claim(0, 100, owner(1), &mut rows).is_empty());
    }
}
