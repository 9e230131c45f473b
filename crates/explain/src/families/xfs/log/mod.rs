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
    use super::super::owners::Owner;
    use super::*;
    use crate::{Cause, Causes, Structure, Write};

    const SECTOR: usize = BASIC_BLOCK as usize;

    /// Header of a transaction.
    const HEADER: &[u8] = &[0x4e, 0x41, 0x52, 0x54, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    /// Builds a record at a sector of the log, with these operations: transaction, flags, payload.
    fn record(sector: u8, operations: &[(u8, u8, &[u8])]) -> Vec<u8> {
        let mut content = Vec::new();
        for &(id, flags, payload) in operations {
            content.extend([0, 0, 0, id, 0, 0, 0, payload.len() as u8, 0, flags, 0, 0]);
            content.extend(payload);
        }
        content.resize(content.len().next_multiple_of(SECTOR), 0);
        let mut bytes = vec![0; SECTOR];
        bytes[..4].copy_from_slice(&0xfeed_babe_u32.to_be_bytes());
        bytes[12..16].copy_from_slice(&(content.len() as u32).to_be_bytes());
        (bytes[19], bytes[23]) = (1, sector);
        bytes[39] = sector.saturating_sub(2);
        bytes[43] = operations.len() as u8;
        for (number, sector) in content.chunks(SECTOR).enumerate() {
            bytes[44 + number * 4..][..4].copy_from_slice(&sector[..4]);
        }
        bytes.extend(content);
        bytes
    }

    /// Writes these records one after the other.
    fn write(records: &[Vec<u8>], metadata: &mut Metadata, rows: &mut Rows) {
        let area = Area {
            disk: 0,
            offset: 0,
            bytes: 16 * BASIC_BLOCK,
        };
        let (mut log, mut offset) = (Log::new(area, [0; 16]), 0);
        for content in records {
            let write = Write {
                event: 1,
                time_ns: 0,
                disk: 0,
                offset,
                content,
                length: content.len() as u64,
                formatting: false,
            };
            let row = write.row(Structure::Log, Causes::one(Cause::Log));
            log.write(row, content, metadata, rows);
            offset += write.length;
        }
    }

    #[test]
    fn each_item_has_its_own_bytes_also_where_it_goes_on_in_the_next_record() {
        let (continues, continued) = (4, 8);
        // An extent to free, and a mapping that continues in the next record: types and regions.
        let (freed, mapped): (&[u8], &[u8]) =
            (&[0x36, 0x12, 1, 0], &[0x40, 0x12, 1, 0, 0, 0, 0, 0]);
        let records = [
            record(
                0,
                &[
                    (5, START, &[]),
                    (5, 0, HEADER),
                    (5, 0, freed),
                    (5, continues, &mapped[..4]),
                ],
            ),
            record(
                2,
                &[
                    (5, continued, &mapped[4..]),
                    (5, 0, freed),
                    (5, COMMIT, &[]),
                ],
            ),
        ];
        let (mut metadata, mut rows) = (Metadata::new(geometry()), Rows::default());
        write(&records, &mut metadata, &mut rows);
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
    #[test]
    fn a_name_that_the_next_transaction_of_a_record_removes_is_gone() {
        // Regions of an inode item of the root directory (0), in its inode: format, core, names.
        let mut format = vec![0; 56];
        (format[0], format[1], format[2], format[4]) = (0x3b, 0x12, 3, 3);
        format[10] = 16;
        let mut core = vec![0; 176];
        core[..6].copy_from_slice(&[0x4e, 0x49, 0xed, 0x41, 3, 1]);
        core[16] = 2;
        let name = [1, 0, 0, 0, 0, 0, 1, 0, 0, b't', 1, 0, 0, 0, 131, 0];
        let empty = [0; 6];
        let mut operations: Vec<(u8, u8, &[u8])> = Vec::new();
        for (id, names) in [(5, &name[..]), (6, &empty[..])] {
            operations.extend([(id, START, &[][..]), (id, 0, HEADER)]);
            operations.extend([&format, &core, names].map(|region| (id, 0, region)));
            operations.push((id, COMMIT, &[]));
        }
        for (count, expected) in [(6, true), (12, false)] {
            let (mut metadata, mut rows) = (Metadata::new(geometry()), Rows::default());
            write(&[record(0, &operations[..count])], &mut metadata, &mut rows);
            let path = metadata.names.live_path(131, &mut rows.paths);
            assert_eq!(path.is_some(), expected, "{count}");
        }
    }
    #[test]
    fn data_waits_while_many_transactions_end_in_one_record() {
        let (mut metadata, mut rows) = (Metadata::new(geometry()), Rows::default());
        let row = rows.push(Row::data(1 << 20, 4096));
        metadata.owners.wait(row, 1 << 20, 4096);
        let transactions = (1..9).flat_map(|id| [(id, START, &[][..]), (id, COMMIT, &[])]);
        let operations: Vec<_> = transactions.collect();
        write(&[record(0, &operations)], &mut metadata, &mut rows);
        let owner = Owner {
            inode: 131,
            structure: Structure::FileData,
            shift: None,
        };
        let claimed = metadata.owners.claim(1 << 20, 4096, owner, &mut rows);
        assert_eq!(claimed, [row]);
    }
}
