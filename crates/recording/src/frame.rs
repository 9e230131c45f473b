//! A frame of events and their content: in memory while it fills, and encoded.

use crate::{
    Error, ErrorKind, Event, Reply, Result,
    format::{
        FRAME_HEADER_BYTES, FRAME_MAGIC, FRAME_MAX_BYTES, FRAME_MAX_EVENTS, FRAME_TARGET_BYTES,
        PIECE_BYTES, RawEvent, RawFrameHeader, RawPiece,
    },
    reply::RawReply,
};
use std::{
    io::{self, Write},
    ops::Range,
};
use zerocopy::{FromZeros as _, Immutable, IntoBytes};

/// A frame that is being filled or waits to be stored.
pub(crate) struct FrameBuffer {
    pub sequence: u32,
    /// Completion time of the last event before this frame.
    begin_ns: u64,
    events: Vec<Event>,
    replies: Vec<Reply>,
    content: Box<[u8]>,
    content_bytes: usize,
}

impl FrameBuffer {
    /// Creates an empty frame with the number 0.
    pub fn new() -> Self {
        Self {
            sequence: 0,
            begin_ns: 0,
            events: Vec::new(),
            replies: Vec::new(),
            content: vec![0; FRAME_MAX_BYTES].into_boxed_slice(),
            content_bytes: 0,
        }
    }

    /// Empties the frame and gives it a new number. `begin_ns` is the completion time of the last
    /// event before it.
    pub fn reset(&mut self, sequence: u32, begin_ns: u64) {
        self.sequence = sequence;
        self.begin_ns = begin_ns;
        self.events.clear();
        self.replies.clear();
        self.content_bytes = 0;
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.replies.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.content_bytes >= FRAME_TARGET_BYTES
            || self.events.len().max(self.replies.len()) >= FRAME_MAX_EVENTS
    }

    /// Returns the free space for the next event's content. Unless the frame is full, the largest
    /// possible request fits.
    pub fn space(&mut self) -> &mut [u8] {
        &mut self.content[self.content_bytes..]
    }

    /// Adds an event whose content, if any, is already at the beginning of
    /// [`space`](Self::space). Returns the offset of the content.
    pub fn push(&mut self, mut event: Event) -> u32 {
        let content_bytes = event.content_range().len();
        let at = self.content_bytes as u32;
        event.content_offset = if content_bytes > 0 { at } else { 0 };
        self.events.push(event);
        self.content_bytes += content_bytes;
        at
    }

    /// Adds a reply.
    pub fn push_reply(&mut self, reply: Reply) {
        self.replies.push(reply);
    }

    pub fn content(&self) -> &[u8] {
        &self.content[..self.content_bytes]
    }
}

/// Compression of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Compress only pieces of zeros: compressing the rest would take CPU time from the measured
    /// workload.
    AsItIs,
    /// Compress content that shrinks, at this zstd level.
    Compressed(i32),
}

/// An encoded frame. It contains the index and the packed content; content stored uncompressed
/// stays in the frame buffer and is not copied.
#[derive(Default)]
pub(crate) struct EncodedFrame {
    /// Header, piece table, events, replies.
    index: Vec<u8>,
    packed: Vec<u8>,
    parts: Vec<Part>,
    content_bytes: usize,
}

/// A run of pieces that are stored consecutively.
struct Part {
    source: Source,
    range: Range<usize>,
}

/// The buffer that holds a part.
#[derive(PartialEq)]
enum Source {
    AsItIs,
    Packed,
}

impl EncodedFrame {
    pub fn stored_bytes(&self) -> u64 {
        (self.index.len() + self.content_bytes) as u64
    }

    /// Writes the frame; `frame` is the buffer it was encoded from.
    pub fn write(&self, frame: &FrameBuffer, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.index)?;
        for part in &self.parts {
            let from = match part.source {
                Source::AsItIs => frame.content(),
                Source::Packed => &self.packed,
            };
            out.write_all(&from[part.range.clone()])?;
        }
        Ok(())
    }

    fn add(&mut self, source: Source, range: Range<usize>) {
        match self.parts.last_mut() {
            Some(last) if last.source == source && last.range.end == range.start => {
                last.range.end = range.end;
            }
            _ => self.parts.push(Part { source, range }),
        }
    }
}

/// Encodes frames, and keeps its compression state between them.
pub(crate) struct Encoder {
    compressor: zstd::bulk::Compressor<'static>,
    content: Content,
    raw: Vec<u8>,
}

