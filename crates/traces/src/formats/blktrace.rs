//! Binary files of blktrace(8): records of `struct blk_io_trace` (version 7) or `blk_io_trace2`
//! (version 8), each followed by `pdu_len` bytes, in the byte order of the machine that recorded
//! them.
//!
//! Source: `include/uapi/linux/blktrace_api.h`. blktrace writes one file for each CPU; they are
//! merged by time, as blkparse does.

use super::Reader;
use crate::{
    device_events::{Action, Counter, Event, Operation},
    error::{Error, Place, Problem, Result},
    input::{Bytes, Source, read_error},
    request::{Kind, Output},
};
use std::{
    fmt::Write as _,
    io::{self, BufReader, Read as _},
    path::PathBuf,
};

/// `BLK_IO_TRACE_MAGIC`: "eat" in the upper 24 bits, the version in the lowest 8.
const MAGIC: u32 = 0x6561_7400;
const VERSION_1: u32 = 7;
const VERSION_2: u32 = 8;
const RECORD_BYTES: usize = 48;
const RECORD_2_BYTES: usize = 64;
const BUFFER_BYTES: usize = 1 << 18;
const SECTOR_BYTES: u64 = 512;

/// `enum blktrace_cat`: bits of the action above its lowest 16.
mod category {
    pub(super) const READ: u64 = 1;
    pub(super) const WRITE: u64 = 1 << 1;
    pub(super) const FLUSH: u64 = 1 << 2;
    pub(super) const PC: u64 = 1 << 9;
    pub(super) const NOTIFY: u64 = 1 << 10;
    pub(super) const DISCARD: u64 = 1 << 13;
    pub(super) const FUA: u64 = 1 << 15;
    /// Categories of version 8.
    pub(super) const ZONE_APPEND: u64 = 1 << 16;
    pub(super) const ZONE_MANAGEMENT: u64 = 0b11111 << 17;
    pub(super) const WRITE_ZEROES: u64 = 1 << 22;
}

/// `__BLK_TA_CGROUP`: the payload begins with a cgroup's id.
const CGROUP: u64 = 1 << 8;

/// True if a file begins with a record.
pub(crate) fn is_blktrace(head: &[u8]) -> bool {
    head.first_chunk()
        .is_some_and(|&magic| version_of(magic).is_some())
}

/// Returns the version of a record that begins with this magic number, and whether it is
/// little-endian.
fn version_of(magic: [u8; 4]) -> Option<(u32, bool)> {
    let orders = [
        (u32::from_le_bytes(magic), true),
        (u32::from_be_bytes(magic), false),
    ];
    let found = orders.into_iter().find(|(magic, _)| magic & !0xff == MAGIC);
    found.map(|(magic, is_little)| (magic & 0xff, is_little))
}

/// The relevant fields of a record.
#[derive(Debug, Clone, Copy)]
struct Record {
    at: u64,
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u64,
    device: u32,
    error: u16,
}

/// One file of a trace.
struct Stream {
    path: PathBuf,
    input: BufReader<Bytes>,
    at: u64,
    next: Option<Record>,
}

/// All files of a trace.
pub(crate) struct Blktrace {
    streams: Vec<Stream>,
    counter: Counter,
    current: usize,
    /// Name of the latest disk. The allocation is reused.
    name: String,
}

impl Blktrace {
    pub(crate) fn new(sources: &[Source], action: Action) -> Result<Blktrace> {
        let mut streams = Vec::new();
        for source in sources {
            let mut stream = Stream {
                path: source.path().to_owned(),
                input: BufReader::with_capacity(BUFFER_BYTES, source.bytes()?),
                at: 0,
                next: None,
            };
            stream.advance()?;
            streams.push(stream);
        }
        Ok(Blktrace {
            streams,
            counter: Counter::new(action),
            current: 0,
            name: String::new(),
        })
    }

    /// Returns the action of the next record; `None` at the end.
    pub(crate) fn next_action(&mut self) -> Result<Option<Option<Action>>> {
        Ok(self.next_record()?.map(|record| action_of(&record)))
    }

    /// Returns the earliest record of all streams. A stream advances only when its next record is
    /// needed, so that a damaged record does not affect the one before it.
    fn next_record(&mut self) -> Result<Option<Record>> {
        if let Some(last) = self.streams.get_mut(self.current)
            && last.next.is_none()
        {
            last.advance()?;
        }
        let records = self.streams.iter().map(|stream| stream.next).enumerate();
        let earliest = records
            .filter_map(|(stream, record)| record.map(|record| (record.time_ns, stream)))
            .min();
        let Some((_, stream)) = earliest else {
            return Ok(None);
        };
        self.current = stream;
        Ok(self.streams[stream].next.take())
    }

