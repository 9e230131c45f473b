//! Data blocks that move from one file to another within one transaction.
//!
//! The new owner writes the blocks before the transaction that assigns them is in the log. Until
//! then, all known metadata names the previous owner. XFS gives freed blocks to other data at once,
//! and so does ext with `data=writeback`. Otherwise, ext reuses blocks once the transaction that
//! freed them is committed (`ext4_free_blocks`).

use crate::{Cause, Causes, Row, Rows, Shift, Structure};
use std::collections::BTreeMap;

/// Rows that were written while a transaction was open.
#[derive(Debug, Default)]
pub struct Open {
    first: usize,
    /// Last row before the previous transaction was complete.
    before: usize,
}

impl Open {
    /// Returns the number of the first row that the open transaction may have seen written.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Records that a transaction was complete after row `last`. Rows after `begun` may belong to
    /// the next transaction.
    pub fn next(&mut self, begun: usize, last: usize) {
        self.first = begun.max(self.before);
        self.before = last;
    }
}

/// The file that a range of blocks now belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    /// Inode of the file.
    pub inode: u64,
    /// Place of the blocks in the file, if known.
    pub shift: Option<Shift>,
}

#[derive(Debug, Clone, Copy)]
struct Taken {
    end: u64,
    to: Owner,
}

/// Ranges that changed owner, by previous owner and first byte.
#[derive(Debug, Default)]
pub struct Reused(BTreeMap<(u64, u64), Taken>);

impl Reused {
    /// Records that these bytes moved from inode `from` to another owner.
    pub fn add(&mut self, offset: u64, length: u64, from: u64, to: Owner) {
        let end = offset.saturating_add(length);
        if length > 0 {
            self.0.insert((from, offset), Taken { end, to });
        }
    }

    /// Returns whether nothing has changed owner.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Attributes rows of the previous owner to the new owner if they were written while the
    /// transaction was open, from row `first` on. Returns the numbers of these rows and the new
    /// owner's inode.
    pub fn settle(self, first: usize, rows: &mut Rows) -> Vec<(usize, u64)> {
        let mut settled = Vec::new();
        let mut number = first;
        // Parts split off a row are appended as rows, and are processed there.
        while !self.0.is_empty()
            && let Some(row) = rows.get_mut(number)
        {
            let (start, end) = (row.offset, row.offset.saturating_add(row.length));
            let near = self.0.range((row.inode, 0)..(row.inode, end)).next_back();
            if let Some((&(_, from), taken)) = near
                && is_by_owner(row)
                && taken.end > start
            {
                let whole = *row;
                row.offset = from.max(start);
                row.length = taken.end.min(end) - row.offset;
                row.inode = taken.to.inode;
                row.shift = taken.to.shift;
                row.structure = Structure::FileData;
                row.causes = Causes::one(Cause::Data);
                settled.push((number, taken.to.inode));
                for (offset, stop) in [(start, from), (taken.end, end)] {
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

/// Returns whether the structure of the row follows from its owner alone. Metadata in a transaction
/// does not count, because it names that transaction.
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
        let to = |inode| Owner {
            inode,
            shift: Some(Shift::between(100, 0)),
        };
        reused.add(103, 4, 12, to(13));
        reused.add(108, 4, 14, to(13)); // not the row's inode
        reused.add(90, 11, 12, to(15));
        assert_eq!(reused.settle(open.first(), &mut rows).len(), 2);
        let mut found: Vec<_> = rows
            .to_vec()
            .iter()
            .map(|r| (r.offset, r.length, r.inode, r.file_offset()))
            .collect();
        found.sort_unstable();
        let cut = [
            (100, 1, 15, Some(0)),
            (100, 10, 12, None),
            (101, 2, 12, None),
            (103, 4, 13, Some(3)),
            (107, 3, 12, None),
        ];
        assert_eq!(found, cut);
    }
}
