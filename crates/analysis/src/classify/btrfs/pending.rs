//! Data that was written and whose owner is not known yet: data reaches the disk before the tree that points to it.

use crate::classify::{Row, Rows};
use fscost_recording::MAX_REQUEST_BYTES;
use std::collections::BTreeMap;

/// Written data by place; one place may have been written several times.
#[derive(Debug, Default)]
pub struct Pending {
    /// By disk, offset and row.
    pieces: BTreeMap<(u16, u64, usize), Piece>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    length: u64,
    /// How many commits have passed since.
    age: u8,
}

/// A piece that was given up or is to be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    pub disk: u16,
    pub offset: u64,
    pub length: u64,
    pub row: usize,
    /// How many commits have passed since it was written.
    pub age: u8,
}

impl Pending {
    /// Push `row`, which waits for an owner. What has waited in its place since before the last commit will never be owned.
    pub fn push(&mut self, row: Row, rows: &mut Rows) {
        let is_stale = |piece: &Piece| piece.age > 0;
        self.take(row.disk, row.offset, row.length, rows, is_stale, |_| {});
        let number = rows.push(row);
        let piece = Piece {
            length: row.length,
            age: 0,
        };
        self.pieces.insert((row.disk, row.offset, number), piece);
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn overlapping(
        &self,
        disk: u16,
        offset: u64,
        length: u64,
    ) -> impl Iterator<Item = ((u16, u64, usize), Piece)> + '_ {
        // No piece is longer than a request.
        let from = (disk, offset.saturating_sub(MAX_REQUEST_BYTES as u64), 0);
        let found = self
            .pieces
            .range(from..(disk, offset.saturating_add(length), 0));
        found
            .filter(move |((_, start, _), piece)| start + piece.length > offset)
            .map(|(&key, &piece)| (key, piece))
    }

    /// Whether anything waits in the range.
    pub fn touches(&self, disk: u16, offset: u64, length: u64) -> bool {
        self.overlapping(disk, offset, length).next().is_some()
    }

    /// Complete all rows of `length` bytes at `offset` of `disk`: rows are split so that `complete` sees only what lies within.
    pub fn claim(
        &mut self,
        disk: u16,
        offset: u64,
        length: u64,
        rows: &mut Rows,
        complete: impl Fn(&mut Row),
    ) {
        self.take(disk, offset, length, rows, |_| true, complete);
    }

    fn take(
        &mut self,
        disk: u16,
        offset: u64,
        length: u64,
        rows: &mut Rows,
        which: impl Fn(&Piece) -> bool,
        complete: impl Fn(&mut Row),
    ) {
        let end = offset.saturating_add(length);
        let hit = self.overlapping(disk, offset, length);
        let hit: Vec<_> = hit.filter(|(_, piece)| which(piece)).collect();
        for (key @ (_, start, number), piece) in hit {
            self.pieces.remove(&key);
            let Some(row) = rows.get_mut(number) else {
                continue;
            };
            let whole = *row;
            let stop = start + piece.length;
            let (begin, finish) = (start.max(offset), stop.min(end));
            (row.offset, row.length) = (begin, finish - begin);
            complete(row);
            for (part_start, part_end) in [(start, begin), (finish, stop)] {
                if part_start < part_end {
                    let rest = Row {
                        offset: part_start,
                        length: part_end - part_start,
                        ..whole
                    };
                    let rest_number = rows.push(rest);
                    self.pieces.insert(
                        (disk, part_start, rest_number),
                        Piece {
                            length: rest.length,
                            ..piece
                        },
                    );
                }
            }
        }
    }

    /// What is still waiting.
    pub fn waiting(&self) -> Vec<Waiting> {
        let waiting = |(&(disk, offset, row), piece): (&(u16, u64, usize), &Piece)| Waiting {
            disk,
            offset,
            length: piece.length,
            row,
            age: piece.age,
        };
        self.pieces.iter().map(waiting).collect()
    }

    /// A commit has passed: what has waited for `commits` is given up.
    pub fn grow_old(&mut self, commits: u8) {
        self.pieces.retain(|_, piece| {
            piece.age = piece.age.saturating_add(1);
            piece.age < commits
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Cause, Causes, NO_INODE, Structure};

    fn row(offset: u64, length: u64) -> Row {
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
        }
    }

    #[test]
    fn a_claim_in_the_middle_splits_a_row_in_three() {
        let (mut pending, mut rows) = (Pending::default(), Rows::default());
        pending.push(row(8192, 16384), &mut rows);
        pending.claim(0, 12288, 4096, &mut rows, |row| row.inode = 7);
        let mut found: Vec<_> = rows
            .as_slice()
            .iter()
            .map(|r| (r.offset, r.length, r.inode))
            .collect();
        found.sort();
        assert_eq!(found, [(8192, 4096, 0), (12288, 4096, 7), (16384, 8192, 0)]);
        pending.claim(0, 0, 1 << 20, &mut rows, |row| row.inode = 8);
        assert!(pending.is_empty());
        assert_eq!(rows.as_slice().iter().map(|r| r.length).sum::<u64>(), 16384);
    }

    #[test]
    fn two_writes_of_one_place_wait_for_the_same_owner() {
        let (mut pending, mut rows) = (Pending::default(), Rows::default());
        for _ in 0..2 {
            pending.push(row(4096, 4096), &mut rows);
        }
        pending.claim(0, 4096, 4096, &mut rows, |row| row.inode = 7);
        assert!(rows.as_slice().iter().all(|r| r.inode == 7));
    }

    #[test]
    fn what_was_not_owned_at_a_commit_is_not_owned_by_what_comes_after_it() {
        let (mut pending, mut rows) = (Pending::default(), Rows::default());
        pending.push(row(0, 12288), &mut rows);
        pending.grow_old(2);
        pending.push(row(4096, 4096), &mut rows);
        pending.claim(0, 0, 8192, &mut rows, |row| row.inode = 7);
        let mut found: Vec<_> = rows
            .as_slice()
            .iter()
            .map(|r| (r.offset, r.length, r.inode))
            .collect();
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
