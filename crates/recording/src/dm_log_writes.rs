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
    let sector = u64::from(disk_of(recording, disk)?.logical_block_bytes);
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

fn disk_of(recording: &Recording, disk: u16) -> Result<&DiskInfo> {
    let disks = &recording.header().disks;
    disks.get(usize::from(disk)).ok_or_else(|| {
        Error::new(
            ErrorKind::Invalid,
            format!("{}: there is no disk {disk}", recording.path().display()),
        )
    })
}

/// Writes the requests of one disk as a dm-log-writes log. Returns the number of entries.
///
/// Reads are omitted. A write-zeroes becomes writes of zeros. A discard or hole punch becomes a
/// discard, for which replay tools discard the range or write zeros. Entries are in order of
/// completion. The kernel's target differs: it logs a write without FUA only when a later flush has
/// completed.
pub fn export(recording: &Recording, disk: u16, out: Output) -> Result<u64> {
    let info = disk_of(recording, disk)?;
    let Output { file, path } = out;
    let failed = |e: io::Error| Error::io("writing", &path, e);
    let mut log = LogWriter {
        out: BufWriter::with_capacity(1 << 20, file),
        sector: u64::from(info.logical_block_bytes),
        entries: 0,
    };
    log.superblock().map_err(failed)?;
    recording.for_each_frame(true, |_, frame| {
        for event in frame
            .events
            .iter()
            .filter(|e| e.op == Op::Mark || e.disk == disk)
        {
            let written = match event.op {
                Op::Read => Ok(()),
                Op::Flush => log.entry(0, 0, FLUSH, &[]),
                Op::Write => log.entry(
                    event.offset,
                    event.length,
                    if event.fua { FUA } else { 0 },
                    frame.content_of(event),
                ),
                Op::WriteZeroes => log.zeros(event.offset, event.length),
                Op::Discard | Op::Punch => log.entry(event.offset, event.length, DISCARD, &[]),
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
            data_bytes: 0.into(),
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
            sector: 0.into(),
            sectors: 0.into(),
            flags: MARK.into(),
            data_bytes: (text.len() as u64).into(),
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
    let mut reader = LogReader::open(log)?;
    let imported = (|| {
        let entries = reader.superblock()?;
        let size_bytes = reader.furthest_byte(entries)?;
        let disk = DiskInfo {
            name: "main".into(),
            size_bytes: size_bytes
                .max(reader.sector)
                .next_multiple_of(reader.sector),
            logical_block_bytes: reader.sector as u32,
            physical_block_bytes: (reader.sector as u32).max(4096),
        };
        disk.check().map_err(|what| Error::corrupt(0, what))?;
        let mut writer = Writer::fill(
            recording,
            &Header {
                begin_unix_ns: 0,
                disks: vec![disk],
                stripped: crate::Stripped::No,
            },
        )?;
        reader.rewind()?;
        for number in 0..entries {
            reader.copy_entry(number, &mut writer)?;
        }
        writer.finish()?;
        Ok(entries)
    })();
    imported.map_err(|e: Error| e.in_file(log))
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
}

/// The requests of a log in log order, without their data.
pub struct Entries {
    reader: LogReader,
    next: u64,
    count: u64,
}

impl Entries {
    /// Opens a log.
    pub fn open(log: &Path) -> Result<Entries> {
        let mut reader = LogReader::open(log)?;
        let count = reader.superblock().map_err(|e| e.in_file(log))?;
        Ok(Entries {
            reader,
            next: 0,
            count,
        })
    }

    /// Returns the next request; `None` at the end.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        while self.next < self.count {
            let (number, at_byte) = (self.next, self.reader.at);
            self.next += 1;
            let (raw, _) = self.reader.entry()?;
            self.reader.skip(self.reader.data_bytes(&raw))?;
            let flags = raw.flags.get();
            if flags & MARK == 0 {
                return Ok(Some(Entry {
                    number,
                    at_byte,
                    has_flush: flags & FLUSH != 0,
                    is_discard: flags & DISCARD != 0,
                    is_fua: flags & FUA != 0,
                    offset: raw.sector.get() * self.reader.sector,
                    length: raw.sectors.get() * self.reader.sector,
                }));
            }
        }
        Ok(None)
    }
}

struct LogReader {
    input: BufReader<File>,
    sector: u64,
    log_bytes: u64,
    at: u64,
}

impl LogReader {
    fn open(log: &Path) -> Result<LogReader> {
        let file = file::open_regular(log)?;
        let metadata = file.metadata();
        Ok(LogReader {
            input: BufReader::with_capacity(1 << 20, file),
            sector: 512,
            log_bytes: metadata.map_err(|e| Error::io("reading", log, e))?.len(),
            at: 0,
        })
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.input.read_exact(bytes).map_err(|e| {
            let kind = if e.kind() == io::ErrorKind::UnexpectedEof {
                ErrorKind::Corrupt
            } else {
                ErrorKind::Io
            };
            Error::new(
                kind,
                format!("at byte {}: the log is truncated ({e})", self.at),
            )
        })?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn superblock(&mut self) -> Result<u64> {
        let mut raw = RawSuper::new_zeroed();
        self.fill(raw.as_mut_bytes())?;
        if raw.magic.get() != MAGIC || raw.version.get() != LOG_VERSION {
            return Err(Error::new(
                ErrorKind::Format,
                "not a log of dm-log-writes, version 1",
            ));
        }
        let sector = u64::from(raw.sector_bytes.get());
        if !sector.is_power_of_two() || !(SECTOR_BYTES..=65536).contains(&sector) {
            return Err(Error::corrupt(
                24,
                format!("invalid sector size: {sector} bytes"),
            ));
        }
        self.sector = sector;
        self.rewind()?;
        let entries = raw.entries.get();
        if entries > self.log_bytes / sector {
            return Err(Error::corrupt(
                16,
                format!(
                    "{entries} entries do not fit a log of {} bytes",
                    self.log_bytes
                ),
            ));
        }
        Ok(entries)
    }

    /// Seeks to the first entry.
    fn rewind(&mut self) -> Result<()> {
        self.seek_to(self.sector)
    }

    fn seek_to(&mut self, at: u64) -> Result<()> {
        self.at = at;
        self.input
            .seek(SeekFrom::Start(at))
            .map(drop)
            .map_err(|e| Error::new(ErrorKind::Io, format!("at byte {at}: {e}")))
    }

    /// Reads the next entry and, for a mark, its text.
    fn entry(&mut self) -> Result<(RawEntry, Vec<u8>)> {
        let at = self.at;
        let mut sector = vec![0; self.sector as usize];
        self.fill(&mut sector)?;
        let (raw, rest) = RawEntry::read_from_prefix(&sector)
            .map_err(|_| Error::corrupt(at, "an entry is truncated"))?;
        let impossible = || Error::corrupt(at, "an entry's numbers are invalid");
        let end = raw
            .sector
            .get()
            .checked_add(raw.sectors.get())
            .and_then(|end| end.checked_mul(self.sector));
        if end.is_none() || raw.flags.get() >= 32 {
            return Err(impossible());
        }
        let text = if raw.flags.get() & MARK != 0 {
            let length = usize::try_from(raw.data_bytes.get()).map_err(|_| impossible())?;
            rest.get(..length).ok_or_else(impossible)?.to_vec()
        } else {
            Vec::new()
        };
        Ok((raw, text))
    }

    fn data_bytes(&self, entry: &RawEntry) -> u64 {
        if entry.flags.get() & (DISCARD | MARK) != 0 {
            0
        } else {
            entry.sectors.get() * self.sector
        }
    }

    fn furthest_byte(&mut self, entries: u64) -> Result<u64> {
        let mut furthest = 0;
        for _ in 0..entries {
            let (entry, _) = self.entry()?;
            furthest = furthest.max((entry.sector.get() + entry.sectors.get()) * self.sector);
            self.skip(self.data_bytes(&entry))?;
        }
        Ok(furthest)
    }

    /// Skips an entry's data.
    fn skip(&mut self, data: u64) -> Result<()> {
        if data > self.log_bytes - self.at {
            return Err(Error::corrupt(
                self.at,
                "the log is truncated in an entry's data",
            ));
        }
        let relative = i64::try_from(data).map_err(|_| Error::corrupt(self.at, "too much data"))?;
        self.at += data;
        let at = self.at;
        let sought = self.input.seek_relative(relative);
        sought.map_err(|e| Error::new(ErrorKind::Io, format!("at byte {at}: {e}")))
    }

    fn copy_entry(&mut self, number: u64, writer: &mut Writer) -> Result<()> {
        let (entry, text) = self.entry()?;
        let flags = entry.flags.get();
        let (offset, length) = (
            entry.sector.get() * self.sector,
            entry.sectors.get() * self.sector,
        );
        let event = |op, offset, length, fua| Event {
            submit_ns: number,
            complete_ns: number,
            offset,
            length,
            content_offset: 0,
            disk: 0,
            op,
            fua,
        };
        if flags & MARK != 0 {
            let name = String::from_utf8_lossy(&text)
                .trim_end_matches('\0')
                .to_owned();
            return writer.mark(
                &Mark {
                    name,
                    detail: serde_json::Value::Null,
                },
                number,
            );
        }
        if flags & FLUSH != 0 {
            writer.append(event(Op::Flush, 0, 0, false))?;
        }
        if flags & DISCARD != 0 {
            writer.append(event(Op::Discard, offset, length, false))?;
            return Ok(());
        }
        let mut done = 0;
        while done < length {
            let part = (length - done).min(MAX_REQUEST_BYTES as u64);
            let space = writer
                .space()
                .get_mut(..part as usize)
                .ok_or_else(|| Error::new(ErrorKind::Invalid, "a write is too long"))?;
            self.fill(space)?;
            writer.append(event(Op::Write, offset + done, part, flags & FUA != 0))?;
            done += part;
        }
        Ok(())
    }
}
