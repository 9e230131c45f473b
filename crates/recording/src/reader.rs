//! Reads a recording back, as far as it is whole.

use crate::{
    Error, ErrorKind, Event, Expected, Mark, Op, Result, file,
    format::{
        EVENT_BYTES, FRAME_HEADER_BYTES, FRAME_MAX_PIECES, FrameKind, HEADER_BYTES, Header,
        PIECE_BYTES, PIECE_ENTRY_BYTES, RawEvent, RawFrameHeader, RawPiece,
    },
    packed::PackedPieces,
    piece_cache::PieceCache,
};
use std::{
    cell::RefCell,
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};
use zerocopy::FromBytes;

/// How a recording ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It was finished by its writer.
    Finished,
    /// The writer died, or the file was cut: what stands before this byte is whole.
    Cut {
        /// Where the last complete frame ends.
        at_byte: u64,
    },
    /// Something at this byte is not what was written; what stands before it is readable.
    Corrupt {
        /// Where.
        at_byte: u64,
        /// What.
        what: String,
    },
}

/// A frame's place and time, from its header.
#[derive(Debug, Clone, Copy)]
pub struct FrameInfo {
    /// Where it begins in the file.
    pub at_byte: u64,
    /// Events in it.
    pub event_count: u32,
    /// Completion of its first event.
    pub first_complete_ns: u64,
    /// Completion of its last event.
    pub last_complete_ns: u64,
    /// Content before compression.
    pub content_bytes: u32,
    /// Content as stored.
    pub content_stored_bytes: u32,
}

/// A recording opened for reading.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: File,
    header: Header,
    frames: Vec<FrameInfo>,
    end: End,
    file_bytes: u64,
}

/// What of a frame's content is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Where a mark is among the events, all; else nothing.
    OfMarks,
    /// Nothing yet: [`Frame::unpack`] does it. Checksums are checked all the same.
    Packed,
    /// All.
    All,
}

/// One frame, unpacked.
#[derive(Debug, Clone, Default)]
pub struct Frame {
    /// Its events, in order of completion.
    pub events: Vec<Event>,
    /// Its content; [`content_of`](Self::content_of) finds an event's.
    pub content: Vec<u8>,
    /// Pieces that are still packed.
    pub(crate) packed: PackedPieces,
}

impl Frame {
    /// Unpack the content of one of this frame's events, in a walk that leaves content packed.
    /// Until
    /// then [`content_of`](Self::content_of) gives bytes that mean nothing.
    pub fn unpack(&mut self, event: &Event) -> Result<()> {
        if event.op.has_content() {
            let from = event.content_offset as usize;
            let range = from..from + event.length as usize;
            self.packed.unpack(range, &mut self.content)?;
        }
        Ok(())
    }

    /// Unpack what is expected to be looked at. What cannot be unpacked stays packed, for who looks
    /// at it to learn.
    pub(crate) fn unpack_expected(&mut self, expected: &Expected<'_>) {
        if self.packed.is_empty() {
            return;
        }
        for number in 0..self.events.len() {
            let event = self.events[number];
            if expected(&event) {
                let _ = self.unpack(&event);
            }
        }
    }

    /// The content of one of this frame's events; empty when it has none.
    pub fn content_of(&self, event: &Event) -> &[u8] {
        let from = event.content_offset as usize;
        if event.op.has_content() {
            self.content
                .get(from..from + event.length as usize)
                .unwrap_or_default()
        } else {
            &[]
        }
    }

    /// The mark that an event of this frame carries.
    pub fn mark_of(&self, event: &Event) -> Result<Mark> {
        Mark::from_bytes(self.content_of(event))
    }
}

/// Reads marks for those who keep them all: more than a recording has any use for are refused,
/// since a mark takes a few bytes in the
/// file and up to ten times its length in memory.
#[derive(Debug, Default)]
pub struct MarkReader {
    bytes: u64,
}

impl MarkReader {
    const MAX_BYTES: u64 = 8 << 20;

    /// The next mark, which an event of this frame carries.
    pub fn mark_of(&mut self, frame: &Frame, event: &Event) -> Result<Mark> {
        self.bytes += event.length;
        if self.bytes > Self::MAX_BYTES {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("more than {} MiB of marks", Self::MAX_BYTES >> 20),
            ));
        }
        frame.mark_of(event)
    }
}

