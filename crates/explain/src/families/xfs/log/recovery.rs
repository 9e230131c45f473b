//! State of the log at mount: its head, and the records between its tail and its head
//! (fs/xfs/xfs_log_recover.c).

use super::super::log_item::{Items, MOST_TRANSACTIONS, Part};
use super::super::log_record::{self, COMMIT, Record, START, UNMOUNT};
use super::super::superblock::BASIC_BLOCK;
use super::Area;
use crate::Disks;
use fscost_recording::Result;

/// `XFS_MAX_LOG_BYTES`.
const MOST_BYTES: u64 = 1 << 31;
/// Number of sectors read at once while searching for the newest record of the log.
const READ_SECTORS: u64 = 2048;

/// Summary of the log between tail and head. Positions are log sequence numbers: cycle, and
/// 512-byte block of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// End of the last complete record; all records before it are complete, too.
    pub head: u64,
    /// Start of the replay; equal to the head if the file system was unmounted.
    pub tail: u64,
    /// Number of records between tail and head.
    pub records: u64,
    /// Total size of these records in bytes.
    pub bytes: u64,
    /// Checkpoints that would be replayed.
    pub checkpoints: Vec<Checkpoint>,
    /// Checkpoints that would not be replayed, because their commit is missing.
    pub unfinished: Vec<Checkpoint>,
}

/// Checkpoint of the kernel's in-memory log, that is, a transaction in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Sequence number of the record in which the checkpoint begins.
    pub lsn: u64,
    /// Number of records that contain a part of the checkpoint.
    pub records: u64,
    /// Number of log items.
    pub items: u64,
}

/// Reader of the log on the disks in their current state.
struct Reader<'a, 'd> {
    disks: &'a mut Disks<'d>,
    area: Area,
    uuid: &'a [u8; 16],
}

impl Recovery {
    /// Reads the log in `area`. Returns None if it holds no record of this file system.
    pub fn find(disks: &mut Disks<'_>, area: Area, uuid: &[u8; 16]) -> Result<Option<Recovery>> {
        let there = disks.size_bytes(area.disk).saturating_sub(area.offset);
        let bytes = area.bytes.min(there).min(MOST_BYTES);
        let area = Area { bytes, ..area };
        let mut reader = Reader { disks, area, uuid };
        let Some((newest, tail)) = reader.newest()? else {
            return Ok(None);
        };
        let mut found = reader.replay(tail, newest)?;
        // There is a hole. Complete records after it do not count, and the record before it may
        // have another tail.
        if let Some((last, tail)) = found.last
            && last != newest
        {
            found = reader.replay(tail, last)?;
        }
        Ok(Some(found.recovery))
    }
}

#[derive(Default)]
struct Replay {
    recovery: Recovery,
    open: Vec<(u32, Checkpoint, Items)>,
    /// Sequence number and tail of the last record.
    last: Option<(u64, u64)>,
}

impl Reader<'_, '_> {
    fn sectors(&self) -> u64 {
        self.area.bytes / BASIC_BLOCK
    }

    fn read(&mut self, sector: u64, into: &mut [u8]) -> Result<()> {
        let offset = self.area.offset + sector * BASIC_BLOCK;
        self.disks.read(self.area.disk, offset, into)
    }

    /// Returns the record with the highest number, complete or not, and its tail.
    fn newest(&mut self) -> Result<Option<(u64, u64)>> {
        let mut newest = None;
        let mut bytes = vec![0; (READ_SECTORS * BASIC_BLOCK) as usize];
        for first in (0..self.sectors()).step_by(READ_SECTORS as usize) {
            self.read(first, &mut bytes)?;
            let sectors = (first..self.sectors()).zip(bytes.chunks_exact(BASIC_BLOCK as usize));
            let records =
                sectors.filter_map(|(at, header)| log_record::numbers(at, header, self.uuid));
            newest = newest.max(records.max());
        }
        Ok(newest)
    }

    /// Replays the records from `tail` to `last`, or to the first incomplete record.
    fn replay(&mut self, tail: u64, last: u64) -> Result<Replay> {
        let (log_sectors, uuid) = (self.sectors(), *self.uuid);
        let mut found = Replay::default();
        found.recovery.tail = tail;
        found.recovery.head = tail;
        let mut passed = 0;
        while found.recovery.head <= last {
            let at = found.recovery.head;
            let sector = at & u64::from(u32::MAX);
            if sector >= log_sectors {
                break;
            }
            let read = |sector, into: &mut [u8]| self.read(sector, into);
            let record = Record::whole(sector, log_sectors, &uuid, read)?;
            let Some(record) = record.filter(|record| record.lsn == at) else {
                break;
            };
            passed += record.sectors();
            if passed > log_sectors {
                break;
            }
            found.take(&record);
            let end = sector + record.sectors();
            found.recovery.head = match end >= log_sectors {
                true => ((at >> 32).wrapping_add(1) << 32) | (end - log_sectors),
                false => at + record.sectors(),
            };
            found.last = Some((record.lsn, record.tail));
            let is_unmount = record.operations().any(|o| o.flags & UNMOUNT != 0);
            if is_unmount && record.lsn == last {
                found.recovery = Recovery {
                    head: found.recovery.head,
                    tail: found.recovery.head,
                    ..Recovery::default()
                };
                found.open.clear();
            }
        }
        let open = std::mem::take(&mut found.open);
        found.recovery.unfinished = open.into_iter().map(|(_, open, _)| open).collect();
        Ok(found)
    }
}

