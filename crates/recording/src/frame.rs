//! A frame: some events and their content, in memory while it fills, and encoded.

use crate::{
    Error, ErrorKind, Event, Result,
    format::{
        EVENT_BYTES, FRAME_HEADER_BYTES, FRAME_MAGIC, FRAME_MAX_BYTES, FRAME_MAX_EVENTS,
        FRAME_TARGET_BYTES, PIECE_BYTES, PIECE_ENTRY_BYTES, RawEvent, RawFrameHeader, RawPiece,
    },
};
use zerocopy::IntoBytes;

/// A frame that is being filled, or waits to be stored.
pub(crate) struct FrameBuffer {
    pub sequence: u32,
    events: Vec<Event>,
    content: Box<[u8]>,
    content_bytes: usize,
}

impl FrameBuffer {
    pub fn new(sequence: u32) -> Self {
        Self {
            sequence,
            events: Vec::new(),
            content: vec![0; FRAME_MAX_BYTES].into_boxed_slice(),
            content_bytes: 0,
        }
    }

    /// Make it empty again, under a new number.
    pub fn reset(&mut self, sequence: u32) {
        self.sequence = sequence;
        self.events.clear();
        self.content_bytes = 0;
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.content_bytes >= FRAME_TARGET_BYTES || self.events.len() >= FRAME_MAX_EVENTS
    }

    /// Free space for the next event's content: at least one largest request unless the frame is full.
    pub fn space(&mut self) -> &mut [u8] {
        &mut self.content[self.content_bytes..]
    }

    /// Add an event whose content (`content_bytes` of it) is already at the beginning of [`space`](Self::space).
    pub fn push(&mut self, mut event: Event, content_bytes: usize) -> u32 {
        let at = self.content_bytes as u32;
        event.content_offset = if content_bytes > 0 { at } else { 0 };
        self.events.push(event);
        self.content_bytes += content_bytes;
        at
    }

    pub fn content(&self) -> &[u8] {
        &self.content[..self.content_bytes]
    }
}

/// Whether content is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Only what is all zeros: compression would take the CPU from the workload that is being measured.
    AsItIs,
    /// Where it gets smaller, at zstd's level.
    Compressed(i32),
}

/// Encodes frames; keeps its compression state between them.
pub(crate) struct Encoder {
    compressor: zstd::bulk::Compressor<'static>,
    content: Content,
    raw_events: Vec<u8>,
}

impl Encoder {
    pub fn new(content: Content) -> Result<Self> {
        let level = match content {
            Content::AsItIs => 1,
            Content::Compressed(level) => level,
        };
        let compressor = zstd::bulk::Compressor::new(level)
            .map_err(|e| Error::new(ErrorKind::Invalid, format!("zstd level {level}: {e}")))?;
        Ok(Self {
            compressor,
            content,
            raw_events: Vec::new(),
        })
    }

    /// Put a piece at the beginning of `out`; returns its stored size.
    fn piece(&mut self, piece: &[u8], out: &mut [u8]) -> std::io::Result<usize> {
        if self.content != Content::AsItIs || piece.iter().all(|&byte| byte == 0) {
            let stored = self.compressor.compress_to_buffer(piece, out)?;
            if stored < piece.len() {
                return Ok(stored);
            }
        }
        out[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    }

    /// The bytes of `frame`, in `out`.
    pub fn encode(&mut self, frame: &FrameBuffer, out: &mut Vec<u8>) -> Result<()> {
        let failed = |e: std::io::Error| {
            Error::new(
                ErrorKind::Io,
                format!("compressing frame {}: {e}", frame.sequence),
            )
        };
        self.raw_events.clear();
        for event in &frame.events {
            self.raw_events
                .extend_from_slice(RawEvent::new(event).as_bytes());
        }
        debug_assert_eq!(self.raw_events.len(), frame.events.len() * EVENT_BYTES);
        let events = self.compressor.compress(&self.raw_events).map_err(failed)?;

        let pieces = frame.content().chunks(PIECE_BYTES);
        let piece_count = pieces.len();
        let content_at = FRAME_HEADER_BYTES + piece_count * PIECE_ENTRY_BYTES + events.len();
        out.clear();
        out.resize(
            content_at + piece_count * zstd::zstd_safe::compress_bound(PIECE_BYTES),
            0,
        );
        let mut end = content_at;
        for (index, piece) in pieces.enumerate() {
            let stored = self.piece(piece, &mut out[end..]).map_err(failed)?;
            let entry = RawPiece {
                stored_bytes: (stored as u32).into(),
                crc32c: crc32c::crc32c(&out[end..end + stored]).into(),
            };
            let at = FRAME_HEADER_BYTES + index * PIECE_ENTRY_BYTES;
            out[at..at + PIECE_ENTRY_BYTES].copy_from_slice(entry.as_bytes());
            end += stored;
        }
        out.truncate(end);
        out[content_at - events.len()..content_at].copy_from_slice(&events);
        let header = RawFrameHeader {
            magic: FRAME_MAGIC,
            kind: 1,
            reserved: [0; 3],
            sequence: frame.sequence.into(),
            event_count: (frame.events.len() as u32).into(),
            events_stored_bytes: (events.len() as u32).into(),
            content_raw_bytes: (frame.content_bytes as u32).into(),
            content_stored_bytes: ((end - content_at) as u32).into(),
            piece_count: (piece_count as u32).into(),
            first_complete_ns: frame.events.first().map_or(0, |e| e.complete_ns).into(),
            last_complete_ns: frame.events.last().map_or(0, |e| e.complete_ns).into(),
            index_crc32c: crc32c::crc32c(&out[FRAME_HEADER_BYTES..content_at]).into(),
            reserved2: [0; 8],
            header_crc32c: 0.into(),
        };
        out[..FRAME_HEADER_BYTES].copy_from_slice(header.seal().as_bytes());
        Ok(())
    }
}

/// The empty frame that says that the recording was finished.
pub(crate) fn end_frame(sequence: u32, last_complete_ns: u64) -> RawFrameHeader {
    RawFrameHeader {
        magic: FRAME_MAGIC,
        kind: 2,
        reserved: [0; 3],
        sequence: sequence.into(),
        event_count: 0.into(),
        events_stored_bytes: 0.into(),
        content_raw_bytes: 0.into(),
        content_stored_bytes: 0.into(),
        piece_count: 0.into(),
        first_complete_ns: last_complete_ns.into(),
        last_complete_ns: last_complete_ns.into(),
        index_crc32c: 0.into(),
        reserved2: [0; 8],
        header_crc32c: 0.into(),
    }
    .seal()
}
