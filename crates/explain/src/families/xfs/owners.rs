//! Which inode owns which blocks, as far as metadata that was written says; and the data that waits
//! for its owner.
//!
//! xfs writes data before the log says whose it is: the allocation is in the log's memory when the
//! data is sent, and reaches the log with the
//! next checkpoint. So a data row of unknown owner waits for the checkpoints that follow, and is
//! *claimed* by the inode that
//! turns out to have its blocks.

use crate::track::newer::{Age, Newer};
use crate::track::reused::{Open, Reused};
use crate::track::runs::Runs;
use crate::track::waiting::{MAX_WAITING, Waiting};
use crate::{Rows, Structure};
use std::{cmp::Reverse, mem::take};

/// Who owns a run of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The inode.
    pub inode: u64,
    /// What its blocks are.
    pub structure: Structure,
}

/// Checkpoints that a row waits for: one may have begun before the blocks were allocated, and end
/// after the data was written.
const PATIENCE: u32 = 3;

/// Owners of blocks (numbered from the disk's begin), and rows that wait.
#[derive(Debug, Default)]
pub struct Owners {
    owners: Runs<Owner>,
    /// What the checkpoint that is being read has freed.
    dropped: Runs<Owner>,
    /// Those who had what it has given to others, and may share it with them (reflink).
    sharing: Runs<Owner>,
    /// What it has given to somebody.
    given: Runs<()>,
    taken: Vec<Taken>,
    open: Open,
    waiting: Waiting,
}

/// Blocks of one inode that the checkpoint that is being read says are another's.
#[derive(Debug, Clone, Copy)]
struct Taken {
    start: u64,
    end: u64,
    from: u64,
    to: u64,
    /// Whether this checkpoint says first that they are the one's, too.
    is_given: bool,
}

impl Owners {
    /// The owner of a block, and how many blocks from it on have the same answer (at most `most`).
    pub fn of(&self, block: u64, most: u64) -> (Option<Owner>, u64) {
        match self.owners.at(block) {
            Some((end, owner)) => (Some(owner), most.min(end - block)),
            None => (
                None,
                most.min(self.owners.next(block).map_or(most, |next| next - block)),
            ),
        }
    }

