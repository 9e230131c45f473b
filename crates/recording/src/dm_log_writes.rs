//! Export to and import from the log of the kernel's dm-log-writes target, for external replay
//! tools.
//!
//! Layout (`Documentation/admin-guide/device-mapper/log-writes.rst`, `drivers/md/dm-log-writes.c`):
//! a superblock in sector 0, followed by entries. Each entry fills one sector and is followed by
//! its data. The sectors of the log have the size of the disk's logical blocks. The text of a mark
//! follows the entry within the entry's own sector.

use crate::{
    DiskInfo, Error, ErrorKind, Event, Header, MAX_REQUEST_BYTES, Mark, Op, Output, Recording,
    Result, SECTOR_BYTES, Writer, file,
};
use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write},
    path::Path,
};
use zerocopy::{
    FromBytes, FromZeros as _, Immutable, IntoBytes, KnownLayout, Unaligned,
    little_endian::{U32, U64},
};

const MAGIC: u64 = 0x6a_7366_7773_6872;
const LOG_VERSION: u64 = 1;
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
const MARK: u64 = 8;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawSuper {
    magic: U64,
    version: U64,
    entries: U64,
    sector_bytes: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawEntry {
    sector: U64,
    sectors: U64,
    flags: U64,
    data_bytes: U64,
}

/// Returns the size of the log that [`export`] writes. Zeros are content in the log, so it can be
/// far larger than the recording.
pub fn export_bytes(recording: &Recording, disk: u16) -> Result<u64> {
    let sector = u64::from(recording.disk(disk)?.logical_block_bytes);
    let mut bytes = sector;
    recording.for_each_frame(false, |_, frame| {
        for event in &frame.events {
            bytes += match event.op {
                Op::Mark => sector,
                _ if event.disk != disk => 0,
                Op::Read => 0,
                Op::Flush | Op::Discard | Op::Punch => sector,
                Op::Write => sector + event.length,
                Op::WriteZeroes => {
                    event.length.div_ceil(MAX_REQUEST_BYTES as u64) * sector + event.length
                }
            };
        }
        Ok(true)
    })?;
    Ok(bytes)
}

/// Writes the requests of one disk as a dm-log-writes log. Returns the number of entries.
///
/// Reads are omitted. A write-zeroes becomes writes of zeros. A discard or hole punch becomes a
/// discard, for which replay tools discard the range or write zeros. Entries are in order of
/// completion. The kernel's target differs: it logs a write without FUA only when a later flush has
/// completed.
pub fn export(recording: &Recording, disk: u16, out: Output) -> Result<u64> {
    let info = recording.disk(disk)?;
    let Output { file, path } = out;
    let failed = |e: io::Error| Error::io("writing", &path, e);
    let mut log = LogWriter {
        out: BufWriter::with_capacity(1 << 20, file),
        sector: u64::from(info.logical_block_bytes),
        entries: 0,
    };
    log.superblock().map_err(failed)?;
    recording.for_each_frame(true, |_, frame| {
        let is_logged = |event: &&Event| event.op == Op::Mark || event.disk == disk;
        for event in frame.events.iter().filter(is_logged) {
            let (offset, length) = (event.offset, event.length);
            let fua = if event.fua { FUA } else { 0 };
            let written = match event.op {
                Op::Read => Ok(()),
                Op::Flush => log.entry(0, 0, FLUSH, &[]),
                Op::Write => log.entry(offset, length, fua, frame.content_of(event)),
                Op::WriteZeroes => log.zeros(offset, length),
                Op::Discard | Op::Punch => log.entry(offset, length, DISCARD, &[]),
                Op::Mark => log.mark(&frame.mark_of(event)?.name),
            };
            written.map_err(failed)?;
        }
        Ok(true)
    })?;
    log.finish().map_err(failed)
}

struct LogWriter {
    out: BufWriter<File>,
    sector: u64,
    entries: u64,
}

impl LogWriter {
    fn superblock(&mut self) -> io::Result<()> {
        let raw = RawSuper {
            magic: MAGIC.into(),
            version: LOG_VERSION.into(),
            entries: self.entries.into(),
            sector_bytes: (self.sector as u32).into(),
        };
        self.sector_of(raw.as_bytes(), &[])
    }

    fn sector_of(&mut self, first: &[u8], second: &[u8]) -> io::Result<()> {
        self.out.write_all(first)?;
        self.out.write_all(second)?;
        let padding = self.sector as usize - first.len() - second.len();
        self.out.write_all(&vec![0; padding])
    }

    fn entry(&mut self, offset: u64, length: u64, flags: u64, data: &[u8]) -> io::Result<()> {
        let raw = RawEntry {
            sector: (offset / self.sector).into(),
            sectors: (length / self.sector).into(),
            flags: flags.into(),
            ..RawEntry::new_zeroed()
        };
        self.entries += 1;
        self.sector_of(raw.as_bytes(), &[])?;
        self.out.write_all(data)
    }

    fn zeros(&mut self, offset: u64, length: u64) -> io::Result<()> {
        let zeros = vec![0; MAX_REQUEST_BYTES];
        let mut done = 0;
        while done < length {
            let part = (length - done).min(zeros.len() as u64);
            self.entry(offset + done, part, 0, &zeros[..part as usize])?;
            done += part;
        }
        Ok(())
    }

    fn mark(&mut self, name: &str) -> io::Result<()> {
        let room = self.sector as usize - size_of::<RawEntry>() - 1;
        let text = &name.as_bytes()[..name.len().min(room)];
        let raw = RawEntry {
            flags: MARK.into(),
            data_bytes: (text.len() as u64).into(),
            ..RawEntry::new_zeroed()
        };
        self.entries += 1;
        self.sector_of(raw.as_bytes(), text)
    }

    fn finish(mut self) -> io::Result<u64> {
        self.out.seek(SeekFrom::Start(0))?;
        self.superblock()?;
        self.out.flush()?;
        Ok(self.entries)
    }
}

/// Creates a recording from a log. A log does not contain the size of its disk, so the end of the
/// furthest write is used. Times are entry numbers in nanoseconds; only their order is meaningful.
/// Returns the number of entries.
pub fn import(log: &Path, recording: Output) -> Result<u64> {
    let mut entries = Entries::open(log)?;
    let imported = entries.copy(recording);
    imported.map(|()| entries.count).map_err(|e| e.in_file(log))
}

/// True if a file begins like a log.
#[must_use]
pub fn is_log(head: &[u8]) -> bool {
    head.starts_with(&MAGIC.to_le_bytes())
}

/// An entry of a log that is a request. The flush precedes the discard or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Number of the entry in the log, from 0. Marks are counted too.
    pub number: u64,
    /// Offset of the entry in the log, in bytes.
    pub at_byte: u64,
    /// True if the device was asked to flush.
    pub has_flush: bool,
    /// True if the range was discarded instead of written.
    pub is_discard: bool,
    /// True if the write itself is durable.
    pub is_fua: bool,
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes; 0 for a flush without data.
    pub length: u64,
    /// Bytes of data that follow in the log.
    data_bytes: u64,
}

