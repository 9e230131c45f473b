//! Log records, assembled from the writes that carry them (fs/xfs/libxfs/xfs_log_format.h,
//! `xlog_rec_header`).

use super::superblock::BASIC_BLOCK;
use crate::bytes::array;
use crate::bytes::checked::{be32, be64};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Bytes of a log sector.
pub const SECTOR: usize = BASIC_BLOCK as usize;
/// `XLOG_HEADER_MAGIC_NUM`.
const MAGIC: u32 = 0xfeed_babe;
/// Number of cycle words in a header, one for each sector of content.
const CYCLE_WORDS: usize = 64;
/// `XLOG_MAX_RECORD_BSIZE`.
const MAX_BYTES: u32 = 256 * 1024;
/// `XLOG_MAX_ICLOGS`: maximum number of records in flight. They may complete in any order.
const UNDER_WAY: usize = 8;
/// Limit for open records: more than are ever in flight.
const MOST_OPEN: usize = 64;
/// Returned records that are known again: more than a page and what is under way hold.
const MOST_RETURNED: usize = 64;
/// Bytes covered by the checksum in the first header and in each further one (`xlog_cksum`).
pub const HEADER_BYTES: usize = 328;
const FURTHER_HEADER_BYTES: usize = 260;
/// Offset of the checksum.
pub const CHECKSUM_AT: usize = 32;

/// Returns whether a record begins with this sector.
pub fn is_header(sector: &[u8]) -> bool {
    be32(sector, 0) == Some(MAGIC)
}

/// UUID of the file system that the header's log belongs to.
pub fn uuid(header: &[u8]) -> Option<[u8; 16]> {
    array(header, 304)
}

/// A part of a record that was written at once.
#[derive(Debug, Clone)]
pub struct Piece<T> {
    /// Range of bytes in the record.
    pub range: Range<usize>,
    /// Location of these bytes, in the caller's terms.
    pub place: T,
}

/// A complete record.
#[derive(Debug)]
pub struct Record<T = ()> {
    /// Cycle and block at which the record begins.
    pub lsn: u64,
    /// Position at which recovery begins if this is the last record.
    pub tail: u64,
    /// Headers and content; the words that cycle numbers replaced are restored.
    pub bytes: Vec<u8>,
    /// Start of the content.
    pub content_at: usize,
    /// Pieces in which the record was written, in order.
    pub pieces: Vec<Piece<T>>,
    operation_count: u32,
    previous_block: u32,
    length: usize,
}

/// Operation flag: a transaction begins.
pub const START: u8 = 1;
/// Operation flag: the transaction is complete.
pub const COMMIT: u8 = 2;
/// Operation flag: the region continues in the next record.
pub const CONTINUES: u8 = 4;
/// Operation flag: the region began in an earlier record.
pub const CONTINUED: u8 = 8;
/// Operation flag: the file system was unmounted. Recovery replays nothing before it.
pub const UNMOUNT: u8 = 32;
const OPERATION_BYTES: usize = 12;

/// One operation (`xlog_op_header`).
pub struct Operation<'a> {
    /// Number of the transaction in the log.
    pub id: u32,
    /// Flags: [`START`] and so on.
    pub flags: u8,
    /// Range of bytes in the record, including the operation's header.
    pub range: Range<usize>,
    /// Region or a part of one: the last bytes of the range.
    pub payload: &'a [u8],
}

impl<T> Record<T> {
    /// Parses the header of a record; the content is still missing.
    fn parse(header: &[u8], uuid: &[u8; 16]) -> Option<Record<T>> {
        let length = be32(header, 12)?;
        let size = be32(header, 320)?;
        if self::uuid(header)? != *uuid || length > MAX_BYTES || size > MAX_BYTES {
            return None;
        }
        let headers = (size as usize).div_ceil(CYCLE_WORDS * SECTOR).max(1);
        let sectors = headers + (length as usize).div_ceil(SECTOR);
        Some(Record {
            lsn: be64(header, 16)?,
            tail: be64(header, 24)?,
            bytes: vec![0; sectors * SECTOR],
            content_at: headers * SECTOR,
            pieces: Vec::new(),
            operation_count: be32(header, 40)?,
            previous_block: be32(header, 36)?,
            length: length as usize,
        })
    }

