//! Byte layout of a recording (`docs/recording-format.md`). All integers are little-endian.

use crate::{Error, ErrorKind, Event, Mark, Op, Result, reply::RawReply};
use zerocopy::{
    FromBytes, FromZeros as _, Immutable, IntoBytes, KnownLayout, Unaligned,
    little_endian::{U16, U32, U64},
};

/// Sector size. Offsets and lengths of requests are multiples of it.
pub const SECTOR_BYTES: u64 = 512;
/// Version of the format that is written. A reader rejects later ones. Version 1 has no replies:
/// the fields of their numbers are zero.
pub const VERSION: u16 = 2;
/// Maximum number of disks. A cell has few disks; a larger number means a damaged header.
pub const MAX_DISKS: usize = 64;
/// Maximum content of one request.
pub const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Maximum size of a disk: sectors are 32-bit in the extent map.
pub const MAX_DISK_BYTES: u64 = (u32::MAX as u64) * SECTOR_BYTES;

pub(crate) const FILE_MAGIC: [u8; 8] = *b"FSCOSTRC";
pub(crate) const FRAME_MAGIC: [u8; 4] = *b"FRAM";
/// Size of the pieces in which content is compressed. A small read needs to unpack only one piece.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;
/// Amount of content at which a frame is sealed.
pub(crate) const FRAME_TARGET_BYTES: usize = 256 * 1024;
/// Number of events, and of replies, at which a frame is sealed.
pub(crate) const FRAME_MAX_EVENTS: usize = 4096;
/// Maximum content of one frame: the target is exceeded by at most one request.
pub(crate) const FRAME_MAX_BYTES: usize = FRAME_TARGET_BYTES + MAX_REQUEST_BYTES;
pub(crate) const FRAME_MAX_PIECES: usize = FRAME_MAX_BYTES.div_ceil(PIECE_BYTES);

/// A disk of the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskInfo {
    /// Name that the lab gave the disk, such as `main` or `journal`; at most 32 bytes.
    pub name: String,
    /// Size of the disk.
    pub size_bytes: u64,
    /// Smallest unit that the disk can be asked to write.
    pub logical_block_bytes: u32,
    /// Smallest unit that the disk writes without reading.
    pub physical_block_bytes: u32,
}

/// State of a recording's contents: complete, or stripped for sharing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Stripped {
    /// The recording is unchanged.
    #[default]
    No = 0,
    /// Contents are digests, and names are replaced.
    NamesReplaced = 1,
    /// Contents are digests, and names are replaced except for short extensions.
    ExtensionsKept = 2,
    /// Contents are digests, and names are kept.
    NamesKept = 3,
}

impl Stripped {
    /// Returns a human-readable description.
    pub fn text(self) -> &'static str {
        match self {
            Stripped::No => "no",
            Stripped::NamesReplaced => "names replaced",
            Stripped::ExtensionsKept => "names replaced, extensions kept",
            Stripped::NamesKept => "names kept",
        }
    }

    fn from_number(number: u8) -> Option<Stripped> {
        use Stripped::*;
        [No, NamesReplaced, ExtensionsKept, NamesKept]
            .get(usize::from(number))
            .copied()
    }
}

/// The header of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Wall-clock time at the recording's instant 0, nanoseconds since 1970.
    pub begin_unix_ns: u64,
    /// Disks, by index.
    pub disks: Vec<DiskInfo>,
    /// State of the contents.
    pub stripped: Stripped,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct RawHeader {
    magic: [u8; 8],
    version: U16,
    disk_count: U16,
    header_bytes: U32,
    begin_unix_ns: U64,
    stripped: u8,
    reserved: [u8; 35],
    /// CRC-32C of the header and the disk entries, with this field zero.
    crc32c: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct RawDisk {
    name: [u8; 32],
    size_bytes: U64,
    logical_block_bytes: U32,
    physical_block_bytes: U32,
    reserved: [u8; 16],
}

pub(crate) const HEADER_BYTES: usize = size_of::<RawHeader>();
pub(crate) const DISK_BYTES: usize = size_of::<RawDisk>();
pub(crate) const FRAME_HEADER_BYTES: usize = size_of::<RawFrameHeader>();
pub(crate) const PIECE_ENTRY_BYTES: usize = size_of::<RawPiece>();
pub(crate) const EVENT_BYTES: usize = size_of::<RawEvent>();
pub(crate) const REPLY_BYTES: usize = size_of::<RawReply>();

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Events,
    /// The last frame, empty: the recording was finished, not cut off.
    End,
}

