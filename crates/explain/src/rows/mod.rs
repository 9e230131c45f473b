//! The rows of an explanation: as many as a recording has writes, so those beyond a bound wait in a
//! temporary file.

mod pages;
mod record;
mod sorted;

use crate::{Paths, Row};
use fscost_recording::Result;
use pages::Pages;
pub use sorted::{RowIter, SortedRows};

/// How many rows are in memory at most; tests force the file with less.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Rows that may still be changed.
    pub kept_rows: usize,
    /// Rows that are sorted at a time.
    pub run_rows: usize,
}

impl Default for Limits {
    /// Together less than 100 MiB.
    fn default() -> Self {
        Self {
            kept_rows: 1 << 19,
            run_rows: 1 << 18,
        }
    }
}

/// Where a family puts its rows.
#[derive(Debug, Default)]
pub struct Rows {
    pages: Pages,
    limits: Limits,
    /// The paths that rows name.
    pub paths: Paths,
}

impl Rows {
    #[cfg(test)]
    fn with_limits(limits: Limits) -> Rows {
        Rows {
            pages: Pages::new(limits.kept_rows),
            limits,
            paths: Paths::default(),
        }
    }

    /// Add a row; its number, to change it by while it is known to be unfinished.
    pub fn push(&mut self, row: Row) -> usize {
        self.pages.push(row)
    }

    /// A row that was pushed: families complete rows when they learn who owns a block. `None` also
    /// if it could not be read again: then the
    /// explanation fails as a whole.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut Row> {
        self.pages.get_mut(number)
    }

    /// What sorts rows by when they were written. What is cut off a row has a later number than
    /// rows that were written after it.
    pub fn age(&mut self, number: usize) -> (u64, usize) {
        (self.get_mut(number).map_or(0, |row| row.event), number)
    }

    /// The number that the next row will have.
    pub fn next(&self) -> usize {
        self.pages.len()
    }

    /// Whether all rows could be kept so far.
    pub(super) fn check(&mut self) -> Result<()> {
        self.pages.check()
    }

    /// Each row replaced by those that `replace` makes of it.
    pub(super) fn replaced(
        self,
        mut replace: impl FnMut(&Row, &mut dyn FnMut(Row)),
    ) -> Result<Rows> {
        let mut pages = Pages::new(self.limits.kept_rows);
        self.pages.drain(|rows, _| {
            for row in rows {
                replace(row, &mut |row| {
                    pages.push(row);
                });
            }
            Ok(())
        })?;
        Ok(Rows { pages, ..self })
    }

    /// The rows in the order of events and offsets, neighbours of one write with the same
    /// explanation merged.
    pub(super) fn into_sorted(self) -> Result<(SortedRows, Paths)> {
        let sorted = SortedRows::new(self.pages, self.limits.run_rows)?;
        Ok((sorted, self.paths))
    }

    /// All rows so far, in the order of their numbers.
    #[cfg(test)]
    pub fn to_vec(&self) -> Vec<Row> {
        self.pages.to_vec()
    }
}

#[cfg(test)]
mod tests;