    fn add(&mut self, record: &Record, out: &mut Output) -> std::result::Result<(), Problem> {
        let Some(action) = action_of(record) else {
            return Ok(());
        };
        let is_failed = action == Action::Complete && record.error != 0;
        let operation = operation(record);
        let is_something = operation.has_preflush || record.bytes > 0;
        if !is_something || !self.counter.needs(action) {
            return Ok(());
        }
        // blkparse prints whole sectors, so this counts whole sectors too.
        let length_bytes = u64::from(record.bytes) / SECTOR_BYTES * SECTOR_BYTES;
        self.name.clear();
        // `MAJOR` and `MINOR` of the kernel's `dev_t` (include/linux/kdev_t.h). Writing
        // to a String cannot fail.
        let _ = write!(
            self.name,
            "{},{}",
            record.device >> 20,
            record.device & 0xf_ffff
        );
        let event = Event {
            action,
            is_failed,
            operation,
            time_ns: record.time_ns,
            sector: if length_bytes == 0 { 0 } else { record.sector },
            length_bytes,
        };
        self.counter.take(self.name.as_bytes(), &event, out)
    }
}

impl Reader for Blktrace {
    fn step(&mut self, out: &mut Output) -> Result<bool> {
        let Some(record) = self.next_record()? else {
            return Ok(false);
        };
        let added = self.add(&record, out);
        added.map_err(|problem| self.streams[self.current].malformed(record.at, problem))?;
        Ok(true)
    }
}

fn action_of(record: &Record) -> Option<Action> {
    let categories = record.action >> 16;
    if categories & (category::NOTIFY | category::PC | category::ZONE_MANAGEMENT) != 0 {
        return None;
    }
    match record.action & 0xffff & !CGROUP {
        1 => Some(Action::Queue),
        6 => Some(Action::Requeue),
        7 => Some(Action::Issue),
        8 => Some(Action::Complete),
        _ => None,
    }
}

/// Returns the operation as `fill_rwbs` of blkparse chooses it.
fn operation(record: &Record) -> Operation {
    let categories = record.action >> 16;
    let has = |category: u64| categories & category != 0;
    let kind = if has(category::DISCARD) {
        Some(Kind::Discard)
    } else if has(category::WRITE_ZEROES) {
        Some(Kind::Zero)
    } else if has(category::WRITE | category::ZONE_APPEND) {
        Some(Kind::Write)
    } else if has(category::READ) || record.bytes > 0 {
        Some(Kind::Read)
    } else {
        None
    };
    Operation {
        kind,
        has_preflush: has(category::FLUSH),
        is_fua: has(category::FUA),
    }
}

impl Stream {
    /// Reads the next record.
    fn advance(&mut self) -> Result<()> {
        let at = self.at;
        let mut raw = [0; RECORD_2_BYTES];
        let first = self.fill(&mut raw[..4])?;
        if first == 0 {
            return Ok(());
        }
        if first < 4 {
            return Err(self.cut(at));
        }
        let magic = [raw[0], raw[1], raw[2], raw[3]];
        let Some((version, is_little)) = version_of(magic) else {
            let magic = u32::from_be_bytes(magic);
            let cause = format!("no record begins here (magic {magic:#010x})");
            return Err(self.malformed(at, cause.into()));
        };
        let length = match version {
            VERSION_1 => RECORD_BYTES,
            VERSION_2 => RECORD_2_BYTES,
            _ => {
                let cause = format!("a record of version {version}; versions 7 and 8 can be read");
                return Err(self.malformed(at, cause.into()));
            }
        };
        if self.fill(&mut raw[4..length])? < length - 4 {
            return Err(self.cut(at));
        }
        let fields = Fields { raw, is_little };
        self.next = Some(fields.record(at, length == RECORD_2_BYTES));
        let payload = u64::from(fields.u16(if length == RECORD_BYTES { 46 } else { 50 }));
        if payload == 0 {
            return Ok(());
        }
        let mut rest = self.input.by_ref().take(payload);
        let skipped = io::copy(&mut rest, &mut io::sink());
        let skipped = skipped.map_err(|e| read_error(&self.path, Place::Byte(self.at), &e))?;
        self.at += skipped;
        if skipped < payload {
            return Err(self.cut(at));
        }
        Ok(())
    }

    /// Fills the buffer as far as the file has data left.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(read_error(&self.path, Place::Byte(self.at), &e)),
            }
        }
        self.at += filled as u64;
        Ok(filled)
    }

    fn cut(&self, at: u64) -> Error {
        self.malformed(at, "the record that begins here is cut off".into())
    }

    fn malformed(&self, at: u64, problem: Problem) -> Error {
        Error::malformed(&self.path, Place::Byte(at), problem)
    }
}

/// Integers of a record, in the record's byte order.
struct Fields {
    raw: [u8; RECORD_2_BYTES],
    is_little: bool,
}

impl Fields {
    fn record(&self, at: u64, is_version_2: bool) -> Record {
        // Version 8 has a 64-bit action after the pid.
        let (action, device, error) = if is_version_2 {
            (self.u64(32), self.u32(40), self.u16(48))
        } else {
            (u64::from(self.u32(28)), self.u32(36), self.u16(44))
        };
        Record {
            at,
            time_ns: self.u64(8),
            sector: self.u64(16),
            bytes: self.u32(24),
            action,
            device,
            error,
        }
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.raw[at..at + N]);
        if !self.is_little {
            bytes.reverse();
        }
        bytes
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }
}
