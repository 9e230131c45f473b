//! Log records, put together from the writes that bring them, and taken apart again.

use super::{be32, be64};
use crate::strip::checksum;
use std::collections::BTreeMap;

pub const SECTOR: usize = 512;
/// `XLOG_HEADER_MAGIC_NUM`
pub const MAGIC: [u8; 4] = [0xfe, 0xed, 0xba, 0xbe];
/// Sectors of content whose first words one header keeps.
const CYCLE_WORDS: usize = 64;
/// `XLOG_MAX_RECORD_BSIZE`
const MAX_BYTES: u32 = 256 * 1024;
/// `XLOG_MAX_ICLOGS`: so many records may be under way at once, and complete in any order.
const UNDER_WAY: usize = 8;
const MOST_OPEN: usize = 64;
const CRC_AT: usize = 32;
/// What the checksum covers of the first header and of each further one (`xlog_cksum`).
const HEADER_BYTES: usize = 328;
const FURTHER_HEADER_BYTES: usize = 260;

/// Where a sector of a record was written: the event, and which sector of it.
pub type Spot = (u64, u32);

/// A record.
pub struct Record {
    pub lsn: u64,
    pub operations: u32,
    /// Headers and content, with the words back in place that cycle numbers replaced.
    pub bytes: Vec<u8>,
    /// Where content begins.
    pub content_at: usize,
    /// As it lies on the disk.
    on_disk: Vec<u8>,
    spots: Vec<Option<Spot>>,
    missing: usize,
    first: u64,
    length: usize,
    previous_block: u32,
}

impl Record {
    fn parse(sector: u64, header: &[u8], uuid: &[u8; 16], log_sectors: u64) -> Option<Record> {
        let (length, size) = (be32(header, 12), be32(header, 320));
        if header.get(304..320)? != uuid || length > MAX_BYTES || size > MAX_BYTES {
            return None;
        }
        let headers = (size as usize).div_ceil(CYCLE_WORDS * SECTOR).max(1);
        let sectors = headers + (length as usize).div_ceil(SECTOR);
        (sectors as u64 <= log_sectors).then(|| Record {
            lsn: be64(header, 16),
            operations: be32(header, 40),
            bytes: Vec::new(),
            content_at: headers * SECTOR,
            on_disk: vec![0; sectors * SECTOR],
            spots: vec![None; sectors],
            missing: sectors,
            first: sector,
            length: length as usize,
            previous_block: be32(header, 36),
        })
    }

    /// Which sector of the record this one of the log is: records go on at the log's begin.
    fn position(&self, sector: u64, log_sectors: u64) -> usize {
        let after = if sector >= self.first {
            sector - self.first
        } else {
            sector + log_sectors.saturating_sub(self.first)
        };
        usize::try_from(after).unwrap_or(usize::MAX)
    }

    /// Where the word is kept that the cycle number replaced in a sector of content.
    fn word_at(number: usize) -> usize {
        let (header, word) = (number / CYCLE_WORDS, number % CYCLE_WORDS);
        // h_cycle_data; in further headers, xh_cycle_data.
        let words_at = if header == 0 { 44 } else { 4 };
        header * SECTOR + words_at + word * 4
    }

    fn restore(&mut self) {
        self.bytes = self.on_disk.clone();
        let (headers, content) = self.bytes.split_at_mut(self.content_at);
        for (number, sector) in content.chunks_exact_mut(SECTOR).enumerate() {
            let at = Record::word_at(number);
            if let Some(kept) = headers.get(at..at + 4) {
                sector[..4].copy_from_slice(kept);
            }
        }
    }

    /// The sectors as they are to lie on the disk, and where; `None` for those that did not change.
    pub fn sectors(mut self) -> Vec<(Spot, Option<[u8; SECTOR]>)> {
        let (headers, content) = self.bytes.split_at_mut(self.content_at);
        for (number, sector) in content.chunks_exact_mut(SECTOR).enumerate() {
            let at = Record::word_at(number);
            if let Some(kept) = headers.get_mut(at..at + 4) {
                kept.copy_from_slice(&sector[..4]);
                let cycle = &self.on_disk[self.content_at + number * SECTOR..][..4];
                sector[..4].copy_from_slice(cycle);
            }
        }
        let change = checksum::change(&self.covered(&self.on_disk), &self.covered(&self.bytes));
        checksum::apply(&mut self.bytes, CRC_AT, change);
        let sectors = self.bytes.chunks_exact(SECTOR);
        let both = sectors.zip(self.on_disk.chunks_exact(SECTOR));
        both.zip(self.spots)
            .filter_map(|((new, old), spot)| {
                let changed = if new == old { None } else { new.first_chunk() };
                Some((spot?, changed.copied()))
            })
            .collect()
    }

    /// What the checksum covers, in its order.
    fn covered(&self, bytes: &[u8]) -> Vec<u8> {
        let mut covered = bytes[..HEADER_BYTES].to_vec();
        for at in (SECTOR..self.content_at).step_by(SECTOR) {
            covered.extend_from_slice(&bytes[at..at + FURTHER_HEADER_BYTES]);
        }
        covered.extend_from_slice(&bytes[self.content_at..self.content_at + self.length]);
        covered
    }
}

/// Records under way.
pub struct Records {
    sectors: u64,
    uuid: [u8; 16],
    open: Vec<Record>,
    ready: BTreeMap<u64, Record>,
    last_block: Option<u32>,
}

impl Records {
    /// Of a log of so many sectors.
    pub fn new(sectors: u64, uuid: [u8; 16]) -> Records {
        Records {
            sectors,
            uuid,
            open: Vec::new(),
            ready: BTreeMap::new(),
            last_block: None,
        }
    }

    /// A sector of the log was written. What it overwrites of a record that is not complete never
    /// comes.
    pub fn write(&mut self, sector: u64, content: &[u8; SECTOR], spot: Spot) {
        let sectors = self.sectors;
        if content.starts_with(&MAGIC) {
            self.open
                .retain(|open| open.position(sector, sectors) >= open.spots.len());
            let record = Record::parse(sector, content, &self.uuid, sectors);
            self.open
                .extend(record.filter(|_| self.open.len() <= MOST_OPEN));
        }
        let lacks = |open: &Record| open.spots.get(open.position(sector, sectors)) == Some(&None);
        let Some(number) = self.open.iter().position(lacks) else {
            return;
        };
        let open = &mut self.open[number];
        let at = open.position(sector, sectors);
        open.spots[at] = Some(spot);
        open.on_disk[at * SECTOR..][..SECTOR].copy_from_slice(content);
        open.missing -= 1;
        if open.missing == 0 {
            let mut record = self.open.swap_remove(number);
            record.restore();
            self.ready.insert(record.lsn, record);
        }
    }

    /// The next record in the log's order, if it is there; with `all`, whichever comes next.
    pub fn next(&mut self, all: bool) -> Option<Record> {
        let follows = |r: &Record| self.last_block.is_none_or(|last| r.previous_block == last);
        let next = self.ready.iter().find(|(_, record)| follows(record));
        let lsn = next.map(|(&lsn, _)| lsn);
        let waited = all || self.ready.len() > UNDER_WAY;
        let lsn = lsn.or(self.ready.keys().next().copied().filter(|_| waited))?;
        let record = self.ready.remove(&lsn)?;
        // Content without operations: the kernel writes such over what an old cycle left.
        if record.operations > 0 {
            self.last_block = Some(lsn as u32);
        }
        Some(record)
    }
}
