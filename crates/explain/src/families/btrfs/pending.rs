//! Written data whose owner is not known yet: data reaches the disk before the tree that points to
//! it. Rows that a log named also wait, for the paths of directories.

use crate::track::waiting::{MAX_WAITING, Piece, Waiting};
use crate::{Row, Rows, Structure};
use std::collections::BTreeMap;

/// Waiting data by disk.
#[derive(Debug, Default)]
pub struct Pending {
    disks: BTreeMap<u16, Waiting>,
    /// True if waiting rows may lie in chunks that were unknown when the rows were written.
    pub has_unmapped: bool,
}

/// A time in seconds and nanoseconds.
pub type Time = (u64, u32);

/// A file as a log described it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoggedFile {
    pub tree: u64,
    pub inode: u64,
    /// The nearest directory above it that the log does not name, if known.
    pub directory: Option<u64>,
    /// Number of names below that directory in the path of the file.
    pub depth: usize,
    /// The time of its last change before it was logged.
    pub changed: Option<Time>,
}

/// Rows by the file that a log named since the last commit.
#[derive(Debug, Default)]
pub struct Logged {
    pub rows: BTreeMap<LoggedFile, Vec<usize>>,
    pub count: usize,
}

impl Pending {
    /// Pushes `row`, which waits for an owner. Rows at the same place that have waited since before
    /// the last commit are given up: they never get an owner.
    pub fn push(&mut self, row: Row, rows: &mut Rows) {
        let most = MAX_WAITING / self.disks.len().max(1);
        let waiting = self.disks.entry(row.disk).or_default();
        waiting.take_old(row.offset, row.length, rows);
        self.has_unmapped |= row.structure == Structure::Unknown;
        waiting.insert(rows.push(row), row.offset, row.length, most);
    }

    pub fn is_empty(&self) -> bool {
        self.disks.values().all(Waiting::is_empty)
    }

    pub fn len(&self) -> usize {
        self.disks.values().map(Waiting::len).sum()
    }

    /// Returns whether any row in the range is waiting.
    pub fn touches(&mut self, disk: u16, offset: u64, length: u64) -> bool {
        let waiting = self.disks.get_mut(&disk);
        waiting.is_some_and(|waiting| waiting.touches(offset, length))
    }

    /// Completes all waiting rows in the range of `length` bytes at `offset`. Rows are split, so
    /// that `complete` gets only the parts within the range.
    pub fn claim(
        &mut self,
        disk: u16,
        offset: u64,
        length: u64,
        rows: &mut Rows,
        complete: impl Fn(&mut Row),
    ) {
        for number in self.take(disk, offset, length, rows) {
            if let Some(row) = rows.get_mut(number) {
                complete(row);
            }
        }
    }

    /// Removes the waiting rows in the range and returns their numbers, to complete them later.
    pub fn take(&mut self, disk: u16, offset: u64, length: u64, rows: &mut Rows) -> Vec<usize> {
        let waiting = self.disks.get_mut(&disk);
        waiting.map_or(Vec::new(), |waiting| waiting.take(offset, length, rows))
    }

    /// Restarts the waiting period of a piece.
    pub fn renew(&mut self, disk: u16, piece: Piece) {
        if let Some(waiting) = self.disks.get_mut(&disk) {
            waiting.renew(&piece);
        }
    }

    /// Returns the pieces that are still waiting, with their disks.
    pub fn waiting(&mut self) -> Vec<(u16, Piece)> {
        let disks = self.disks.iter_mut();
        let pieces =
            disks.map(|(&disk, waiting)| waiting.pieces().into_iter().map(move |p| (disk, p)));
        pieces.flatten().collect()
    }

    /// Records a commit: rows that have waited for `commits` commits are given up.
    pub fn grow_old(&mut self, commits: u32) {
        self.disks
            .values_mut()
            .for_each(|waiting| waiting.commit(commits));
        self.has_unmapped &= !self.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_writes_of_one_place_wait_for_the_same_owner() {
        let (mut pending, mut rows) = (Pending::default(), Rows::default());
        for _ in 0..2 {
            pending.push(Row::data(4096, 4096), &mut rows);
        }
        pending.claim(0, 4096, 4096, &mut rows, |row| row.inode = 7);
        assert!(rows.to_vec().iter().all(|r| r.inode == 7));
    }

    #[test]
    fn what_was_not_owned_at_a_commit_is_not_owned_by_what_comes_after_it() {
        let (mut pending, mut rows) = (Pending::default(), Rows::default());
        pending.push(Row::data(0, 12288), &mut rows);
        pending.grow_old(2);
        pending.push(Row::data(4096, 4096), &mut rows);
        pending.claim(0, 0, 8192, &mut rows, |row| row.inode = 7);
        let rows = rows.to_vec().into_iter();
        let mut found: Vec<_> = rows.map(|r| (r.offset, r.length, r.inode)).collect();
        found.sort();
        assert_eq!(
            found,
            [
                (0, 4096, 7),
                (4096, 4096, 0),
                (4096, 4096, 7),
                (8192, 4096, 0)
            ]
        );
    }
}