    /// Reads the record that begins at this sector of the log, if it is complete: every sector
    /// carries the log's cycle number. `read` reads any sectors of the log.
    pub fn whole<E>(
        sector: u64,
        log_sectors: u64,
        uuid: &[u8; 16],
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Option<Record<T>>, E> {
        let mut header = [0; SECTOR];
        read(sector, &mut header)?;
        let numbers = numbers(sector, &header, uuid);
        let record = numbers.and_then(|_| Record::parse(&header, uuid));
        let Some(mut record) = record.filter(|record| record.sectors() <= log_sectors) else {
            return Ok(None);
        };
        let until_wrap = record.sectors().min(log_sectors - sector);
        let (first, second) = record.bytes.split_at_mut(until_wrap as usize * SECTOR);
        read(sector, first)?;
        read(0, second)?;
        let is_of = |part: &[u8], cycle: u32| {
            let mut words = part.chunks_exact(SECTOR).map(|sector| be32(sector, 0));
            words.all(|word| word == Some(cycle))
        };
        let cycle = (record.lsn >> 32) as u32;
        // xlog_split_iclog: the cycle number never equals the magic number of a header.
        let next = match cycle.wrapping_add(1) {
            MAGIC => MAGIC + 1,
            next => next,
        };
        let is_whole = is_of(&first[SECTOR..], cycle) && is_of(second, next);
        swap_words(&mut record.bytes, record.content_at);
        Ok(is_whole.then_some(record))
    }

    /// Number of log sectors that the record takes.
    pub fn sectors(&self) -> u64 {
        (self.bytes.len() / SECTOR) as u64
    }

    /// Returns the operations of the record, as far as they can be read.
    pub fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        let mut at = self.content_at;
        (0..self.operation_count).map_while(move |_| {
            let begin = at.checked_add(OPERATION_BYTES)?;
            let header = self.bytes.get(at..begin)?;
            let end = begin.checked_add(be32(header, 4)? as usize)?;
            let operation = Operation {
                id: be32(header, 0)?,
                flags: header[9],
                range: at..end,
                payload: self.bytes.get(begin..end)?,
            };
            at = end;
            Some(operation)
        })
    }

    /// Ranges of the record on disk that the checksum at [`CHECKSUM_AT`] covers, in order.
    pub fn covered(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        let further = (SECTOR..self.content_at).step_by(SECTOR);
        let further = further.map(|at| at..at + FURTHER_HEADER_BYTES);
        let content = self.content_at..self.content_at + self.length;
        std::iter::once(0..HEADER_BYTES)
            .chain(further)
            .chain([content])
    }
}

/// Returns the LSN and the tail of a record with operations, if `header` is its header at this
/// sector. (The kernel writes records without operations over the remains of an old cycle.)
pub fn numbers(sector: u64, header: &[u8], uuid: &[u8; 16]) -> Option<(u64, u64)> {
    let (lsn, tail) = (be64(header, 16)?, be64(header, 24)?);
    let is_here = is_header(header) && lsn & u64::from(u32::MAX) == sector;
    let is_ours = self::uuid(header)? == *uuid && be32(header, 40)? > 0;
    (is_here && is_ours).then_some((lsn, tail))
}

/// Swaps cycle numbers with the words that they replaced. On disk, the first word of every content
/// sector is the cycle number, and headers keep the replaced words.
pub fn swap_words(record: &mut [u8], content_at: usize) {
    let Some((headers, content)) = record.split_at_mut_checked(content_at) else {
        return;
    };
    for (number, sector) in content.chunks_exact_mut(SECTOR).enumerate() {
        let (header, word) = (number / CYCLE_WORDS, number % CYCLE_WORDS);
        // h_cycle_data; in further headers, xh_cycle_data.
        let words_at = if header == 0 { 44 } else { 4 };
        let at = header * SECTOR + words_at + word * 4;
        if let (Some(kept), Some(place)) = (headers.get_mut(at..at + 4), sector.get_mut(..4)) {
            place.swap_with_slice(kept);
        }
    }
}

#[derive(Debug)]
struct Open<T> {
    first: u64,
    record: Record<T>,
    missing: Vec<bool>,
}