impl Recording {
    /// Open and find all frames. A recording that was cut or damaged opens too, as far as it is
    /// whole: see [`end`](Self::end).
    pub fn open(path: &Path) -> Result<Recording> {
        let file = file::open_regular(path)?;
        let metadata = file.metadata().map_err(|e| Error::io("reading", path, e))?;
        let mut reader = Recording {
            path: path.to_owned(),
            file,
            header: Header {
                begin_unix_ns: 0,
                disks: Vec::new(),
                stripped: crate::Stripped::No,
            },
            frames: Vec::new(),
            end: End::Finished,
            file_bytes: metadata.len(),
        };
        let header_bytes = reader.read_header().map_err(|e| e.in_file(path))?;
        reader
            .find_frames(header_bytes)
            .map_err(|e| e.in_file(path))?;
        Ok(reader)
    }

    fn read_header(&mut self) -> Result<u64> {
        let mut bytes = vec![0; HEADER_BYTES.min(self.file_bytes as usize)];
        self.file
            .read_exact_at(&mut bytes, 0)
            .map_err(|e| Error::io("reading", &self.path, e))?;
        let length = Header::length(&bytes)?;
        if (length as u64) > self.file_bytes {
            return Err(Error::new(
                ErrorKind::Format,
                "too short: the header is cut",
            ));
        }
        bytes.resize(length, 0);
        self.file
            .read_exact_at(&mut bytes, 0)
            .map_err(|e| Error::io("reading", &self.path, e))?;
        self.header = Header::from_bytes(&bytes)?;
        Ok(length as u64)
    }

