//! Log records, put together from the writes that bring them (fs/xfs/libxfs/xfs_log_format.h,
//! `xlog_rec_header`).

use super::super::bytes::{array, be32, be64};
use super::super::superblock::BASIC_BLOCK;
use super::Area;
use crate::{Row, Rows};
use fscost_recording::Result;
use std::collections::BTreeMap;
use std::ops::Range;

const SECTOR: usize = BASIC_BLOCK as usize;
const MAGIC: u32 = 0xfeed_babe;
/// Cycle words that a header holds, one for each sector of content.
const CYCLE_WORDS: usize = 64;
/// `XLOG_MAX_RECORD_BSIZE`.
const MAX_BYTES: u32 = 256 * 1024;
/// `XLOG_MAX_ICLOGS`: so many records may be under way at once, and complete in any order.
const UNDER_WAY: usize = 8;

/// A part of a record: `range` of its bytes are at `offset` of the disk, described by row `row`.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Row that describes all of the piece.
    pub row: usize,
    /// Bytes of the record.
    pub range: Range<usize>,
    /// Byte offset on the disk.
    pub offset: u64,
}

/// A record, complete.
#[derive(Debug)]
pub struct Record {
    /// Cycle and block at which it begins.
    pub lsn: u64,
    /// Where a recovery begins if this is the last record.
    pub tail: u64,
    /// Number of operations.
    pub operation_count: u32,
    /// Headers and content; the words that cycle numbers replaced are back in place.
    pub bytes: Vec<u8>,
    /// Where content begins.
    pub content_at: usize,
    /// Where on the disk it is.
    pub pieces: Vec<Piece>,
    previous_block: u32,
}

#[derive(Debug)]
struct Open {
    first: u64,
    record: Record,
    missing: Vec<bool>,
    missing_count: usize,
}

/// Records under way.
#[derive(Debug)]
pub struct Records {
    area: Area,
    uuid: [u8; 16],
    open: Vec<Open>,
    ready: BTreeMap<u64, Record>,
    last_block: Option<u32>,
}

impl Records {
    /// Of the log in `area`.
    pub fn new(area: Area, uuid: [u8; 16]) -> Records {
        Records {
            area,
            uuid,
            open: Vec::new(),
            ready: BTreeMap::new(),
            last_block: None,
        }
    }

    /// Bytes within the log were written. Pushes rows that cover them.
    pub fn write(&mut self, row: Row, content: &[u8], rows: &mut Rows) {
        let mut done = 0;
        let mut plain: Option<usize> = None;
        while done < row.length {
            let rest = content.get(done as usize..).unwrap_or_default();
            let sector = (row.offset + done - self.area.offset) / BASIC_BLOCK;
            if rest.len() >= SECTOR && be32(rest, 0) == Some(MAGIC) {
                self.begin(sector, rest);
            }
            let taken = self.fill(sector, rest, |length| {
                rows.push(Row {
                    offset: row.offset + done,
                    length,
                    ..row
                })
            });
            let length = match taken {
                Some(length) => {
                    plain = None;
                    length
                }
                None => {
                    // Zeroes, or what is left of cleared records: the log's own.
                    let length = match content.is_empty() {
                        true => row.length - done,
                        false => BASIC_BLOCK.min(row.length - done),
                    };
                    match plain.and_then(|number| rows.get_mut(number)) {
                        Some(before) => before.length += length,
                        None => {
                            plain = Some(rows.push(Row {
                                offset: row.offset + done,
                                length,
                                ..row
                            }));
                        }
                    }
                    length
                }
            };
            done += length;
        }
        self.collect();
    }

    /// A header is at this sector of the log.
    fn begin(&mut self, sector: u64, header: &[u8]) {
        self.open
            .retain(|open| !open.covers(sector, self.area.bytes / BASIC_BLOCK));
        let (Some(open), false) = (
            Open::parse(sector, header, &self.uuid),
            self.open.len() > 64,
        ) else {
            return;
        };
        if open.missing.len() as u64 <= self.area.bytes / BASIC_BLOCK {
            self.open.push(open);
        }
    }

    /// Give what begins at this sector to the record that lacks it.
    fn fill(&mut self, sector: u64, rest: &[u8], push: impl FnOnce(u64) -> usize) -> Option<u64> {
        let log_sectors = self.area.bytes / BASIC_BLOCK;
        let open = self.open.iter_mut().find(|open| {
            let at = open.position(sector, log_sectors);
            open.missing.get(at) == Some(&true)
        })?;
        let at = open.position(sector, log_sectors);
        let until_wrap = (log_sectors - sector) as usize;
        let count = open.missing[at..].iter().take_while(|m| **m).count();
        let mut count = count.min(rest.len() / SECTOR).min(until_wrap);
        // A header ends what came before it, whatever that promised.
        let next = (1..count).find(|&n| be32(rest, n * SECTOR) == Some(MAGIC));
        count = next.unwrap_or(count);
        if count == 0 {
            return None;
        }
        open.missing[at..at + count].fill(false);
        open.missing_count -= count;
        let range = at * SECTOR..(at + count) * SECTOR;
        open.record
            .bytes
            .get_mut(range.clone())?
            .copy_from_slice(&rest[..count * SECTOR]);
        open.record.pieces.push(Piece {
            row: push((count * SECTOR) as u64),
            range,
            offset: self.area.offset + sector * BASIC_BLOCK,
        });
        Some((count * SECTOR) as u64)
    }