/// Header that precedes each frame's body: piece table, events, replies, content.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
pub(crate) struct RawFrameHeader {
    pub magic: [u8; 4],
    pub kind: u8,
    pub reserved: [u8; 3],
    pub sequence: U32,
    pub event_count: U32,
    pub events_stored_bytes: U32,
    pub content_raw_bytes: U32,
    pub content_stored_bytes: U32,
    pub piece_count: U32,
    pub first_complete_ns: U64,
    pub last_complete_ns: U64,
    /// CRC-32C of the piece table, the stored events and the stored replies; the content has one
    /// checksum per piece.
    pub index_crc32c: U32,
    pub reply_count: U32,
    pub replies_stored_bytes: U32,
    /// CRC-32C of this header, with this field zero.
    pub header_crc32c: U32,
}

/// One piece of content: compressed with zstd, unless `stored_bytes` equals its raw size.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
pub(crate) struct RawPiece {
    pub stored_bytes: U32,
    pub crc32c: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct RawEvent {
    submit_ns: U64,
    complete_ns: U64,
    offset: U64,
    length: U64,
    content_offset: U32,
    disk: U16,
    op: u8,
    flags: u8,
}

const FLAG_FUA: u8 = 1;

impl Header {
    /// Encodes the header.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let count = self.disks.len();
        if !(1..=MAX_DISKS).contains(&count) {
            let what = format!("a recording has 1 to {MAX_DISKS} disks, not {count}");
            return Err(Error::invalid(what));
        }
        let header_bytes = HEADER_BYTES + count * DISK_BYTES;
        let mut raw = RawHeader {
            magic: FILE_MAGIC,
            version: VERSION.into(),
            disk_count: (count as u16).into(),
            header_bytes: (header_bytes as u32).into(),
            begin_unix_ns: self.begin_unix_ns.into(),
            stripped: self.stripped as u8,
            ..RawHeader::new_zeroed()
        };
        let mut disks = Vec::new();
        for disk in &self.disks {
            disk.check().map_err(Error::invalid)?;
            let mut name = [0; 32];
            name[..disk.name.len()].copy_from_slice(disk.name.as_bytes());
            let raw = RawDisk {
                name,
                size_bytes: disk.size_bytes.into(),
                logical_block_bytes: disk.logical_block_bytes.into(),
                physical_block_bytes: disk.physical_block_bytes.into(),
                reserved: [0; 16],
            };
            disks.extend_from_slice(raw.as_bytes());
        }
        raw.crc32c = crc32c::crc32c_append(crc32c::crc32c(raw.as_bytes()), &disks).into();
        Ok([raw.as_bytes(), &disks].concat())
    }

    /// Returns the length of the whole header, given its first [`HEADER_BYTES`].
    pub(crate) fn length(first: &[u8]) -> Result<usize> {
        let format = |what: &str| Error::new(ErrorKind::Format, what);
        let (raw, _) =
            RawHeader::ref_from_prefix(first).map_err(|_| format("too short to be a recording"))?;
        if raw.magic != FILE_MAGIC {
            let what = "not a recording of fscost (its first bytes are not FSCOSTRC)";
            return Err(format(what));
        }
        let version = raw.version;
        if !(1..=VERSION).contains(&version.get()) {
            let what = format!(
                "version {version} of the format; this program reads versions 1 to {VERSION}"
            );
            return Err(format(&what));
        }
        let (count, bytes) = (usize::from(raw.disk_count.get()), raw.header_bytes);
        let length = HEADER_BYTES + count * DISK_BYTES;
        let corrupt = |what| Err(Error::corrupt(10, what));
        if !(1..=MAX_DISKS).contains(&count) {
            return corrupt(format!(
                "the number of disks is {count}, not 1 to {MAX_DISKS}"
            ));
        }
        if bytes.get() as usize != length {
            return corrupt(format!("the header has {bytes} bytes, not {length}"));
        }
        Ok(length)
    }

    /// Returns the version of a header that [`length`](Self::length) has accepted.
    pub(crate) fn version(bytes: &[u8]) -> u16 {
        RawHeader::ref_from_prefix(bytes).map_or(VERSION, |(raw, _)| raw.version.get())
    }

