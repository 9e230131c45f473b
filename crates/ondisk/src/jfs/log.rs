//! Log pages: a stream of records, each preceded by its data. The stream is read backwards from the
//! end of the last record (fs/jfs/jfs_logmgr.h, `lmWriteRecord`).

use super::tree::extent;
use crate::bytes::{le16, le32, part};
use std::collections::{HashMap, VecDeque};

const PAGE: usize = 4096;
/// Sizes of a page's header and of the page without its trailer.
const HEAD: usize = 8;
const TAIL: usize = PAGE - 8;
/// Bytes of a page that belong to the stream.
const BODY: u64 = (TAIL - HEAD) as u64;
/// Size of `struct lrd`, which follows a record's data.
const RECORD: u64 = 36;
const COMMIT: u16 = 0x8000;
/// After-image of lines of a page.
pub const REDO_PAGE: u16 = 0x0800;
/// Record of a page that no longer belongs to a tree.
pub const FREED_PAGE: u16 = 0x0080;
/// Record of pages that no longer hold inodes.
pub const FREED_INODES: u16 = 0x0040;
/// Largest number of pages that one record spans.
const MOST_PAGES: usize = 16;
/// Limits for open transactions, in records and bytes: more than jfs holds in memory.
const MOST_OPEN: usize = 1 << 14;
const MOST_BYTES: usize = 8 << 20;

/// A record about a page of the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Type: [`REDO_PAGE`] and so on.
    pub kind: u16,
    /// Type of the page of an after-image.
    pub page_kind: u16,
    /// Binary logarithm of the bytes of a line.
    line_shift: u32,
    /// Inode number.
    pub inode: u64,
    /// First block and number of blocks.
    pub extent: (u64, u64),
    data: Vec<u8>,
}

impl Record {
    /// Returns the logged lines: the offset of each in the logged area, and its content. In the
    /// data, the content of each line precedes its place and count.
    pub fn lines(&self) -> Vec<(usize, &[u8])> {
        let mut lines = Vec::new();
        let mut end = self.data.len();
        while let Some(at) = end.checked_sub(4) {
            let line = usize::from(le16(&self.data, at)) << self.line_shift;
            let length = usize::from(le16(&self.data, at + 2)) << self.line_shift;
            let Some(from) = at.checked_sub(length).filter(|_| length > 0) else {
                break;
            };
            lines.push((line, part(&self.data, from, at)));
            end = from;
        }
        lines.reverse();
        lines
    }
}

/// State of the log from the pages read so far.
#[derive(Debug, Default)]
pub struct Log {
    /// Newest pages, with consecutive sequence numbers.
    pages: VecDeque<(u64, Vec<u8>)>,
    /// End of the last record read, as an offset in the stream.
    read: Option<u64>,
    /// Open transactions, by number.
    open: HashMap<u32, Vec<Record>>,
    held: (usize, usize),
}

/// Result of reading a page of the log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Transactions that the page completes.
    pub committed: Vec<Vec<Record>>,
    /// True if earlier records were missed.
    pub is_lost: bool,
    /// True if the page completes any records.
    pub is_log: bool,
}

impl Log {
    /// Adds a page that was written to the log.
    pub fn page(&mut self, page: &[u8]) -> News {
        let (number, end) = (le32(page, 0), usize::from(le16(page, 6)));
        let is_whole = number == le32(page, TAIL) && end == usize::from(le16(page, TAIL + 6));
        let mut news = News::default();
        if page.len() != PAGE || !is_whole || !(HEAD..=TAIL).contains(&end) {
            return news;
        }
        let number = u64::from(number);
        match self.pages.back().map(|(last, _)| *last) {
            Some(last) if last == number => _ = self.pages.pop_back(),
            Some(last) if last + 1 == number && self.pages.len() < MOST_PAGES => {}
            Some(_) => news.is_lost = self.lose(),
            None => {}
        }
        self.pages.push_back((number, page.to_vec()));
        // The page is in the middle of a long record.
        if end == HEAD {
            return news;
        }
        let end = number * BODY + (end - HEAD) as u64;
        let Some(records) = self.records(end) else {
            news.is_lost = self.lose();
            return news;
        };
        news.is_log = !records.is_empty();
        self.read = Some(end);
        self.pages.retain(|(page, _)| *page >= number);
        for (transaction, record) in records.into_iter().rev() {
            self.add(transaction, record, &mut news);
        }
        news
    }

    fn add(&mut self, transaction: u32, record: Record, news: &mut News) {
        match record.kind {
            COMMIT => news.committed.extend(self.open.remove(&transaction)),
            REDO_PAGE | FREED_PAGE | FREED_INODES => {
                self.held.0 += 1;
                self.held.1 += record.data.len();
                self.open.entry(transaction).or_default().push(record);
            }
            _ => {}
        }
        if self.open.is_empty() {
            self.held = (0, 0);
        } else if self.held.0 > MOST_OPEN || self.held.1 > MOST_BYTES {
            self.open = HashMap::new();
            self.held = (0, 0);
            news.is_lost = true;
        }
    }

    /// Restarts the stream. Returns whether any record had been read.
    fn lose(&mut self) -> bool {
        let was_read = self.read.is_some();
        *self = Log::default();
        was_read
    }