impl<T> Open<T> {
    /// Index of this log sector in the record. Records wrap around at the end of the log.
    fn position(&self, sector: u64, log_sectors: u64) -> usize {
        let position = match sector.checked_sub(self.first) {
            Some(position) => position,
            None => sector + log_sectors.saturating_sub(self.first),
        };
        usize::try_from(position).unwrap_or(usize::MAX)
    }
}

/// Records in flight.
#[derive(Debug)]
pub struct Records<T> {
    log_sectors: u64,
    uuid: [u8; 16],
    open: Vec<Open<T>>,
    ready: BTreeMap<u64, Record<T>>,
    last_block: Option<u32>,
    /// LSNs of the newest records that were returned. A write of a whole page, as by md, may hold
    /// records that were written before.
    returned: VecDeque<u64>,
}

impl<T> Records<T> {
    /// Creates a reader for a log of this many sectors.
    pub fn new(log_sectors: u64, uuid: [u8; 16]) -> Records<T> {
        Records {
            log_sectors,
            uuid,
            open: Vec::new(),
            ready: BTreeMap::new(),
            last_block: None,
            returned: VecDeque::new(),
        }
    }

    /// Adds content written at `sector` of the log and after it. Returns the number of leading bytes
    /// that filled a gap in a record, or `None` if no record is missing this sector. The record
    /// keeps these bytes with the result of `place` for their number.
    pub fn write(
        &mut self,
        sector: u64,
        content: &[u8],
        place: impl FnOnce(usize) -> T,
    ) -> Option<usize> {
        if content.len() >= SECTOR && is_header(content) {
            self.begin(sector, content);
        }
        let log_sectors = self.log_sectors;
        let is_missing = |open: &Open<T>| {
            let at = open.position(sector, log_sectors);
            open.missing.get(at) == Some(&true)
        };
        let number = self.open.iter().position(is_missing)?;
        let open = &mut self.open[number];
        let at = open.position(sector, log_sectors);
        let until_wrap = log_sectors.saturating_sub(sector) as usize;
        let count = open.missing[at..].iter().take_while(|m| **m).count();
        let count = count.min(content.len() / SECTOR).min(until_wrap);
        // A header ends the previous record, whatever length that record announced.
        let next = (1..count).find(|&n| is_header(&content[n * SECTOR..]));
        let count = next.unwrap_or(count);
        if count == 0 {
            return None;
        }
        open.missing[at..at + count].fill(false);
        let (range, length) = (at * SECTOR..(at + count) * SECTOR, count * SECTOR);
        let bytes = open.record.bytes.get_mut(range.clone())?;
        bytes.copy_from_slice(&content[..length]);
        let place = place(length);
        open.record.pieces.push(Piece { range, place });
        if !open.missing.contains(&true) {
            let record = self.open.remove(number).record;
            self.complete(record);
        }
        Some(length)
    }

    /// Starts a record for the header at this sector of the log. Incomplete records that it
    /// overwrites are dropped, because the rest of them never arrives.
    fn begin(&mut self, sector: u64, header: &[u8]) {
        let log_sectors = self.log_sectors;
        self.open
            .retain(|open| open.position(sector, log_sectors) >= open.missing.len());
        let record = Record::parse(header, &self.uuid)
            .filter(|record| record.sectors() <= log_sectors && self.open.len() <= MOST_OPEN);
        self.open.extend(record.map(|record| Open {
            first: sector,
            missing: vec![true; record.bytes.len() / SECTOR],
            record,
        }));
    }

    fn complete(&mut self, mut record: Record<T>) {
        swap_words(&mut record.bytes, record.content_at);
        record.pieces.sort_by_key(|piece| piece.range.start);
        // The kernel writes records without operations over the remains of an old cycle.
        if record.operation_count > 0 && !self.returned.contains(&record.lsn) {
            self.ready.entry(record.lsn).or_insert(record);
        }
    }