    fn collect(&mut self) {
        let complete = self.open.extract_if(.., |open| open.missing_count == 0);
        for open in complete.collect::<Vec<_>>() {
            let mut record = open.record;
            record.restore();
            record.pieces.sort_by_key(|piece| piece.range.start);
            // Content without operations: the kernel writes such over what an old cycle left.
            if record.operation_count > 0 {
                self.ready.insert(record.lsn, record);
            }
        }
    }

    /// The next record in the log's order, if it is there; with `all`, whichever comes next.
    pub fn next(&mut self, all: bool) -> Option<Record> {
        let follows = |record: &Record| {
            self.last_block
                .is_none_or(|last| record.previous_block == last)
        };
        let lsn = self
            .ready
            .iter()
            .find(|(_, record)| follows(record))
            .map(|(&lsn, _)| lsn);
        let waited = all || self.ready.len() > UNDER_WAY;
        let lsn = lsn.or(self.ready.keys().next().copied().filter(|_| waited))?;
        self.last_block = Some(lsn as u32);
        self.ready.remove(&lsn)
    }
}

impl Open {
    fn parse(sector: u64, header: &[u8], uuid: &[u8; 16]) -> Option<Open> {
        let length = be32(header, 12)?;
        let size = be32(header, 320)?;
        if array(header, 304)? != *uuid || length > MAX_BYTES || size > MAX_BYTES {
            return None;
        }
        let headers = size.div_ceil(CYCLE_WORDS as u32 * SECTOR as u32).max(1) as usize;
        let sectors = headers + (length as usize).div_ceil(SECTOR);
        Some(Open {
            first: sector,
            record: Record {
                lsn: be64(header, 16)?,
                tail: be64(header, 24)?,
                operation_count: be32(header, 40)?,
                bytes: vec![0; sectors * SECTOR],
                content_at: headers * SECTOR,
                pieces: Vec::new(),
                previous_block: be32(header, 36)?,
            },
            missing: vec![true; sectors],
            missing_count: sectors,
        })
    }

    /// Which sector of the record this sector of the log is: records go on at the log's begin.
    fn position(&self, sector: u64, log_sectors: u64) -> usize {
        let position = if sector >= self.first {
            sector - self.first
        } else {
            sector + log_sectors.saturating_sub(self.first)
        };
        usize::try_from(position).unwrap_or(usize::MAX)
    }

    fn covers(&self, sector: u64, log_sectors: u64) -> bool {
        self.position(sector, log_sectors) < self.missing.len()
    }
}