    fn find_frames(&mut self, mut at: u64) -> Result<()> {
        loop {
            let left = self.file_bytes - at;
            let mut bytes = [0; FRAME_HEADER_BYTES];
            if left < FRAME_HEADER_BYTES as u64 {
                self.end = End::Cut { at_byte: at };
                return Ok(());
            }
            self.file
                .read_exact_at(&mut bytes, at)
                .map_err(|e| Error::io("reading", &self.path, e))?;
            let header = RawFrameHeader::read_from_bytes(&bytes)
                .map_err(|_| Error::corrupt(at, "no frame begins here"))?;
            match header.check(at, self.frames.len() as u32) {
                Ok(FrameKind::Events) if header.body_bytes() > left - FRAME_HEADER_BYTES as u64 => {
                    self.end = End::Cut { at_byte: at };
                    return Ok(());
                }
                Ok(FrameKind::Events) => {
                    self.frames.push(FrameInfo {
                        at_byte: at,
                        event_count: header.event_count.get(),
                        first_complete_ns: header.first_complete_ns.get(),
                        last_complete_ns: header.last_complete_ns.get(),
                        content_bytes: header.content_raw_bytes.get(),
                        content_stored_bytes: header.content_stored_bytes.get(),
                    });
                    at += FRAME_HEADER_BYTES as u64 + header.body_bytes();
                }
                Ok(FrameKind::End) => {
                    if left > FRAME_HEADER_BYTES as u64 {
                        let what = "bytes follow the end of the recording".to_owned();
                        self.end = End::Corrupt {
                            at_byte: at + FRAME_HEADER_BYTES as u64,
                            what,
                        };
                    }
                    return Ok(());
                }
                Err(error) => {
                    self.end = End::Corrupt {
                        at_byte: at,
                        what: error.context,
                    };
                    return Ok(());
                }
            }
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file begins with.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All frames that are whole, as far as their headers tell.
    pub fn frames(&self) -> &[FrameInfo] {
        &self.frames
    }

    /// Whether the recording was finished, cut or damaged.
    pub fn end(&self) -> &End {
        &self.end
    }

    /// Size of the file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Unpack a frame's events into `frame` (its space is used again), and its content: always, or
    /// only
    /// where a mark is among the events, whose name and detail are content.
    pub fn read_frame(&self, index: usize, with_content: bool, frame: &mut Frame) -> Result<()> {
        let contents = match with_content {
            true => Contents::All,
            false => Contents::OfMarks,
        };
        self.read_frame_with(index, contents, frame)
    }

    pub(crate) fn read_frame_with(
        &self,
        index: usize,
        contents: Contents,
        frame: &mut Frame,
    ) -> Result<()> {
        let info = self.frames.get(index).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("{}: there is no frame {index}", self.path.display()),
            )
        })?;
        let unpacked = RawFrame::read(&self.file, info.at_byte)
            .and_then(|raw| raw.unpack(&self.file, &self.header.disks, contents, frame));
        unpacked.map_err(|e| e.in_file(&self.path))
    }

    /// All events, in order of completion, with their frames; content as
    /// [`read_frame`](Self::read_frame)
    /// gives it.
    ///
    /// The closure ends the walk by returning `false`.
    pub fn for_each_frame(
        &self,
        with_content: bool,
        mut visit: impl FnMut(usize, &Frame) -> Result<bool>,
    ) -> Result<()> {
        let mut frame = Frame::default();
        for index in 0..self.frames.len() {
            self.read_frame(index, with_content, &mut frame)?;
            if !visit(index, &frame)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// All marks with their instants.
    pub fn marks(&self) -> Result<Vec<(u64, Mark)>> {
        let mut marks = Vec::new();
        let mut reader = MarkReader::default();
        self.for_each_frame(false, |_, frame| {
            for event in frame.events.iter().filter(|e| e.op == Op::Mark) {
                marks.push((event.complete_ns, reader.mark_of(frame, event)?));
            }
            Ok(true)
        })?;
        Ok(marks)
    }

    /// A cache to read content by location.
    pub(crate) fn piece_cache(&self) -> Result<PieceCache> {
        Ok(PieceCache::new(
            self.file
                .try_clone()
                .map_err(|e| Error::io("opening", &self.path, e))?,
        ))
    }
}

/// A frame's header and piece table, read and checked.
pub(crate) struct RawFrame {
    pub(crate) at: u64,
    pub(crate) header: RawFrameHeader,
    pub(crate) pieces: Vec<RawPiece>,
}

impl RawFrame {
    pub(crate) fn read(file: &File, at: u64) -> Result<RawFrame> {
        let failed = |e: io::Error| Error::new(ErrorKind::Io, format!("at byte {at}: {e}"));
        let mut bytes = [0; FRAME_HEADER_BYTES + FRAME_MAX_PIECES * PIECE_ENTRY_BYTES];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(failed(e)),
            }
        }
        let cut = || Error::corrupt(at, "the frame is cut");
        let (header, rest) =
            RawFrameHeader::read_from_prefix(&bytes[..filled]).map_err(|_| cut())?;
        header.check(at, header.sequence.get())?;
        let count = header.piece_count.get() as usize;
        let (pieces, _) =
            <[RawPiece]>::ref_from_prefix_with_elems(rest, count).map_err(|_| cut())?;
        let pieces = pieces.to_vec();
        let stored: u64 = pieces.iter().map(|p| u64::from(p.stored_bytes.get())).sum();
        if stored != u64::from(header.content_stored_bytes.get()) {
            return Err(Error::corrupt(at, "the piece table's sum is wrong"));
        }
        Ok(RawFrame { at, header, pieces })
    }

    fn table_at(&self) -> u64 {
        self.at + FRAME_HEADER_BYTES as u64
    }

    pub(crate) fn content_at(&self) -> u64 {
        self.table_at()
            + (self.pieces.len() * PIECE_ENTRY_BYTES) as u64
            + u64::from(self.header.events_stored_bytes.get())
    }

    fn unpack(
        &self,
        file: &File,
        disks: &[crate::DiskInfo],
        contents: Contents,
        frame: &mut Frame,
    ) -> Result<()> {
        let failed = |e: io::Error| Error::new(ErrorKind::Io, format!("at byte {}: {e}", self.at));
        let mut index = vec![0; (self.content_at() - self.table_at()) as usize];
        file.read_exact_at(&mut index, self.table_at())
            .map_err(failed)?;
        if crc32c::crc32c(&index) != self.header.index_crc32c.get() {
            return Err(Error::corrupt(
                self.at,
                "the checksum of a frame's events is wrong",
            ));
        }
        let expected = self.header.event_count.get() as usize * EVENT_BYTES;
        let mut events = vec![0; expected];
        let stored = &index[self.pieces.len() * PIECE_ENTRY_BYTES..];
        let count = decompress(stored, &mut events)
            .map_err(|e| Error::corrupt(self.at, format!("a frame's events do not unpack: {e}")))?;
        if count != expected {
            return Err(Error::corrupt(self.at, "a frame's events are too few"));
        }
        let content_bytes = self.header.content_raw_bytes.get() as usize;
        frame.events.clear();
        for raw in events.as_chunks::<EVENT_BYTES>().0 {
            let raw = RawEvent::ref_from_bytes(raw)
                .map_err(|_| Error::corrupt(self.at, "an event is cut"))?;
            frame.events.push(
                raw.parse(disks, content_bytes)
                    .map_err(|what| Error::corrupt(self.at, what))?,
            );
        }
        check_content(&frame.events, content_bytes)
            .map_err(|what| Error::corrupt(self.at, what))?;
        frame.packed.clear();
        let has_mark = || frame.events.iter().any(|e| e.op == Op::Mark);
        if contents == Contents::OfMarks && !has_mark() {
            frame.content.clear();
            return Ok(());
        }
        frame.content.resize(content_bytes, 0);
        match contents {
            Contents::Packed => frame.packed.read(self, file),
            Contents::OfMarks | Contents::All => self.unpack_content(file, &mut frame.content),
        }
        .inspect_err(|_| frame.content.clear())
    }

    fn unpack_content(&self, file: &File, content: &mut [u8]) -> Result<()> {
        let mut at = self.content_at();
        let mut stored = Vec::new();
        for (piece, into) in self.pieces.iter().zip(content.chunks_mut(PIECE_BYTES)) {
            let failed = |e: io::Error| Error::new(ErrorKind::Io, format!("at byte {at}: {e}"));
            let stored_bytes = piece.stored_bytes.get() as usize;
            if stored_bytes == into.len() {
                // Stored as it is: it needs no second place.
                file.read_exact_at(into, at).map_err(failed)?;
                check_piece(at, piece, into)?;
            } else {
                stored.resize(stored_bytes, 0);
                file.read_exact_at(&mut stored, at).map_err(failed)?;
                unpack_piece(at, piece, &stored, into)?;
            }
            at += stored_bytes as u64;
        }
        Ok(())
    }
}