    /// Returns the records between the last one read and `end`, last record first; `None` if the
    /// records do not connect.
    fn records(&self, end: u64) -> Option<Vec<(u32, Record)>> {
        let begin = self.pages.front().map_or(end, |(first, _)| first * BODY);
        let stop = self.read.unwrap_or(begin);
        let mut records = Vec::new();
        let mut at = end;
        while at > stop {
            let record = self.record(at).filter(|&(from, ..)| from >= stop);
            let Some((from, transaction, record)) = record else {
                // The first page may begin in the middle of a record.
                return self.read.is_none().then_some(records);
            };
            records.push((transaction, record));
            at = from;
        }
        Some(records)
    }

    /// Returns the record that ends at `end`, with its start and transaction.
    fn record(&self, end: u64) -> Option<(u64, u32, Record)> {
        let at = end.checked_sub(RECORD)?;
        let head = self.bytes(at, end)?;
        let kind = le16(&head, 8);
        let from = at.checked_sub(u64::from(le16(&head, 10)))?;
        // Kinds that hold nothing of interest: sync point, mount, changed map, freed file.
        let is_other = matches!(kind, 0x4000 | 0x2000 | 0x0008 | 0x0001);
        if !is_other && !matches!(kind, COMMIT | REDO_PAGE | FREED_PAGE | FREED_INODES) {
            return None;
        }
        let record = Record {
            kind,
            page_kind: le16(&head, 24),
            line_shift: u32::from(le16(&head, 26)).min(12),
            inode: u64::from(le32(&head, 20)),
            extent: extent(&head, 28),
            data: self.bytes(from, at)?,
        };
        Some((from, le32(&head, 0), record))
    }

    /// Returns a part of the stream.
    fn bytes(&self, from: u64, to: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for (number, page) in &self.pages {
            let begin = number * BODY;
            let within = |at: u64| at.clamp(begin, begin + BODY) - begin;
            let (first, last) = (within(from) as usize, within(to) as usize);
            bytes.extend_from_slice(part(page, HEAD + first, HEAD + last));
        }
        (bytes.len() as u64 == to - from).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a record of a transaction, of this kind and with lines of 16 bytes.
    fn record(transaction: u32, kind: u16, lines: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (line, content) in lines {
            bytes.extend_from_slice(content);
            bytes.extend(line.to_le_bytes());
            bytes.extend((content.len() as u16 / 16).to_le_bytes());
        }
        let length = bytes.len() as u16;
        let mut head = [0; RECORD as usize];
        head[..4].copy_from_slice(&transaction.to_le_bytes());
        head[8..10].copy_from_slice(&kind.to_le_bytes());
        head[10..12].copy_from_slice(&length.to_le_bytes());
        (head[20], head[24], head[26], head[28], head[32]) = (7, 2, 4, 1, 99);
        bytes.extend(head);
        bytes
    }

    /// Builds the pages of a stream with records that end at `ends`. Pages are numbered from 40.
    fn pages(stream: &[u8], ends: &[usize]) -> Vec<Vec<u8>> {
        let bodies = stream.chunks(BODY as usize).enumerate();
        let pages = bodies.map(|(number, body)| {
            let begin = number * BODY as usize;
            let within = |end: &&usize| (begin + 1..=begin + BODY as usize).contains(*end);
            let end = ends.iter().rfind(within).map_or(0, |end| end - begin);
            let mut page = vec![0; PAGE];
            page[HEAD..HEAD + body.len()].copy_from_slice(body);
            for at in [0, TAIL] {
                page[at] = 40 + number as u8;
                page[at + 6..at + 8].copy_from_slice(&((HEAD + end) as u16).to_le_bytes());
            }
            page
        });
        pages.collect()
    }

    #[test]
    fn records_are_read_across_pages_once_their_transaction_ends() {
        let (long, short) = ([5; 4064], [6; 16]);
        let mut stream = record(3, 0x2000, &[]);
        let mut ends = vec![stream.len()];
        for record in [
            record(1, REDO_PAGE, &[(0, &long), (2, &short)]),
            record(2, REDO_PAGE, &[(1, &short)]),
            record(1, COMMIT, &[]),
        ] {
            stream.extend(record);
            ends.push(stream.len());
        }
        let pages = pages(&stream, &ends);
        let mut log = Log::default();
        let first = log.page(&pages[0]);
        assert!(first.is_log && first.committed.is_empty());
        // The last page is rewritten for each new record.
        for _ in 0..2 {
            let news = log.page(&pages[1]);
            let found: Vec<_> = news.committed.iter().flatten().collect();
            let lines = found.first().map(|record| record.lines());
            let is_first = lines == Some(vec![(0, &long[..]), (32, &short[..])]);
            assert!(!news.is_lost && is_first == news.is_log && found.len() <= 1);
            if let [record] = found[..] {
                assert_eq!((record.inode, record.extent), (7, (99, 1)));
            }
        }
        assert_eq!(log.open.len(), 1);
        // A page is missing: earlier records do not connect to later ones.
        let mut later = pages[1].clone();
        (later[0], later[TAIL]) = (49, 49);
        assert!(log.page(&later).is_lost);
        assert_eq!(log.page(&[255; PAGE]), News::default());
    }
}