    /// Parses the whole header.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Header> {
        let length = Self::length(bytes)?;
        let short = || Error::new(ErrorKind::Format, "too short: the header is truncated");
        let bytes = bytes.get(..length).ok_or_else(short)?;
        let (raw, rest) = RawHeader::ref_from_prefix(bytes).map_err(|_| short())?;
        let zeroed = [&bytes[..HEADER_BYTES - 4], &[0; 4]].concat();
        if crc32c::crc32c_append(crc32c::crc32c(&zeroed), rest) != raw.crc32c.get() {
            return Err(Error::corrupt(0, "the header's checksum is wrong"));
        }
        let entries = <[RawDisk]>::ref_from_bytes(rest).map_err(|_| short())?;
        let mut disks = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let at = (HEADER_BYTES + index * DISK_BYTES) as u64;
            let name = entry.name.split(|&byte| byte == 0).next();
            let name = std::str::from_utf8(name.unwrap_or_default())
                .map_err(|_| Error::corrupt(at, "a disk's name is not UTF-8"))?;
            let disk = DiskInfo {
                name: name.to_owned(),
                size_bytes: entry.size_bytes.get(),
                logical_block_bytes: entry.logical_block_bytes.get(),
                physical_block_bytes: entry.physical_block_bytes.get(),
            };
            disk.check().map_err(|what| Error::corrupt(at, what))?;
            disks.push(disk);
        }
        let unknown = || Error::corrupt(24, format!("unknown stripping mode {}", raw.stripped));
        Ok(Header {
            begin_unix_ns: raw.begin_unix_ns.get(),
            disks,
            stripped: Stripped::from_number(raw.stripped).ok_or_else(unknown)?,
        })
    }
}

impl DiskInfo {
    /// Checks a disk, and describes any error found.
    pub fn check(&self) -> std::result::Result<(), String> {
        let name = &self.name;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !(1..=32).contains(&name.len()) || !name.bytes().all(is_allowed) {
            let allowed = "1 to 32 letters, digits, '-', '_', '.'";
            return Err(format!("disk name {name:?}: {allowed}"));
        }
        let blocks = [self.logical_block_bytes, self.physical_block_bytes];
        let [logical, physical] = blocks.map(u64::from);
        if !logical.is_power_of_two() || !(SECTOR_BYTES..=65536).contains(&logical) {
            return Err(format!(
                "disk {name}: logical block size {logical} is not a power of two from 512 to 65536"
            ));
        }
        if !physical.is_power_of_two() || !(logical..=1 << 20).contains(&physical) {
            return Err(format!(
                "disk {name}: physical block size {physical}: not a power of two from {logical} to 1048576"
            ));
        }
        let size = self.size_bytes;
        if !(1..=MAX_DISK_BYTES).contains(&size) || !size.is_multiple_of(logical) {
            return Err(format!(
                "disk {name}: size {size} is not a multiple of {logical} up to {MAX_DISK_BYTES}"
            ));
        }
        Ok(())
    }
}

impl RawFrameHeader {
    pub(crate) fn seal(mut self) -> Self {
        self.header_crc32c = 0.into();
        self.header_crc32c = crc32c::crc32c(self.as_bytes()).into();
        self
    }

    /// Checks a header read at `at_byte` as far as possible without its body.
    pub(crate) fn check(&self, at_byte: u64, sequence: u32) -> Result<FrameKind> {
        let corrupt = |what: &str| Err(Error::corrupt(at_byte, what));
        if self.magic != FRAME_MAGIC {
            return corrupt("no frame begins here");
        }
        if self.seal().header_crc32c != self.header_crc32c {
            return corrupt("a frame header's checksum is wrong");
        }
        let found = self.sequence.get();
        if found != sequence {
            return corrupt(&format!("found frame {found}, expected frame {sequence}"));
        }
        let (content, pieces) = (
            self.content_raw_bytes.get() as usize,
            self.piece_count.get() as usize,
        );
        let most = |count: U32, stored: U32, entry_bytes: usize| {
            count.get() as usize <= FRAME_MAX_EVENTS
                && stored.get() as usize
                    <= zstd::zstd_safe::compress_bound(FRAME_MAX_EVENTS * entry_bytes)
        };
        let bounded = most(self.event_count, self.events_stored_bytes, EVENT_BYTES)
            && most(self.reply_count, self.replies_stored_bytes, REPLY_BYTES)
            && content <= FRAME_MAX_BYTES
            && pieces == content.div_ceil(PIECE_BYTES)
            && self.content_stored_bytes.get() as usize <= content;
        let is_empty = self.event_count.get() == 0 && self.reply_count.get() == 0;
        match self.kind {
            1 if bounded && !is_empty => Ok(FrameKind::Events),
            2 if self.body_bytes() == 0 && is_empty => Ok(FrameKind::End),
            kind => corrupt(&format!(
                "frame header of kind {kind} with impossible sizes"
            )),
        }
    }