/// Each byte of a frame's content is one event's: shared by many, a small frame would unpack to a
/// large one.
fn check_content(events: &[Event], content_bytes: usize) -> std::result::Result<(), &'static str> {
    let mut end = 0;
    for event in events.iter().filter(|e| e.op.has_content() && e.length > 0) {
        if u64::from(event.content_offset) != end {
            return Err("an event's content does not follow that of the one before");
        }
        end += event.length;
    }
    if end != content_bytes as u64 {
        return Err("a frame has content of no event");
    }
    match events.iter().position(|e| e.op == Op::Mark) {
        Some(first) if first + 1 < events.len() => Err("a mark is not the last event of its frame"),
        _ => Ok(()),
    }
}

thread_local! {
    /// A state for zstd costs more than a small piece.
    static DECOMPRESSOR: RefCell<zstd::bulk::Decompressor<'static>> = RefCell::default();
}

/// How many bytes `stored` became.
fn decompress(stored: &[u8], into: &mut [u8]) -> io::Result<usize> {
    DECOMPRESSOR.with_borrow_mut(|zstd| zstd.decompress_to_buffer(stored, into))
}

pub(crate) fn check_piece(at: u64, piece: &RawPiece, stored: &[u8]) -> Result<()> {
    if crc32c::crc32c(stored) != piece.crc32c.get() {
        return Err(Error::corrupt(
            at,
            "the checksum of a piece of content is wrong",
        ));
    }
    Ok(())
}

pub(crate) fn unpack_piece(
    at: u64,
    piece: &RawPiece,
    stored: &[u8],
    into: &mut [u8],
) -> Result<()> {
    check_piece(at, piece, stored)?;
    expand_piece(at, stored, into)
}

/// The content of a piece whose checksum is right.
pub(crate) fn expand_piece(at: u64, stored: &[u8], into: &mut [u8]) -> Result<()> {
    if stored.len() == into.len() {
        into.copy_from_slice(stored);
        return Ok(());
    }
    match decompress(stored, into) {
        Ok(count) if count == into.len() => Ok(()),
        Ok(_) => Err(Error::corrupt(at, "a piece of content is too short")),
        Err(e) => Err(Error::corrupt(
            at,
            format!("a piece of content does not unpack: {e}"),
        )),
    }
}