impl Record {
    /// The record that begins at this sector of the log, if all of it is there: every sector bears
    /// the log's cycle. `read` gives any sectors of
    /// the log.
    pub fn whole(
        sector: u64,
        log_sectors: u64,
        uuid: &[u8; 16],
        mut read: impl FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<Option<Record>> {
        let mut header = [0; SECTOR];
        read(sector, &mut header)?;
        if Record::numbers(sector, &header, uuid).is_none() {
            return Ok(None);
        }
        let Some(Open { mut record, .. }) = Open::parse(sector, &header, uuid) else {
            return Ok(None);
        };
        let sectors = record.sectors();
        if sectors > log_sectors {
            return Ok(None);
        }
        let until_wrap = sectors.min(log_sectors - sector);
        let (first, second) = record.bytes.split_at_mut(until_wrap as usize * SECTOR);
        read(sector, first)?;
        read(0, second)?;
        let is_of = |part: &[u8], cycle: u32| {
            let mut words = part.chunks_exact(SECTOR).map(|sector| be32(sector, 0));
            words.all(|word| word == Some(cycle))
        };
        let cycle = (record.lsn >> 32) as u32;
        // xlog_split_iclog: never the number that a header begins with.
        let next = match cycle.wrapping_add(1) {
            MAGIC => MAGIC + 1,
            next => next,
        };
        let is_whole = is_of(&first[SECTOR..], cycle) && is_of(second, next);
        record.restore();
        Ok(is_whole.then_some(record))
    }

    /// Where a record with operations begins, and its tail, if this is the header of one at this
    /// sector. (Without operations: the kernel writes
    /// such over what an old cycle left.)
    pub fn numbers(sector: u64, header: &[u8], uuid: &[u8; 16]) -> Option<(u64, u64)> {
        let (lsn, tail) = (be64(header, 16)?, be64(header, 24)?);
        let is_here = be32(header, 0)? == MAGIC && lsn & u64::from(u32::MAX) == sector;
        let is_ours = array(header, 304)? == *uuid && be32(header, 40)? > 0;
        (is_here && is_ours).then_some((lsn, tail))
    }

    /// How many sectors of the log it takes.
    pub fn sectors(&self) -> u64 {
        (self.bytes.len() / SECTOR) as u64
    }

    /// The first word of every sector was replaced by the cycle number, and kept in the headers.
    fn restore(&mut self) {
        let (headers, content) = self.bytes.split_at_mut(self.content_at);
        for (number, sector) in content.chunks_exact_mut(SECTOR).enumerate() {
            let (header, word) = (number / CYCLE_WORDS, number % CYCLE_WORDS);
            // h_cycle_data; in further headers, xh_cycle_data.
            let words_at = if header == 0 { 44 } else { 4 };
            let at = header * SECTOR + words_at + word * 4;
            if let (Some(kept), Some(place)) = (headers.get(at..at + 4), sector.get_mut(..4)) {
                place.copy_from_slice(kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Causes, Structure};

    const LOG: Area = Area {
        disk: 0,
        offset: 8192,
        bytes: 16 * BASIC_BLOCK,
    };

    /// A record at this sector whose content is three sectors that begin with `word`.
    fn record(sector: u32, previous: u32, word: u8) -> Vec<u8> {
        let mut bytes = vec![word; 4 * SECTOR];
        let (header, content) = bytes.split_at_mut(SECTOR);
        header.fill(0);
        header[..4].copy_from_slice(&MAGIC.to_be_bytes());
        header[12..16].copy_from_slice(&(3 * BASIC_BLOCK as u32).to_be_bytes());
        header[19] = 1 + u8::from(previous > sector);
        header[20..24].copy_from_slice(&sector.to_be_bytes());
        header[36..40].copy_from_slice(&previous.to_be_bytes());
        header[43] = 1;
        header[44..56].fill(word);
        for sector in content.chunks_exact_mut(SECTOR) {
            sector[..4].copy_from_slice(&[0, 0, 0, 7]);
        }
        bytes
    }

    fn write(records: &mut Records, rows: &mut Rows, sector: u64, content: &[u8]) {
        let row = Row {
            structure: Structure::Log,
            causes: Causes::one(Cause::Log),
            ..Row::data(LOG.offset + sector * BASIC_BLOCK, content.len() as u64)
        };
        records.write(row, content, rows);
    }

    fn words(record: &Record) -> Vec<u8> {
        record
            .bytes
            .chunks_exact(SECTOR)
            .skip(1)
            .map(|s| s[0])
            .collect()
    }

    #[test]
    fn records_come_in_the_order_of_the_log() {
        let (mut records, mut rows) = (Records::new(LOG, [0; 16]), Rows::default());
        write(&mut records, &mut rows, 0, &record(0, 9, 1));
        assert_eq!(records.next(false).map(|r| words(&r)), Some(vec![1, 1, 1]));
        write(&mut records, &mut rows, 8, &record(8, 4, 3));
        assert!(records.next(false).is_none());
        write(&mut records, &mut rows, 4, &record(4, 0, 2));
        assert_eq!(records.next(false).map(|r| words(&r)), Some(vec![2, 2, 2]));
        assert_eq!(records.next(false).map(|r| words(&r)), Some(vec![3, 3, 3]));
    }

    #[test]
    fn a_record_goes_on_at_the_logs_begin() {
        let (mut records, mut rows) = (Records::new(LOG, [0; 16]), Rows::default());
        let whole = record(14, 9, 5);
        write(&mut records, &mut rows, 14, &whole[..2 * SECTOR]);
        assert!(records.next(true).is_none());
        // Its second part, and the next record, in one write.
        write(
            &mut records,
            &mut rows,
            0,
            &[&whole[2 * SECTOR..], &record(2, 14, 6)[..]].concat(),
        );
        let first = records.next(false).unwrap();
        assert_eq!(words(&first), [5, 5, 5]);
        let places: Vec<u64> = first.pieces.iter().map(|p| p.offset).collect();
        assert_eq!(places, [LOG.offset + 14 * BASIC_BLOCK, LOG.offset]);
        assert_eq!(records.next(false).map(|r| words(&r)), Some(vec![6, 6, 6]));
        assert_eq!(
            rows.to_vec().iter().map(|r| r.length).sum::<u64>(),
            8 * BASIC_BLOCK
        );
    }

    #[test]
    fn what_is_no_record_is_one_row() {
        let (mut records, mut rows) = (Records::new(LOG, [1; 16]), Rows::default());
        write(&mut records, &mut rows, 0, &record(0, 9, 1));
        assert!(records.next(true).is_none());
        assert_eq!(rows.to_vec().len(), 1);
    }
}
