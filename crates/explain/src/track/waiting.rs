//! Rows without a known owner: data reaches the disk before the metadata that names its owner.

use crate::{Row, Rows};
use std::collections::BTreeMap;

/// A row, or the remaining part of a row, that waits on one disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The row, which covers exactly these bytes.
    pub row: usize,
    /// Byte offset on the disk.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// Maximum number of waiting rows on all disks of a file system together; they take less than 200
/// MiB. That is 4 GiB in requests of 4 KiB between two commits. A recording may write without ever
/// committing; the rows that have waited longest are then dropped and stay without an owner.
pub const MAX_WAITING: usize = 1 << 20;
/// Maximum number of renewals of a piece. After that it is given up like others, because each
/// commit examines all waiting pieces.
const MAX_RENEWALS: u32 = 1024;

#[derive(Debug, Clone, Copy)]
struct Waiter {
    length: u64,
    /// Number of commits before the row.
    commit: u32,
    renewals: u32,
}

/// Waiting rows by place. A place may have been written several times.
#[derive(Debug, Default)]
struct Waiters {
    /// Waiting rows by length class (the power of two above the length), then by offset and row.
    /// With classes, one long row does not slow down every lookup.
    classes: BTreeMap<u32, BTreeMap<(u64, usize), Waiter>>,
    count: usize,
}

fn class_of(length: u64) -> u32 {
    length.max(1).ilog2() + 1
}

impl Waiters {
    fn insert(&mut self, offset: u64, row: usize, waiter: Waiter) {
        let class = self.classes.entry(class_of(waiter.length)).or_default();
        self.count += usize::from(class.insert((offset, row), waiter).is_none());
    }

    fn remove(&mut self, offset: u64, row: usize, length: u64) {
        let class = class_of(length);
        if let Some(waiters) = self.classes.get_mut(&class) {
            self.count -= usize::from(waiters.remove(&(offset, row)).is_some());
            if waiters.is_empty() {
                self.classes.remove(&class);
            }
        }
    }

    fn overlapping(&self, offset: u64, length: u64) -> impl Iterator<Item = (u64, usize, Waiter)> {
        let end = offset.saturating_add(length);
        let classes = self.classes.iter();
        classes.flat_map(move |(&class, waiters)| {
            let longest = 1u64.checked_shl(class).unwrap_or(u64::MAX);
            let near = waiters.range((offset.saturating_sub(longest), 0)..(end, 0));
            near.map(|(&(at, row), &waiter)| (at, row, waiter))
                .filter(move |(at, _, waiter)| at.saturating_add(waiter.length) > offset)
        })
    }

    fn iter(&self) -> impl Iterator<Item = (u64, usize, Waiter)> {
        let waiters = self.classes.values().flatten();
        waiters.map(|(&(offset, row), &waiter)| (offset, row, waiter))
    }

    fn retain(&mut self, keep: impl Fn(usize, &Waiter) -> bool) {
        self.classes.retain(|_, waiters| {
            waiters.retain(|&(_, row), waiter| keep(row, waiter));
            !waiters.is_empty()
        });
        self.count = self.classes.values().map(BTreeMap::len).sum();
    }

    /// Takes over all rows of `other`.
    fn append(&mut self, other: &mut Waiters) {
        for (class, mut waiters) in std::mem::take(&mut other.classes) {
            self.classes.entry(class).or_default().append(&mut waiters);
        }
        self.count += std::mem::take(&mut other.count);
    }
}

/// Waiting rows of one disk.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Rows added since the last lookup, in order of arrival. Inserting them together is far faster
    /// for a million rows at random places.
    recent: Vec<(u64, usize, Waiter)>,
    /// Rows added since the last commit. They are separate so that a search for older rows does not
    /// pass the many new rows of a place each time.
    new: Waiters,
    /// Rows added before the last commit.
    old: Waiters,
    commits: u32,
}

impl Waiting {
    /// Returns whether no row waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of waiting rows.
    pub fn len(&self) -> usize {
        self.recent.len() + self.new.count + self.old.count
    }