/// The requests of a log in log order, without their data.
pub struct Entries {
    input: BufReader<File>,
    sector: u64,
    log_bytes: u64,
    at: u64,
    next: u64,
    count: u64,
}

impl Entries {
    /// Opens a log.
    pub fn open(log: &Path) -> Result<Entries> {
        let file = file::open_regular(log)?;
        let metadata = file.metadata();
        let mut entries = Entries {
            input: BufReader::with_capacity(1 << 20, file),
            sector: 512,
            log_bytes: metadata.map_err(|e| Error::io("reading", log, e))?.len(),
            at: 0,
            next: 0,
            count: 0,
        };
        entries.superblock().map_err(|e| e.in_file(log))?;
        Ok(entries)
    }

    /// Returns the next request; `None` at the end.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        while let Some((entry, mark)) = self.entry()? {
            self.skip(entry.data_bytes)?;
            if mark.is_none() {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.input.read_exact(bytes).map_err(|e| {
            let kind = match e.kind() {
                io::ErrorKind::UnexpectedEof => ErrorKind::Corrupt,
                _ => ErrorKind::Io,
            };
            let what = format!("at byte {}: the log is truncated ({e})", self.at);
            Error::new(kind, what)
        })?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn superblock(&mut self) -> Result<()> {
        let mut raw = RawSuper::new_zeroed();
        self.fill(raw.as_mut_bytes())?;
        if raw.magic.get() != MAGIC || raw.version.get() != LOG_VERSION {
            let what = "not a log of dm-log-writes, version 1";
            return Err(Error::new(ErrorKind::Format, what));
        }
        let sector = u64::from(raw.sector_bytes.get());
        if !sector.is_power_of_two() || !(SECTOR_BYTES..=65536).contains(&sector) {
            let what = format!("invalid sector size: {sector} bytes");
            return Err(Error::corrupt(24, what));
        }
        self.sector = sector;
        self.count = raw.entries.get();
        self.rewind()?;
        let (count, bytes) = (self.count, self.log_bytes);
        if count > bytes / sector {
            let what = format!("{count} entries do not fit a log of {bytes} bytes");
            return Err(Error::corrupt(16, what));
        }
        Ok(())
    }

    /// Seeks to the first entry.
    fn rewind(&mut self) -> Result<()> {
        (self.at, self.next) = (self.sector, 0);
        let sought = self.input.seek(SeekFrom::Start(self.at));
        sought.map(drop).map_err(|e| Error::io_at(self.at, e))
    }

    /// Reads the next entry and, for a mark, its text. `None` at the end.
    fn entry(&mut self) -> Result<Option<(Entry, Option<Vec<u8>>)>> {
        if self.next == self.count {
            return Ok(None);
        }
        let (number, at) = (self.next, self.at);
        self.next += 1;
        let mut sector = vec![0; self.sector as usize];
        self.fill(&mut sector)?;
        let (raw, rest) = RawEntry::read_from_prefix(&sector)
            .map_err(|_| Error::corrupt(at, "an entry is truncated"))?;
        let impossible = || Error::corrupt(at, "an entry's numbers are invalid");
        let (first, count, flags) = (raw.sector.get(), raw.sectors.get(), raw.flags.get());
        let end = first.checked_add(count);
        let end = end.and_then(|end| end.checked_mul(self.sector));
        if end.is_none() || flags >= 32 {
            return Err(impossible());
        }
        let mut mark = None;
        if flags & MARK != 0 {
            let length = usize::try_from(raw.data_bytes.get()).map_err(|_| impossible())?;
            mark = Some(rest.get(..length).ok_or_else(impossible)?.to_vec());
        }
        let length = count * self.sector;
        let entry = Entry {
            number,
            at_byte: at,
            has_flush: flags & FLUSH != 0,
            is_discard: flags & DISCARD != 0,
            is_fua: flags & FUA != 0,
            offset: first * self.sector,
            length,
            data_bytes: match flags & (DISCARD | MARK) {
                0 => length,
                _ => 0,
            },
        };
        Ok(Some((entry, mark)))
    }

    /// Writes the whole log as a recording.
    fn copy(&mut self, recording: Output) -> Result<()> {
        let mut size_bytes = self.sector;
        while let Some((entry, _)) = self.entry()? {
            size_bytes = size_bytes.max(entry.offset + entry.length);
            self.skip(entry.data_bytes)?;
        }
        let disk = DiskInfo {
            name: "main".into(),
            size_bytes,
            logical_block_bytes: self.sector as u32,
            physical_block_bytes: (self.sector as u32).max(4096),
        };
        disk.check().map_err(|what| Error::corrupt(0, what))?;
        let header = Header {
            disks: vec![disk],
            ..Header::default()
        };
        let mut writer = Writer::fill(recording, &header)?;
        self.rewind()?;
        while let Some((entry, mark)) = self.entry()? {
            match mark {
                Some(text) => {
                    let name = String::from_utf8_lossy(&text);
                    let mark = Mark::new(name.trim_end_matches('\0'));
                    writer.mark(&mark, entry.number)?;
                }
                None => self.copy_request(&entry, &mut writer)?,
            }
        }
        writer.finish()?;
        Ok(())
    }

    /// Skips an entry's data.
    fn skip(&mut self, data: u64) -> Result<()> {
        if data > self.log_bytes - self.at {
            let what = "the log is truncated in an entry's data";
            return Err(Error::corrupt(self.at, what));
        }
        let relative = i64::try_from(data).map_err(|_| Error::corrupt(self.at, "too much data"))?;
        self.at += data;
        let sought = self.input.seek_relative(relative);
        sought.map_err(|e| Error::io_at(self.at, e))
    }

    fn copy_request(&mut self, entry: &Entry, writer: &mut Writer) -> Result<()> {
        let (time, length) = (entry.number, entry.data_bytes);
        if entry.has_flush {
            writer.append(Event::new(Op::Flush, time))?;
        }
        if entry.is_discard {
            writer.append(Event {
                offset: entry.offset,
                length: entry.length,
                ..Event::new(Op::Discard, time)
            })?;
        }
        let mut done = 0;
        while done < length {
            let part = (length - done).min(MAX_REQUEST_BYTES as u64);
            // A writer always has space for one more request of the largest size.
            self.fill(&mut writer.space()[..part as usize])?;
            writer.append(Event {
                offset: entry.offset + done,
                length: part,
                fua: entry.is_fua,
                ..Event::new(Op::Write, time)
            })?;
            done += part;
        }
        Ok(())
    }
}
