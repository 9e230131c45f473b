//! The log. Writes are assembled into records, and their operations into transactions, whose items
//! describe each logged change and its cause.

mod area;
mod item;
mod parts;
mod record;
mod recovery;
mod transaction;

pub use area::Area;
pub use recovery::{Checkpoint, Recovery};

use super::log_record::Records;
use super::metadata::Metadata;
use super::superblock::BASIC_BLOCK;
use crate::{Row, Rows};
use record::{Place, cover};
use transaction::Transactions;

/// Follows the log of one file system.
#[derive(Debug)]
pub struct Log {
    pub(super) area: Area,
    records: Records<Place>,
    transactions: Transactions,
}

impl Log {
    /// Creates the state of the log in `area`.
    pub fn new(area: Area, uuid: [u8; 16]) -> Log {
        Log {
            area,
            records: Records::new(area.bytes / BASIC_BLOCK, uuid),
            transactions: Transactions::default(),
        }
    }

    /// Handles a write within the log, which `row` describes. Pushes the row, and splits it once
    /// the log record is complete.
    pub fn write(&mut self, row: Row, content: &[u8], metadata: &mut Metadata, rows: &mut Rows) {
        cover(&mut self.records, self.area, row, content, rows);
        while let Some(record) = self.records.next(false) {
            self.transactions.read(record, metadata, rows);
        }
    }

    /// Completes the remaining records at the end of the recording.
    pub fn finish(&mut self, metadata: &mut Metadata, rows: &mut Rows) {
        while let Some(record) = self.records.next(true) {
            self.transactions.read(record, metadata, rows);
        }
        self.transactions.finish(metadata, rows);
    }
}

#[cfg(test)]
mod tests {
    use super::super::geometry;
    use super::super::log_record::{COMMIT, START};
    use super::*;
    use crate::{Cause, Causes, Structure, Write};

    const SECTOR: usize = BASIC_BLOCK as usize;

    /// Builds a record of two sectors at a sector of the log, with these operations of one
    /// transaction.
    fn record(sector: u8, operations: &[(u8, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 2 * SECTOR];
        bytes[..4].copy_from_slice(&0xfeed_babe_u32.to_be_bytes());
        bytes[14] = 2;
        (bytes[19], bytes[23]) = (1, sector);
        bytes[39] = sector.saturating_sub(2);
        bytes[43] = operations.len() as u8;
        let mut at = SECTOR;
        for (flags, payload) in operations {
            (bytes[at + 3], bytes[at + 7], bytes[at + 9]) = (5, payload.len() as u8, *flags);
            bytes[at + 12..at + 12 + payload.len()].copy_from_slice(payload);
            at += 12 + payload.len();
        }
        bytes.copy_within(SECTOR..SECTOR + 4, 44);
        bytes
    }

    #[test]
    fn each_item_has_its_own_bytes_also_where_it_goes_on_in_the_next_record() {
        let (continues, continued) = (4, 8);
        let header: &[u8] = &[0x4e, 0x41, 0x52, 0x54, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        // An extent to free, and a mapping that continues in the next record: types and regions.
        let (freed, mapped): (&[u8], &[u8]) =
            (&[0x36, 0x12, 1, 0], &[0x40, 0x12, 1, 0, 0, 0, 0, 0]);
        let records = [
            record(
                0,
                &[
                    (START, &[]),
                    (0, header),
                    (0, freed),
                    (continues, &mapped[..4]),
                ],
            ),
            record(2, &[(continued, &mapped[4..]), (0, freed), (COMMIT, &[])]),
        ];
        let mut metadata = Metadata::new(geometry());
        let area = Area {
            disk: 0,
            offset: 0,
            bytes: 16 * BASIC_BLOCK,
        };
        let (mut log, mut rows) = (Log::new(area, [0; 16]), Rows::default());
        for (number, content) in records.iter().enumerate() {
            let write = Write {
                event: 1,
                time_ns: 0,
                disk: 0,
                offset: (number * content.len()) as u64,
                content,
                length: content.len() as u64,
                formatting: false,
            };
            let row = write.row(Structure::Log, Causes::one(Cause::Log));
            log.write(row, content, &mut metadata, &mut rows);
        }
        let mut found: Vec<_> = rows.to_vec();
        found.sort_by_key(|row| row.offset);
        let items: Vec<_> = found
            .iter()
            .filter_map(|row| Some((row.offset, row.length, row.home?, row.transaction)))
            .collect();
        let (first, second) = (SECTOR as u64, 3 * SECTOR as u64);
        let begin = Some(1 << 32);
        assert_eq!(
            items,
            [
                (first + 40, 16, Structure::FreeSpaceBtree, begin),
                (first + 56, 16, Structure::RmapBtree, begin),
                (second, 16, Structure::RmapBtree, begin),
                (second + 16, 16, Structure::FreeSpaceBtree, begin),
            ]
        );
        assert_eq!(
            found.iter().map(|row| row.length).sum::<u64>(),
            4 * BASIC_BLOCK
        );
    }
}
