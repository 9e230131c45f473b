//! Content by location, unpacked one piece at a time.

use crate::{
    Error, ErrorKind, Location, Result,
    format::PIECE_BYTES,
    raw_frame::{RawFrame, unpack_piece},
};
use std::{fs::File, os::unix::fs::FileExt as _};

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
    pub fn new(file: File) -> Self {
        Self {
            file,
            slots: (0..CACHE_SLOTS).map(|_| Slot::default()).collect(),
            stored: Vec::new(),
        }
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
                return Err(Error::corrupt(
                    frame_at,
                    "content lies past the frame's end",
                ));
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
            let piece = raw
                .pieces
                .get(index)
                .ok_or_else(|| Error::corrupt(frame_at, "content lies past the frame's end"))?;
            let before: u64 = raw.pieces[..index]
                .iter()
                .map(|p| u64::from(p.stored_bytes.get()))
                .sum();
            let at = raw.content_at() + before;
            self.stored.resize(piece.stored_bytes.get() as usize, 0);
            self.file
                .read_exact_at(&mut self.stored, at)
                .map_err(|e| Error::new(ErrorKind::Io, format!("at byte {at}: {e}")))?;
            let content = &mut self.slots[slot].content;
            content.resize(
                (raw.header.content_raw_bytes.get() as usize - index * PIECE_BYTES)
                    .min(PIECE_BYTES),
                0,
            );
            unpack_piece(at, piece, &self.stored, content)?;
            self.slots[slot].key = Some((frame, index));
        }
        Ok(&self.slots[slot].content)
    }
}
