//! Rows whose owner is not known yet: data reaches the disk before the metadata that says whose it is.

use crate::classify::{Row, Rows};
use std::collections::BTreeMap;

/// A row, or what is left of it, that waits on one disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The row, which is of exactly these bytes.
    pub row: usize,
    /// Where it was written.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// How many commits have passed since.
    pub age: u64,
}

#[derive(Debug, Clone, Copy)]
struct Waiter {
    length: u64,
    /// Commits before it.
    commit: u64,
}

/// The rows that wait on one disk. One place may have been written several times.
#[derive(Debug, Default)]
pub struct Waiting {
    /// By the power of two that they are not longer than, so that one long row does not make every look-up long; then by offset and row.
    classes: BTreeMap<u32, BTreeMap<(u64, usize), Waiter>>,
    commits: u64,
}

fn class_of(length: u64) -> u32 {
    length.max(1).ilog2() + 1
}

impl Waiting {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Row `row`, of `length` bytes at `offset`, waits from now on.
    pub fn insert(&mut self, row: usize, offset: u64, length: u64) {
        self.wait(row, offset, length, self.commits);
    }

    fn wait(&mut self, row: usize, offset: u64, length: u64, commit: u64) {
        let class = self.classes.entry(class_of(length)).or_default();
        class.insert((offset, row), Waiter { length, commit });
    }

    fn overlapping(&self, offset: u64, length: u64) -> impl Iterator<Item = Piece> {
        let end = offset.saturating_add(length);
        let classes = self.classes.iter();
        classes.flat_map(move |(&class, waiters)| {
            let longest = 1u64.checked_shl(class).unwrap_or(u64::MAX);
            let near = waiters.range((offset.saturating_sub(longest), 0)..(end, 0));
            near.map(|(&key, waiter)| self.piece(key, waiter))
                .filter(move |piece| piece.offset.saturating_add(piece.length) > offset)
        })
    }

    fn piece(&self, (offset, row): (u64, usize), waiter: &Waiter) -> Piece {
        Piece {
            row,
            offset,
            length: waiter.length,
            age: self.commits - waiter.commit,
        }
    }

    /// Whether anything waits in the range.
    pub fn touches(&self, offset: u64, length: u64) -> bool {
        self.overlapping(offset, length).next().is_some()
    }

    /// What is in the range and of `which` waits no longer. Rows are cut to the range, and their numbers given; the rest of them goes on waiting
    /// as rows of its own.
    pub fn take(
        &mut self,
        offset: u64,
        length: u64,
        rows: &mut Rows,
        which: impl Fn(&Piece) -> bool,
    ) -> Vec<usize> {
        let end = offset.saturating_add(length);
        let taken: Vec<_> = self.overlapping(offset, length).filter(which).collect();
        let mut numbers = Vec::with_capacity(taken.len());
        for piece in taken {
            self.remove(&piece);
            let Some(row) = rows.get_mut(piece.row) else {
                continue;
            };
            let (whole, stop) = (*row, piece.offset.saturating_add(piece.length));
            let (begin, finish) = (piece.offset.max(offset), stop.min(end));
            (row.offset, row.length) = (begin, finish - begin);
            numbers.push(piece.row);
            for (from, to) in [(piece.offset, begin), (finish, stop)] {
                if from < to {
                    let rest = Row {
                        offset: from,
                        length: to - from,
                        ..whole
                    };
                    let number = rows.push(rest);
                    self.wait(number, from, to - from, self.commits - piece.age);
                }
            }
        }
        numbers
    }

    fn remove(&mut self, piece: &Piece) {
        let class = class_of(piece.length);
        if let Some(waiters) = self.classes.get_mut(&class) {
            waiters.remove(&(piece.offset, piece.row));
            if waiters.is_empty() {
                self.classes.remove(&class);
            }
        }
    }

    /// If it still waits, a piece waits as if from now on.
    pub fn renew(&mut self, piece: &Piece) {
        let commit = self.commits;
        let class = self.classes.get_mut(&class_of(piece.length));
        if let Some(waiter) = class.and_then(|c| c.get_mut(&(piece.offset, piece.row))) {
            waiter.commit = commit;
        }
    }

