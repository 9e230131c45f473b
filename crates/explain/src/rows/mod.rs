//! Rows of an explanation. Their number grows with the number of writes in a recording, so rows
//! beyond a limit are kept in a temporary file.

mod pages;
mod record;
mod sorted;

use crate::{Paths, Row};
use fscost_recording::Result;
use pages::Pages;
pub use sorted::{RowIter, SortedRows};

/// Maximum number of rows in memory; tests set a lower limit to force the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Number of rows that may still be changed.
    pub kept_rows: usize,
    /// Number of rows that are sorted at a time.
    pub run_rows: usize,
}

impl Default for Limits {
    /// Limits that together take less than 150 MiB.
    fn default() -> Self {
        Self {
            kept_rows: 1 << 20,
            run_rows: 1 << 18,
        }
    }
}

/// Rows of a family.
#[derive(Debug)]
pub struct Rows {
    pages: Pages,
    limits: Limits,
    /// Paths that the rows refer to.
    pub paths: Paths,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows::with_limits(Limits::default())
    }
}

impl Rows {
    fn with_limits(limits: Limits) -> Rows {
        Rows {
            pages: Pages::new(limits.kept_rows),
            limits,
            paths: Paths::default(),
        }
    }

    /// Adds a row. Returns its number, by which the row can be changed until it is finished.
    pub fn push(&mut self, row: Row) -> usize {
        self.pages.push(row)
    }

    /// Returns a row that was pushed. Families complete rows when they learn who owns a block. Also
    /// returns `None` if the row could not be read back; the explanation then fails as a whole.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut Row> {
        self.pages.get_mut(number)
    }

    /// Returns a sort key of rows by the time of writing. A part split off a row has a higher
    /// number than rows that were written after that row.
    pub fn age(&mut self, number: usize) -> (u64, usize) {
        (self.get_mut(number).map_or(0, |row| row.event), number)
    }

    /// Returns the number of the next row.
    pub fn next(&self) -> usize {
        self.pages.len()
    }

    /// Returns an error if any row could not be kept so far.
    pub(super) fn check(&mut self) -> Result<()> {
        self.pages.check()
    }

    /// Replaces each row with the rows that `replace` makes from it.
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

    /// Returns the rows in the order of events and offsets. Neighbours of one write with the same
    /// explanation are merged.
    pub(super) fn into_sorted(self) -> Result<(SortedRows, Paths)> {
        let sorted = SortedRows::new(self.pages, self.limits.run_rows)?;
        Ok((sorted, self.paths))
    }

    /// Returns all rows so far, in the order of their numbers.
    #[cfg(test)]
    pub fn to_vec(&self) -> Vec<Row> {
        self.pages.to_vec()
    }
}

#[cfg(test)]
mod tests;