    /// Returns the stored size of piece table, events and replies.
    pub(crate) fn index_bytes(&self) -> u64 {
        u64::from(self.piece_count.get()) * PIECE_ENTRY_BYTES as u64
            + u64::from(self.events_stored_bytes.get())
            + u64::from(self.replies_stored_bytes.get())
    }

    /// Returns the stored size of piece table, events, replies and content.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.index_bytes() + u64::from(self.content_stored_bytes.get())
    }
}

impl RawEvent {
    pub(crate) fn new(event: &Event) -> Self {
        Self {
            submit_ns: event.submit_ns.into(),
            complete_ns: event.complete_ns.into(),
            offset: event.offset.into(),
            length: event.length.into(),
            content_offset: event.content_offset.into(),
            disk: event.disk.into(),
            op: event.op as u8,
            flags: if event.fua { FLAG_FUA } else { 0 },
        }
    }

    /// Parses an event, checks it against the disks and the frame's content, and appends it. An
    /// error names the field. For speed, the function is inlined, has one jump for all errors, and
    /// returns no event that would have to be moved.
    #[inline(always)]
    pub(crate) fn parse_into(
        &self,
        events: &mut Vec<Event>,
        disks: &[DiskInfo],
        content_bytes: usize,
    ) -> std::result::Result<(), String> {
        let Some(op) = Op::from_number(self.op) else {
            return Err(self.wrong(disks));
        };
        let event = self.event(op);
        let content_end = u64::from(event.content_offset).checked_add(event.length);
        let has_room =
            !op.has_content() || content_end.is_some_and(|end| end <= content_bytes as u64);
        if (self.flags & !FLAG_FUA == 0) & event.is_possible(disks) & has_room {
            events.push(event);
            Ok(())
        } else {
            Err(self.wrong(disks))
        }
    }

    #[inline(always)]
    fn event(&self, op: Op) -> Event {
        Event {
            submit_ns: self.submit_ns.get(),
            complete_ns: self.complete_ns.get(),
            offset: self.offset.get(),
            length: self.length.get(),
            content_offset: self.content_offset.get(),
            disk: self.disk.get(),
            op,
            fua: self.flags & FLAG_FUA != 0,
        }
    }

    #[cold]
    fn wrong(&self, disks: &[DiskInfo]) -> String {
        let Some(op) = Op::from_number(self.op) else {
            return format!("operation {} is unknown", self.op);
        };
        if self.flags & !FLAG_FUA != 0 {
            return format!("flags {:#x} are unknown", self.flags);
        }
        match self.event(op).check(disks) {
            Err(what) => what,
            Ok(()) => "content reaches past the frame's end".into(),
        }
    }
}

impl Event {
    /// True if [`check`](Event::check) finds no error.
    #[inline(always)]
    fn is_possible(&self, disks: &[DiskInfo]) -> bool {
        if self.op == Op::Mark {
            return self.length as usize <= Mark::MAX_BYTES;
        }
        let Some(disk) = disks.get(usize::from(self.disk)) else {
            return false;
        };
        let end = self.offset.checked_add(self.length);
        let fits = end.is_some_and(|end| end <= disk.size_bytes);
        let is_aligned = (self.offset | self.length).is_multiple_of(SECTOR_BYTES);
        let is_short = self.op != Op::Write || self.length as usize <= MAX_REQUEST_BYTES;
        fits & is_aligned & (self.submit_ns <= self.complete_ns) & is_short
    }

    /// Checks that the event is possible on these disks, and describes any error found.
    pub(crate) fn check(&self, disks: &[DiskInfo]) -> std::result::Result<(), String> {
        if self.is_possible(disks) {
            return Ok(());
        }
        if self.op == Op::Mark {
            return Err("a mark is too long".into());
        }
        let disk = disks
            .get(usize::from(self.disk))
            .ok_or_else(|| format!("disk {} does not exist", self.disk))?;
        let (op, length, offset) = (self.op.name(), self.length, self.offset);
        let end = offset.checked_add(length);
        let aligned = (offset | length).is_multiple_of(SECTOR_BYTES);
        if end.is_none_or(|end| end > disk.size_bytes) || !aligned {
            let name = &disk.name;
            return Err(format!(
                "{op} of {length} bytes at {offset} does not fit disk {name}"
            ));
        }
        if self.submit_ns > self.complete_ns {
            return Err("a request completed before it was submitted".into());
        }
        Err("a write is too long".into())
    }
}