    /// All that wait, by place.
    pub fn pieces(&self) -> Vec<Piece> {
        let waiters = self.classes.values().flatten();
        let mut pieces: Vec<_> = waiters.map(|(&key, w)| self.piece(key, w)).collect();
        pieces.sort_unstable_by_key(|piece| (piece.offset, piece.row));
        pieces
    }

    /// A commit has taken effect: what has waited for `patience` of them is given up.
    pub fn commit(&mut self, patience: u64) {
        self.commits += 1;
        let commits = self.commits;
        self.classes.retain(|_, waiters| {
            waiters.retain(|_, waiter| commits - waiter.commit < patience);
            !waiters.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Cause, Causes, NO_INODE, Structure};
    use proptest::prelude::*;

    fn push(waiting: &mut Waiting, rows: &mut Rows, offset: u64, length: u64) {
        let row = rows.push(Row {
            event: 0,
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
        });
        waiting.insert(row, offset, length);
    }

    fn claim(waiting: &mut Waiting, rows: &mut Rows, offset: u64, length: u64, inode: u64) {
        for number in waiting.take(offset, length, rows, |_| true) {
            rows.get_mut(number).unwrap().inode = inode;
        }
    }

    fn found(rows: &Rows) -> Vec<(u64, u64, u64)> {
        let rows = rows.to_vec().into_iter();
        let mut found: Vec<_> = rows.map(|r| (r.offset, r.length, r.inode)).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn a_claim_in_the_middle_splits_a_row_in_three() {
        let (mut waiting, mut rows) = (Waiting::default(), Rows::default());
        push(&mut waiting, &mut rows, 8192, 16384);
        claim(&mut waiting, &mut rows, 12288, 4096, 7);
        assert_eq!(
            found(&rows),
            [(8192, 4096, 0), (12288, 4096, 7), (16384, 8192, 0)]
        );
        claim(&mut waiting, &mut rows, 0, u64::MAX, 8);
        assert!(waiting.is_empty());
        assert_eq!(
            found(&rows),
            [(8192, 4096, 8), (12288, 4096, 7), (16384, 8192, 8)]
        );
    }

    #[test]
    fn patience_ends_and_parts_of_a_row_are_as_old_as_the_row() {
        let (mut waiting, mut rows) = (Waiting::default(), Rows::default());
        push(&mut waiting, &mut rows, 0, 100);
        waiting.commit(2);
        claim(&mut waiting, &mut rows, 40, 20, 7);
        assert!(waiting.touches(0, 40) && !waiting.touches(40, 20) && waiting.touches(60, 1));
        assert!(waiting.pieces().iter().all(|piece| piece.age == 1));
        let first = waiting.pieces()[0];
        waiting.renew(&first);
        waiting.commit(2);
        assert_eq!(waiting.pieces(), [first]);
        waiting.commit(2);
        assert!(waiting.is_empty());
    }

    proptest! {
        /// Against a list of bytes, each with the rows that wait for it.
        #[test]
        fn every_byte_goes_to_the_first_claim_after_it(steps in prop::collection::vec((any::<bool>(), 0..200u64, 1..90u64), 1..60)) {
            let (mut waiting, mut rows) = (Waiting::default(), Rows::default());
            let mut bytes: Vec<(u64, u64)> = Vec::new();
            for (number, &(is_claim, offset, length)) in steps.iter().enumerate() {
                let inode = number as u64 + 1;
                if is_claim {
                    claim(&mut waiting, &mut rows, offset, length, inode);
                    let within = |at: u64| (offset..offset + length).contains(&at);
                    bytes.iter_mut().filter(|(at, owner)| *owner == 0 && within(*at)).for_each(|byte| byte.1 = inode);
                } else {
                    push(&mut waiting, &mut rows, offset, length);
                    bytes.extend((offset..offset + length).map(|at| (at, 0)));
                }
                let open = |at: u64| bytes.contains(&(at, 0));
                prop_assert_eq!(waiting.touches(offset, length), (offset..offset + length).any(open));
            }
            let mut of_rows: Vec<_> = rows.to_vec().iter().flat_map(|r| (r.offset..r.offset + r.length).map(|at| (at, r.inode))).collect();
            bytes.sort_unstable();
            of_rows.sort_unstable();
            prop_assert_eq!(bytes, of_rows);
        }
    }
}