impl Replay {
    fn take(&mut self, record: &Record) {
        self.recovery.records += 1;
        self.recovery.bytes += record.bytes.len() as u64;
        let mut ids: Vec<u32> = Vec::new();
        for operation in record.operations() {
            let id = operation.id;
            if operation.flags & START != 0 {
                self.open.retain(|(open, ..)| *open != id);
                if self.open.len() >= MOST_TRANSACTIONS {
                    self.open.remove(0);
                }
                let checkpoint = Checkpoint {
                    lsn: record.lsn,
                    ..Checkpoint::default()
                };
                self.open.push((id, checkpoint, Items::default()));
            }
            // Transactions that began before the tail are not replayed.
            let Some(place) = self.open.iter().position(|(open, ..)| *open == id) else {
                continue;
            };
            let (_, checkpoint, items) = &mut self.open[place];
            if !ids.contains(&id) {
                ids.push(id);
                checkpoint.records += 1;
            }
            if operation.flags & COMMIT != 0 {
                let (_, checkpoint, _) = self.open.remove(place);
                self.recovery.checkpoints.push(checkpoint);
            } else if operation.flags & START == 0 && items.take(&operation) == Part::LastOfItem {
                items.regions.clear();
                checkpoint.items += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fscost_recording::{DiskInfo, Event, Header, Op, Recording, Stripped, Writer};

    const SECTOR: usize = BASIC_BLOCK as usize;
    const LOG_SECTORS: u64 = 16;
    const UUID: [u8; 16] = [7; 16];

    fn place(cycle: u64, sector: u64) -> u64 {
        cycle << 32 | sector
    }

    /// Builds a record of two sectors with these operations: number, flags, payload.
    fn record(lsn: u64, tail: u64, operations: &[(u32, u8, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 2 * SECTOR];
        bytes[..4].copy_from_slice(&0xfeed_babe_u32.to_be_bytes());
        bytes[12..16].copy_from_slice(&(SECTOR as u32).to_be_bytes());
        bytes[16..24].copy_from_slice(&lsn.to_be_bytes());
        bytes[24..32].copy_from_slice(&tail.to_be_bytes());
        bytes[40..44].copy_from_slice(&(operations.len() as u32).to_be_bytes());
        bytes[304..320].copy_from_slice(&UUID);
        let mut at = SECTOR;
        for (id, flags, payload) in operations {
            bytes[at..at + 4].copy_from_slice(&id.to_be_bytes());
            bytes[at + 4..at + 8].copy_from_slice(&(payload.len() as u32).to_be_bytes());
            bytes[at + 9] = *flags;
            bytes[at + 12..at + 12 + payload.len()].copy_from_slice(payload);
            at += 12 + payload.len();
        }
        bytes.copy_within(SECTOR..SECTOR + 4, 44);
        let cycle = (lsn >> 32) as u32;
        let wraps = lsn & u64::from(u32::MAX) == LOG_SECTORS - 1;
        let word = cycle + u32::from(wraps);
        bytes[SECTOR..SECTOR + 4].copy_from_slice(&word.to_be_bytes());
        bytes
    }

    /// Returns the recovery state of a log that holds these records.
    fn found(records: &[Vec<u8>]) -> Option<Recovery> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording");
        let header = Header {
            begin_unix_ns: 0,
            disks: vec![DiskInfo {
                name: "main".into(),
                size_bytes: (1 + LOG_SECTORS) * BASIC_BLOCK,
                logical_block_bytes: 512,
                physical_block_bytes: 512,
            }],
            stripped: Stripped::No,
        };
        let mut writer = Writer::create(&path, &header).unwrap();
        for record in records {
            let first = u64::from(u32::from_be_bytes(record[20..24].try_into().unwrap()));
            for (sector, content) in (first..).zip(record.chunks_exact(SECTOR)) {
                writer.space()[..SECTOR].copy_from_slice(content);
                let event = Event {
                    submit_ns: 0,
                    complete_ns: 0,
                    offset: (1 + sector % LOG_SECTORS) * BASIC_BLOCK,
                    length: BASIC_BLOCK,
                    content_offset: 0,
                    disk: 0,
                    op: Op::Write,
                    fua: false,
                };
                writer.append(event).unwrap();
            }
        }
        writer.finish().unwrap();
        let recording = Recording::open(&path).unwrap();
        let area = Area {
            disk: 0,
            offset: BASIC_BLOCK,
            bytes: LOG_SECTORS * BASIC_BLOCK,
        };
        Recovery::find(&mut Disks::at(&recording, 0, &[]).unwrap(), area, &UUID).unwrap()
    }

    /// Header of a transaction, and an item of two regions.
    const HEADER: &[u8] = &[0x4e, 0x41, 0x52, 0x54, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const FIRST: &[u8] = &[0x3b, 0x12, 2, 0];
    const SECOND: &[u8] = &[1; 8];
    /// Flags `XLOG_CONTINUE_TRANS`, `XLOG_WAS_CONT_TRANS`.
    const CONTINUES: u8 = 4;
    const CONTINUED: u8 = 8;

    fn begin(lsn: u64, tail: u64, id: u32) -> Vec<u8> {
        let part = &SECOND[..4];
        let operations: [(u32, u8, &[u8]); 4] = [
            (id, START, &[]),
            (id, 0, HEADER),
            (id, 0, FIRST),
            (id, CONTINUES, part),
        ];
        record(lsn, tail, &operations)
    }

    fn end(lsn: u64, tail: u64, id: u32) -> Vec<u8> {
        let part = &SECOND[4..];
        record(lsn, tail, &[(id, CONTINUED, part), (id, COMMIT, &[])])
    }

    fn checkpoint(lsn: u64, records: u64, items: u64) -> Checkpoint {
        Checkpoint {
            lsn,
            records,
            items,
        }
    }

    #[test]
    fn a_checkpoint_counts_once_its_commit_is_there() {
        let (a, b, c) = (place(1, 0), place(1, 2), place(1, 4));
        let one = found(&[begin(a, a, 5)]).unwrap();
        assert_eq!((one.tail, one.head), (a, b));
        assert_eq!(
            (one.checkpoints, one.unfinished),
            (vec![], vec![checkpoint(a, 1, 0)])
        );
        let two = found(&[begin(a, a, 5), end(b, a, 5)]).unwrap();
        assert_eq!(
            (two.tail, two.head, two.records, two.bytes),
            (a, c, 2, 4 * BASIC_BLOCK)
        );
        assert_eq!(
            (two.checkpoints, two.unfinished),
            (vec![checkpoint(a, 2, 1)], vec![])
        );
        // Transactions that began before the tail are not replayed.
        let late = found(&[begin(a, a, 5), end(b, b, 5)]).unwrap();
        assert_eq!((late.tail, late.records, late.checkpoints), (b, 1, vec![]));
        assert_eq!(found(&[vec![0; 2 * SECTOR]]), None);
    }

    #[test]
    fn what_is_behind_a_hole_does_not_count() {
        let (a, b, c) = (place(1, 0), place(1, 2), place(1, 4));
        // The newest record's tail differs from that of the last record before the hole.
        let records =
            |hole: Vec<u8>| [begin(a, a, 5), end(b, a, 5), hole, begin(place(1, 6), b, 7)];
        let mut torn = begin(c, a, 6);
        torn[SECTOR..SECTOR + 4].fill(0);
        let mut lost = begin(c, a, 6);
        lost[..4].fill(0);
        for hole in [lost, torn] {
            let found = found(&records(hole)).unwrap();
            assert_eq!((found.tail, found.head), (a, c));
            assert_eq!(found.checkpoints, [checkpoint(a, 2, 1)]);
        }
        let whole = found(&records(begin(c, a, 6))).unwrap();
        assert_eq!(
            (whole.tail, whole.head, whole.unfinished.len()),
            (b, place(1, 8), 2)
        );
    }

    #[test]
    fn a_record_goes_on_at_the_logs_begin() {
        let (a, b, c) = (place(3, 13), place(3, 15), place(4, 1));
        let whole = found(&[begin(a, a, 5), end(b, a, 5), begin(c, a, 6)]).unwrap();
        assert_eq!((whole.tail, whole.head), (a, place(4, 3)));
        assert_eq!((whole.checkpoints.len(), whole.unfinished.len()), (1, 1));
        // The start of the log holds records of the previous lap.
        let mut torn = end(b, a, 5);
        torn[SECTOR..SECTOR + 4].copy_from_slice(&3_u32.to_be_bytes());
        let torn = found(&[begin(a, a, 5), torn]).unwrap();
        assert_eq!((torn.tail, torn.head, torn.unfinished.len()), (a, b, 1));
    }

    #[test]
    fn after_an_unmount_nothing_is_replayed() {
        let (a, b, c) = (place(1, 0), place(1, 2), place(1, 4));
        let unmount = record(c, c, &[(9, UNMOUNT, &[0; 8])]);
        let found = found(&[begin(a, a, 5), end(b, a, 5), unmount]).unwrap();
        assert_eq!(
            found,
            Recovery {
                head: place(1, 6),
                tail: place(1, 6),
                ..Recovery::default()
            }
        );
    }
}