    /// Adds row `row` of `length` bytes at `offset` to the waiting rows. If `most` rows already
    /// wait, the half that has waited longest is given up first.
    pub fn insert(&mut self, row: usize, offset: u64, length: u64, most: usize) {
        if self.len() >= most.max(1) {
            self.give_up_half();
        }
        let waiter = Waiter {
            length,
            commit: self.commits,
            renewals: 0,
        };
        self.recent.push((offset, row, waiter));
    }

    /// Moves the recent rows to their places.
    fn place(&mut self) {
        self.recent
            .sort_unstable_by_key(|&(offset, row, _)| (offset, row));
        for (offset, row, waiter) in self.recent.drain(..) {
            self.new.insert(offset, row, waiter);
        }
    }

    /// Gives up the half of the rows that has waited longest. Dropping half at a time keeps the
    /// cost per row constant.
    fn give_up_half(&mut self) {
        self.place();
        let waiters = self.old.iter().chain(self.new.iter());
        let mut ages: Vec<_> = waiters.map(|(_, row, w)| (w.commit, row)).collect();
        let half = ages.len() / 2;
        let (_, &mut last, _) = ages.select_nth_unstable(half);
        for waiters in [&mut self.old, &mut self.new] {
            waiters.retain(|row, waiter| (waiter.commit, row) > last);
        }
    }

    /// Returns whether any row waits in the range.
    pub fn touches(&mut self, offset: u64, length: u64) -> bool {
        self.place();
        let mut both = [&self.new, &self.old].into_iter();
        both.any(|waiters| waiters.overlapping(offset, length).next().is_some())
    }

    /// Removes the rows in the range from the waiting rows. Splits rows at the range's ends and
    /// returns the numbers of those inside; the parts outside keep waiting as separate rows.
    pub fn take(&mut self, offset: u64, length: u64, rows: &mut Rows) -> Vec<usize> {
        let taken = self.take_with_commits(offset, length, rows);
        taken.into_iter().map(|(number, _)| number).collect()
    }

    /// Like [`take`](Self::take), with the number of commits before each row.
    pub fn take_with_commits(
        &mut self,
        offset: u64,
        length: u64,
        rows: &mut Rows,
    ) -> Vec<(usize, u32)> {
        self.place();
        let mut taken = take(&mut self.old, offset, length, rows);
        taken.append(&mut take(&mut self.new, offset, length, rows));
        taken
    }

    /// Like [`take`](Self::take), for rows that have waited since before the last commit.
    pub fn take_old(&mut self, offset: u64, length: u64, rows: &mut Rows) {
        take(&mut self.old, offset, length, rows);
    }

    /// Restarts the waiting time of a piece that is still waiting.
    pub fn renew(&mut self, piece: &Piece) {
        self.place();
        for waiters in [&mut self.new, &mut self.old] {
            let class = waiters.classes.get_mut(&class_of(piece.length));
            let waiter = class.and_then(|c| c.get_mut(&(piece.offset, piece.row)));
            // Once per commit, however many extents the piece lies in.
            let is_due = |w: &&mut Waiter| w.commit < self.commits && w.renewals < MAX_RENEWALS;
            if let Some(waiter) = waiter.filter(is_due) {
                waiter.commit = self.commits;
                waiter.renewals += 1;
            }
        }
    }

    /// Returns all waiting pieces, by place.
    pub fn pieces(&mut self) -> Vec<Piece> {
        self.place();
        let waiters = self.old.iter().chain(self.new.iter());
        let pieces = waiters.map(|(offset, row, waiter)| Piece {
            row,
            offset,
            length: waiter.length,
        });
        let mut pieces: Vec<_> = pieces.collect();
        pieces.sort_unstable_by_key(|piece| (piece.offset, piece.row));
        pieces
    }

    /// Counts a commit that has taken effect. Rows that have waited for `patience` commits are
    /// given up, so no row is examined by more commits than that.
    pub fn commit(&mut self, patience: u32) {
        self.place();
        self.commits = self.commits.saturating_add(1);
        let commits = self.commits;
        self.old.append(&mut self.new);
        self.old
            .retain(|_, waiter| commits - waiter.commit < patience);
    }
}

