//! The log: writes become records, records become transactions, transactions become items that say what was logged and why.

mod area;
mod item;
mod operation;
mod parts;
mod record;
mod recovery;
mod regions;
mod transaction;

pub use area::Area;
pub use recovery::{Checkpoint, Recovery};

use super::metadata::Metadata;
use crate::classify::{Row, Rows, Write};
use record::Records;
use transaction::Transactions;

/// Follows the log of one file system.
#[derive(Debug)]
pub struct Log {
    records: Records,
    transactions: Transactions,
}

impl Log {
    /// Of the log in `area`.
    pub fn new(area: Area, uuid: [u8; 16]) -> Log {
        Log {
            records: Records::new(area, uuid),
            transactions: Transactions::default(),
        }
    }

    /// A write, or the part of one that `row` describes, all of it within the log. The row is pushed, and split once the log's record is complete.
    pub fn write(&mut self, row: Row, write: &Write<'_>, metadata: &mut Metadata, rows: &mut Rows) {
        let from = usize::try_from(row.offset - write.offset).unwrap_or(usize::MAX);
        let content = write.content.get(from..).unwrap_or_default();
        let length = content.len().min(usize::try_from(row.length).unwrap_or(0));
        self.records.write(row, &content[..length], rows);
        while let Some(record) = self.records.next(false) {
            self.transactions.read(record, metadata, rows);
        }
    }

    /// No more will come.
    pub fn finish(&mut self, metadata: &mut Metadata, rows: &mut Rows) {
        while let Some(record) = self.records.next(true) {
            self.transactions.read(record, metadata, rows);
        }
        self.transactions.finish(metadata, rows);
    }
}