    /// These blocks are `owner`'s from now on, who `may_share` them with others.
    pub fn give(&mut self, block: u64, count: u64, owner: Owner, may_share: bool) {
        let end = block.saturating_add(count);
        let owned = self.owners.take(block, end);
        for &(start, end, before) in &owned {
            if may_share && before.structure == owner.structure && before.inode != owner.inode {
                self.sharing.take(start, end);
                self.sharing.insert(start, end, before);
            }
        }
        for (start, end, before) in owned.into_iter().chain(self.dropped.take(block, end)) {
            if owner.structure == Structure::FileData && before != owner {
                self.taken.push(Taken {
                    start,
                    end,
                    from: before.inode,
                    to: owner.inode,
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

    /// These blocks are no longer `inode`'s.
    pub fn drop_of(&mut self, block: u64, count: u64, inode: u64) {
        let end = block.saturating_add(count);
        for (start, end, owner) in self.sharing.take(block, end) {
            if owner.inode != inode {
                self.sharing.insert(start, end, owner);
            }
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

    /// A data row without owner was pushed.
    pub fn wait(&mut self, row: usize, offset: u64, length: u64) {
        self.waiting.insert(row, offset, length, MAX_WAITING);
    }

    /// mkfs has ended: what has no owner by now has none.
    pub fn end_formatting(&mut self) {
        self.waiting = Waiting::default();
    }

    /// Metadata is written here now: what waited here was of another.
    pub fn forget(&mut self, offset: u64, length: u64, rows: &mut Rows) {
        self.waiting.take(offset, length, rows);
    }

    /// The rows that wait in this range belong to `owner`: they are cut to it. Gives their numbers.
    /// What was written there before an earlier
    /// checkpoint, and again since, may be another's; blocks that are freed are not given to data
    /// before that is in the log
    /// (`xfs_extent_busy_trim`), so without a checkpoint between them both are its own.
    pub fn claim(&mut self, offset: u64, length: u64, owner: Owner, rows: &mut Rows) -> Vec<usize> {
        let mut taken = self.waiting.take_with_commits(offset, length, rows);
        if taken.len() > 1 {
            taken.sort_by_cached_key(|&(number, _)| Reverse(rows.age(number)));
            let mut newer = Newer::default();
            taken.retain(|&(number, commit)| {
                let row = rows.get_mut(number);
                row.is_some_and(|row| {
                    let end = row.offset.saturating_add(row.length);
                    newer.add(row.offset, end, commit) != Age::OfBefore
                })
            });
        }
        let numbers: Vec<_> = taken.into_iter().map(|(number, _)| number).collect();
        for &number in &numbers {
            if let Some(row) = rows.get_mut(number) {
                row.structure = owner.structure;
                row.inode = owner.inode;
            }
        }
        numbers
    }

    /// A checkpoint is in the log. Rows that have waited for long have no owner: their file was
    /// removed before the log ever knew of it. Gives the rows that are another's by this
    /// checkpoint, and whose. Blocks that two inodes share since were written by one of them:
    /// nothing says by which, if this checkpoint is the first to name both.
    pub fn checkpoint(&mut self, block_bytes: u64, rows: &mut Rows) -> Vec<(usize, u64)> {
        self.waiting.commit(PATIENCE);
        self.dropped = Runs::default();
        self.given = Runs::default();
        let sharing = take(&mut self.sharing);
        let (mut reused, mut shared) = (Reused::default(), Reused::default());
        for taken in take(&mut self.taken) {
            let Taken { start, end, .. } = taken;
            let offset = start.saturating_mul(block_bytes);
            let length = (end - start).saturating_mul(block_bytes);
            let had = |runs: &Runs<Owner>| runs.within(start, end).any(|o| o.inode == taken.from);
            if !had(&self.owners) && !had(&sharing) {
                reused.add(offset, length, taken.from, taken.to);
            } else if taken.is_given {
                shared.add(offset, length, taken.from, taken.from);
            }
        }
        for (row, _) in shared.settle(&self.open, rows) {
            if let Some(row) = rows.get_mut(row) {
                row.is_doubtful = true;
            }
        }
        let settled = reused.settle(&self.open, rows);
        // When a checkpoint began to be written, and the next was opened, is not kept: it was after
        // the last.
        self.open.next(0, rows.next());
        settled
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

    /// Two inodes have a block since a checkpoint, that was written just before; returns its owner.
    fn written_and_cloned(is_logged: bool, is_kept: bool, may_share: bool) -> (u64, bool) {
        let (mut owners, mut rows) = (Owners::default(), Rows::default());
        let row = push(&mut rows, 0, 1);
        owners.wait(row, 0, 1);
        owners.give(0, 1, owner(1), false);
        owners.claim(0, 1, owner(1), &mut rows);
        if is_logged {
            owners.checkpoint(1, &mut rows);
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
    fn what_was_written_over_is_claimed_unless_a_checkpoint_came_between() {
        for (is_later, expected) in [(false, [1, 1]), (true, [0, 1])] {
            let (mut owners, mut rows) = (Owners::default(), Rows::default());
            for _ in 0..2 {
                let row = push(&mut rows, 0, 100);
                owners.wait(row, 0, 100);
                if is_later {
                    owners.checkpoint(1, &mut rows);
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
            owners.checkpoint(1, &mut rows);
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
    fn patience_ends() {
        let (mut owners, mut rows) = (Owners::default(), Rows::default());
        let row = push(&mut rows, 0, 100);
        owners.wait(row, 0, 100);
        for _ in 0..PATIENCE {
            owners.checkpoint(1, &mut rows);
        }
        assert!(owners.claim(0, 100, owner(1), &mut rows).is_empty());
    }
}