    /// Returns the next record in log order, if it is complete. With `all`, records that are
    /// missing are skipped.
    pub fn next(&mut self, all: bool) -> Option<Record<T>> {
        let follows = |record: &Record<T>| {
            self.last_block
                .is_none_or(|last| record.previous_block == last)
        };
        let waited = all || self.ready.len() > UNDER_WAY;
        let mut ready = self.ready.iter();
        let next = ready.find(|(_, record)| follows(record));
        let (&lsn, _) = next.or(self.ready.first_key_value().filter(|_| waited))?;
        self.last_block = Some(lsn as u32);
        self.returned.truncate(MOST_RETURNED - 1);
        self.returned.push_front(lsn);
        self.ready.remove(&lsn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG_SECTORS: u64 = 16;

    /// Builds a record at this sector. Its content is three sectors that begin with `word`.
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

    /// Writes content from this sector on. Returns the first sector of each part that a record
    /// took, and `None` for each sector that no record took.
    fn write(records: &mut Records<u64>, sector: u64, content: &[u8]) -> Vec<Option<u64>> {
        let (mut taken, mut done) = (Vec::new(), 0);
        while done < content.len() {
            let at = sector + (done / SECTOR) as u64;
            let length = records.write(at, &content[done..], |_| at);
            taken.push(length.map(|_| at));
            done += length.unwrap_or(SECTOR);
        }
        taken
    }

    fn words(record: &Record<u64>) -> Vec<u8> {
        let sectors = record.bytes.chunks_exact(SECTOR).skip(1);
        sectors.map(|sector| sector[0]).collect()
    }

    #[test]
    fn records_come_in_the_order_of_the_log() {
        let mut records = Records::new(LOG_SECTORS, [0; 16]);
        write(&mut records, 0, &record(0, 9, 1));
        assert_eq!(records.next(false).map(|r| words(&r)), Some(vec![1, 1, 1]));
        write(&mut records, 8, &record(8, 4, 3));
        assert!(records.next(false).is_none());
        write(&mut records, 4, &record(4, 0, 2));
        assert_eq!(records.next(false).map(|r| words(&r)), Some(vec![2, 2, 2]));
        assert_eq!(records.next(false).map(|r| words(&r)), Some(vec![3, 3, 3]));
    }

    #[test]
    fn a_record_goes_on_at_the_logs_begin() {
        let mut records = Records::new(LOG_SECTORS, [0; 16]);
        let whole = record(14, 9, 5);
        write(&mut records, 14, &whole[..2 * SECTOR]);
        assert!(records.next(true).is_none());
        // One write carries the second part of the record and the next record.
        let rest = [&whole[2 * SECTOR..], &record(2, 14, 6)[..]].concat();
        assert_eq!(write(&mut records, 0, &rest), [Some(0), Some(2)]);
        let first = records.next(false).unwrap();
        assert_eq!(words(&first), [5, 5, 5]);
        let places: Vec<u64> = first.pieces.iter().map(|p| p.place).collect();
        assert_eq!(places, [14, 0]);
        assert_eq!(records.next(false).map(|r| words(&r)), Some(vec![6, 6, 6]));
    }

    /// md writes whole pages, so that a write may hold records that were written before.
    #[test]
    fn a_record_that_is_written_again_is_read_once() {
        let mut records = Records::new(LOG_SECTORS, [0; 16]);
        let all = [record(0, 9, 1), record(4, 0, 2), record(8, 4, 3)];
        let mut read = Vec::new();
        for count in 1..=all.len() {
            write(&mut records, 0, &all[..count].concat());
            read.extend(std::iter::from_fn(|| records.next(false)).map(|record| words(&record)[0]));
        }
        assert_eq!(read, [1, 2, 3]);
        assert!(records.next(true).is_none(), "nothing waits");
    }

    #[test]
    fn of_another_file_system_is_no_record() {
        let mut records = Records::new(LOG_SECTORS, [1; 16]);
        assert_eq!(write(&mut records, 0, &record(0, 9, 1)), [None; 4]);
        assert!(records.next(true).is_none());
    }

    #[test]
    fn words_swapped_twice_are_the_record_as_it_lies_on_the_disk() {
        let mut records = Records::new(LOG_SECTORS, [0; 16]);
        let on_disk = record(0, 9, 1);
        write(&mut records, 0, &on_disk);
        let mut record = records.next(false).unwrap();
        assert_eq!(record.bytes[SECTOR..][..4], [1; 4]);
        let covered: Vec<_> = record.covered().collect();
        assert_eq!(covered, [0..HEADER_BYTES, SECTOR..4 * SECTOR]);
        swap_words(&mut record.bytes, record.content_at);
        assert_eq!(record.bytes, on_disk);
    }
}