impl Encoder {
    pub fn new(content: Content) -> Result<Self> {
        let level = match content {
            Content::AsItIs => 1,
            Content::Compressed(level) => level,
        };
        let compressor = zstd::bulk::Compressor::new(level)
            .map_err(|e| Error::invalid(format!("zstd level {level}: {e}")))?;
        Ok(Self {
            compressor,
            content,
            raw: Vec::new(),
        })
    }

    /// Encodes `frame` into `out`.
    pub fn encode(&mut self, frame: &FrameBuffer, out: &mut EncodedFrame) -> Result<()> {
        let failed = |e: io::Error| {
            let what = format!("compressing frame {}: {e}", frame.sequence);
            Error::new(ErrorKind::Io, what)
        };
        out.index.clear();
        out.index.resize(FRAME_HEADER_BYTES, 0);
        out.packed.clear();
        out.parts.clear();
        out.content_bytes = 0;
        for (number, piece) in frame.content().chunks(PIECE_BYTES).enumerate() {
            let entry = self
                .piece(number * PIECE_BYTES, piece, out)
                .map_err(failed)?;
            out.content_bytes += entry.stored_bytes.get() as usize;
            out.index.extend_from_slice(entry.as_bytes());
        }
        let events = self.list(&frame.events, RawEvent::new).map_err(failed)?;
        out.index.extend_from_slice(&events);
        let mut replies = Vec::new();
        if !frame.replies.is_empty() {
            replies = self.list(&frame.replies, RawReply::new).map_err(failed)?;
            out.index.extend_from_slice(&replies);
        }
        let first_ns = frame.events.first().map(|event| event.complete_ns);
        let last_ns = frame.events.last().map(|event| event.complete_ns);
        let header = RawFrameHeader {
            magic: FRAME_MAGIC,
            kind: 1,
            sequence: frame.sequence.into(),
            event_count: (frame.events.len() as u32).into(),
            events_stored_bytes: (events.len() as u32).into(),
            content_raw_bytes: (frame.content_bytes as u32).into(),
            content_stored_bytes: (out.content_bytes as u32).into(),
            piece_count: (frame.content_bytes.div_ceil(PIECE_BYTES) as u32).into(),
            first_complete_ns: first_ns.unwrap_or(frame.begin_ns).into(),
            last_complete_ns: last_ns.unwrap_or(frame.begin_ns).into(),
            index_crc32c: crc32c::crc32c(&out.index[FRAME_HEADER_BYTES..]).into(),
            reply_count: (frame.replies.len() as u32).into(),
            replies_stored_bytes: (replies.len() as u32).into(),
            ..RawFrameHeader::new_zeroed()
        };
        out.index[..FRAME_HEADER_BYTES].copy_from_slice(header.seal().as_bytes());
        Ok(())
    }

    /// Compresses the entries of a list.
    fn list<T, R: IntoBytes + Immutable>(
        &mut self,
        entries: &[T],
        raw: impl Fn(&T) -> R,
    ) -> io::Result<Vec<u8>> {
        self.raw.clear();
        for entry in entries {
            self.raw.extend_from_slice(raw(entry).as_bytes());
        }
        self.compressor.compress(&self.raw)
    }

    /// Adds the piece that begins at `at` in the frame's content. Returns its table entry.
    fn piece(&mut self, at: usize, piece: &[u8], out: &mut EncodedFrame) -> io::Result<RawPiece> {
        if self.content != Content::AsItIs || piece.iter().all(|&byte| byte == 0) {
            let from = out.packed.len();
            out.packed
                .resize(from + zstd::zstd_safe::compress_bound(piece.len()), 0);
            let stored = self
                .compressor
                .compress_to_buffer(piece, &mut out.packed[from..])?;
            out.packed.truncate(from + stored);
            if stored < piece.len() {
                out.add(Source::Packed, from..from + stored);
                return Ok(piece_entry(&out.packed[from..]));
            }
            out.packed.truncate(from);
        }
        out.add(Source::AsItIs, at..at + piece.len());
        Ok(piece_entry(piece))
    }
}

fn piece_entry(stored: &[u8]) -> RawPiece {
    RawPiece {
        stored_bytes: (stored.len() as u32).into(),
        crc32c: crc32c::crc32c(stored).into(),
    }
}

/// Creates the empty frame that marks the recording as finished.
pub(crate) fn end_frame(sequence: u32, last_complete_ns: u64) -> RawFrameHeader {
    RawFrameHeader {
        magic: FRAME_MAGIC,
        kind: 2,
        sequence: sequence.into(),
        first_complete_ns: last_complete_ns.into(),
        last_complete_ns: last_complete_ns.into(),
        ..RawFrameHeader::new_zeroed()
    }
    .seal()
}
