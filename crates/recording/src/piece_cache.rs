//! Content by location, unpacked one piece at a time.

use crate::{
    Error, Location, Result,
    format::PIECE_BYTES,
    raw_frame::{RawFrame, stored_bytes, unpack_piece},
};
use std::{fs::File, os::unix::fs::FileExt as _, path::Path};

/// Reads content by location, and caches the pieces unpacked last.
pub(crate) struct PieceCache {
    file: File,
    slots: Vec<Slot>,
    stored: Vec<u8>,
}

#[derive(Default)]
struct Slot {
    key: Option<(u32, usize)>,
    content: Vec<u8>,
}

/// Number of cached pieces: 64 of 64 KiB are 4 MiB.
const CACHE_SLOTS: usize = 64;

impl PieceCache {
    /// Creates an empty cache that shares the open file of a recording.
    pub fn new(file: &File, path: &Path) -> Result<Self> {
        let shared = file.try_clone();
        Ok(Self {
            file: shared.map_err(|e| Error::io("opening", path, e))?,
            slots: (0..CACHE_SLOTS).map(|_| Slot::default()).collect(),
            stored: Vec::new(),
        })
    }

    /// Copies the content at `location` in the frame that begins at `frame_at`.
    pub fn read(&mut self, frame_at: u64, location: Location, into: &mut [u8]) -> Result<()> {
        let mut at = location.content_offset as usize;
        let mut rest = into;
        while !rest.is_empty() {
            let (piece, within) = (at / PIECE_BYTES, at % PIECE_BYTES);
            let content = self.piece(frame_at, location.frame, piece)?;
            let available = content.get(within..).unwrap_or_default();
            if available.is_empty() {
                return Err(past_end(frame_at));
            }
            let count = available.len().min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(&available[..count]);
            rest = later;
            at += count;
        }
        Ok(())
    }

    fn piece(&mut self, frame_at: u64, frame: u32, index: usize) -> Result<&[u8]> {
        let slot = (frame as usize * 5 + index) % CACHE_SLOTS;
        if self.slots[slot].key != Some((frame, index)) {
            self.slots[slot].key = None;
            let raw = RawFrame::read(&self.file, frame_at)?;
            let piece = raw.pieces.get(index).ok_or_else(|| past_end(frame_at))?;
            let at = raw.content_at() + stored_bytes(&raw.pieces[..index]);
            self.stored.resize(piece.stored_bytes.get() as usize, 0);
            self.file
                .read_exact_at(&mut self.stored, at)
                .map_err(|e| Error::io_at(at, e))?;
            let content = &mut self.slots[slot].content;
            let left = raw.header.content_raw_bytes.get() as usize - index * PIECE_BYTES;
            content.resize(left.min(PIECE_BYTES), 0);
            unpack_piece(at, piece, &self.stored, content)?;
            self.slots[slot].key = Some((frame, index));
        }
        Ok(&self.slots[slot].content)
    }
}

fn past_end(frame_at: u64) -> Error {
    Error::corrupt(frame_at, "content lies past the frame's end")
}