fn take(waiters: &mut Waiters, offset: u64, length: u64, rows: &mut Rows) -> Vec<(usize, u32)> {
    if waiters.count == 0 {
        return Vec::new();
    }
    let end = offset.saturating_add(length);
    let taken: Vec<_> = waiters.overlapping(offset, length).collect();
    let mut numbers = Vec::with_capacity(taken.len());
    for (at, number, waiter) in taken {
        waiters.remove(at, number, waiter.length);
        let stop = at.saturating_add(waiter.length);
        let (begin, finish) = (at.max(offset), stop.min(end));
        // A row that stays whole is not loaded: it may be in the temporary file.
        if (begin, finish) != (at, stop) {
            let Some(row) = rows.get_mut(number) else {
                continue;
            };
            let whole = *row;
            (row.offset, row.length) = (begin, finish - begin);
            for (from, to) in [(at, begin), (finish, stop)] {
                if from < to {
                    let length = to - from;
                    let rest = Row {
                        offset: from,
                        length,
                        ..whole
                    };
                    waiters.insert(from, rows.push(rest), Waiter { length, ..waiter });
                }
            }
        }
        numbers.push((number, waiter.commit));
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn push(waiting: &mut Waiting, rows: &mut Rows, offset: u64, length: u64) {
        let row = rows.push(Row::data(offset, length));
        waiting.insert(row, offset, length, MAX_WAITING);
    }

    fn claim(waiting: &mut Waiting, rows: &mut Rows, offset: u64, length: u64, inode: u64) {
        for number in waiting.take(offset, length, rows) {
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
        let first = waiting.pieces()[0];
        waiting.renew(&first);
        waiting.commit(2);
        assert_eq!(waiting.pieces(), [first]);
        waiting.commit(2);
        assert!(waiting.is_empty());
    }

    #[test]
    fn beyond_the_bound_those_that_have_waited_longest_are_given_up() {
        let (mut waiting, mut rows) = (Waiting::default(), Rows::default());
        for number in 0..100 {
            // Later rows at smaller offsets: age is not the order of places.
            push(&mut waiting, &mut rows, 4096 * (1000 - number), 4096);
            let row = number as usize;
            waiting.insert(row, 4096 * (1000 - number), 4096, 16);
            assert!(waiting.len() <= 17, "{}", waiting.len());
            if number == 50 {
                waiting.commit(9);
            }
            if number % 7 == 0 {
                let first = waiting.pieces()[0];
                waiting.renew(&first);
            }
        }
        let mut left: Vec<_> = waiting.pieces().iter().map(|piece| piece.row).collect();
        left.sort_unstable();
        let expected: Vec<_> = (100 - left.len()..100).collect();
        assert_eq!(left, expected);
    }

    #[test]
    fn a_million_rows_of_one_place_wait_and_end() {
        let (mut waiting, mut rows) = (Waiting::default(), Rows::default());
        for number in 0..MAX_WAITING + 10 {
            waiting.take_old(8192, 4096, &mut rows);
            waiting.insert(number, 8192, 4096, MAX_WAITING);
        }
        assert!(waiting.len() <= MAX_WAITING && waiting.touches(0, 8193));
        for _ in 0..3 {
            assert!(!waiting.is_empty());
            waiting.commit(3);
        }
        assert!(waiting.is_empty());
    }

    #[test]
    fn what_is_renewed_without_end_is_given_up() {
        let (mut waiting, mut rows) = (Waiting::default(), Rows::default());
        push(&mut waiting, &mut rows, 0, 4096);
        let piece = waiting.pieces()[0];
        for _ in 0..MAX_RENEWALS {
            waiting.renew(&piece);
            waiting.renew(&piece);
            waiting.commit(2);
        }
        assert!(!waiting.is_empty());
        for _ in 0..2 {
            waiting.renew(&piece);
            waiting.commit(2);
        }
        assert!(waiting.is_empty());
    }

    proptest! {
        /// Compares the rows with a list of bytes and their owners.
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
