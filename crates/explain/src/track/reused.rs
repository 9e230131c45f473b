//! Data blocks that one file had and another is given within one transaction.
//!
//! The other writes them before the transaction is in the log that says so: while all that is known
//! says that they are the first's. Xfs gives blocks
//! to other data at once, ext in `data=writeback`, and else when the transaction that freed them is
//! committed (`ext4_free_blocks`).

use crate::{Cause, Causes, Row, Rows, Structure};
use std::collections::BTreeMap;

/// Rows that were written while a transaction was open.
#[derive(Debug, Default)]
pub struct Open {
    first: usize,
    /// The last row before the transaction before was complete.
    before: usize,
}

impl Open {
    /// A transaction was complete after row `last`; what was written after row `begun` may be of
    /// the next.
    pub fn next(&mut self, begun: usize, last: usize) {
        self.first = begun.max(self.before);
        self.before = last;
    }
}

#[derive(Debug, Clone, Copy)]
struct Taken {
    end: u64,
    to: u64,
}

/// What changed hands, by the first file and the first byte.
#[derive(Debug, Default)]
pub struct Reused(BTreeMap<(u64, u64), Taken>);

impl Reused {
    /// These bytes were of inode `from` and are of inode `to`.
    pub fn add(&mut self, offset: u64, length: u64, from: u64, to: u64) {
        let end = offset.saturating_add(length);
        if length > 0 {
            self.0.insert((from, offset), Taken { end, to });
        }
    }

    /// Rows of the first file that were written while the transaction was open are of the other:
    /// their numbers and its inode.
    pub fn settle(self, open: &Open, rows: &mut Rows) -> Vec<(usize, u64)> {
        let mut settled = Vec::new();
        let mut number = open.first;
        // What is cut off a row becomes a row at the end, and has its turn there.
        while !self.0.is_empty()
            && let Some(row) = rows.get_mut(number)
        {
            let (start, end) = (row.offset, row.offset.saturating_add(row.length));
            let near = self.0.range((row.inode, 0)..(row.inode, end)).next_back();
            if let Some((&(_, first), taken)) = near
                && is_by_owner(row)
                && taken.end > start
            {
                let whole = *row;
                row.offset = first.max(start);
                row.length = taken.end.min(end) - row.offset;
                row.inode = taken.to;
                row.structure = Structure::FileData;
                row.causes = Causes::one(Cause::Data);
                settled.push((number, taken.to));
                for (offset, stop) in [(start, first), (taken.end, end)] {
                    if offset < stop {
                        let length = stop - offset;
                        rows.push(Row {
                            offset,
                            length,
                            ..whole
                        });
                    }
                }
            }
            number += 1;
        }
        settled
    }
}

/// Whether the owner's word is all that says what was written. Metadata names the transaction that
/// it is of.
fn is_by_owner(row: &Row) -> bool {
    match row.structure {
        Structure::FileData => true,
        Structure::Xattr
        | Structure::Symlink
        | Structure::Directory
        | Structure::DirectoryIndex
        | Structure::ExtentMap => row.transaction.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_file_was_given_while_the_transaction_was_open_is_of_that_file() {
        let mut rows = Rows::default();
        let mut write = || {
            rows.push(Row {
                inode: 12,
                ..Row::data(100, 10)
            })
        };
        let (before, during) = (write(), write());
        let mut open = Open::default();
        open.next(before, before);
        open.next(during, during);
        let mut reused = Reused::default();
        reused.add(103, 4, 12, 13);
        reused.add(108, 4, 14, 13); // of another than the row
        reused.add(90, 11, 12, 15);
        assert_eq!(reused.settle(&open, &mut rows).len(), 2);
        let mut found: Vec<_> = rows
            .to_vec()
            .iter()
            .map(|r| (r.offset, r.length, r.inode))
            .collect();
        found.sort_unstable();
        let cut = [
            (100, 1, 15),
            (100, 10, 12),
            (101, 2, 12),
            (103, 4, 13),
            (107, 3, 12),
        ];
        assert_eq!(found, cut);
    }
}
