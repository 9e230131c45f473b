//! Content of a frame, unpacked on demand. Most of a recording is file data, which an analysis of
//! metadata never reads.

use crate::{
    Error, Result,
    format::PIECE_BYTES,
    raw_frame::{RawFrame, check_piece, expand_piece},
};
use std::{fs::File, ops::Range, os::unix::fs::FileExt as _};

/// A frame's pieces as stored, with verified checksums.
#[derive(Debug, Clone, Default)]
pub(crate) struct PackedPieces {
    at: u64,
    stored: Vec<u8>,
    /// Position in `stored` of each piece that is not yet unpacked.
    pieces: Vec<Option<Range<usize>>>,
}

impl PackedPieces {
    pub fn clear(&mut self) {
        self.pieces.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn read(&mut self, frame: &RawFrame, file: &File) -> Result<()> {
        self.at = frame.content_at();
        self.stored
            .resize(frame.header.content_stored_bytes.get() as usize, 0);
        file.read_exact_at(&mut self.stored, self.at)
            .map_err(|e| Error::io_at(self.at, e))?;
        let mut from = 0;
        for piece in &frame.pieces {
            let range = from..from + piece.stored_bytes.get() as usize;
            from = range.end;
            let stored = self.stored.get(range.clone()).unwrap_or_default();
            check_piece(self.at + range.start as u64, piece, stored)?;
            self.pieces.push(Some(range));
        }
        Ok(())
    }

    /// Unpacks the pieces of `content` that overlap the range and are still packed.
    pub fn unpack(&mut self, range: Range<usize>, content: &mut [u8]) -> Result<()> {
        for number in range.start / PIECE_BYTES..range.end.div_ceil(PIECE_BYTES) {
            let Some(Some(stored)) = self.pieces.get(number).cloned() else {
                continue;
            };
            let at = self.at + stored.start as u64;
            let from = (number * PIECE_BYTES).min(content.len());
            let to = (from + PIECE_BYTES).min(content.len());
            let stored = self.stored.get(stored).unwrap_or_default();
            expand_piece(at, stored, &mut content[from..to])?;
            self.pieces[number] = None;
        }
        Ok(())
    }
}
