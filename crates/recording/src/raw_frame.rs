//! A frame as stored: its verified header and piece table, and functions to unpack it.

use crate::{
    Error, Reply, Result,
    format::{
        FRAME_HEADER_BYTES, FRAME_MAX_PIECES, PIECE_BYTES, PIECE_ENTRY_BYTES, RawEvent,
        RawFrameHeader, RawPiece,
    },
    reply::RawReply,
};
use std::{cell::RefCell, fs::File, io, os::unix::fs::FileExt as _};
use zerocopy::{FromBytes, FromZeros as _, IntoBytes as _};

/// A frame's header and piece table, read and verified.
pub(crate) struct RawFrame {
    pub(crate) at: u64,
    pub(crate) header: RawFrameHeader,
    pub(crate) pieces: Vec<RawPiece>,
}

impl RawFrame {
    pub(crate) fn read(file: &File, at: u64) -> Result<RawFrame> {
        let mut bytes = [0; FRAME_HEADER_BYTES + FRAME_MAX_PIECES * PIECE_ENTRY_BYTES];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io_at(at, e)),
            }
        }
        let cut = || Error::corrupt(at, "the frame is truncated");
        let (header, rest) =
            RawFrameHeader::read_from_prefix(&bytes[..filled]).map_err(|_| cut())?;
        header.check(at, header.sequence.get())?;
        let count = header.piece_count.get() as usize;
        let (pieces, _) =
            <[RawPiece]>::ref_from_prefix_with_elems(rest, count).map_err(|_| cut())?;
        let pieces = pieces.to_vec();
        if stored_bytes(&pieces) != u64::from(header.content_stored_bytes.get()) {
            return Err(Error::corrupt(at, "the piece table's checksum is wrong"));
        }
        Ok(RawFrame { at, header, pieces })
    }

    fn table_at(&self) -> u64 {
        self.at + FRAME_HEADER_BYTES as u64
    }

    pub(crate) fn content_at(&self) -> u64 {
        self.table_at() + self.header.index_bytes()
    }

    /// Reads the piece table, the events and the replies as stored.
    pub(crate) fn read_index(&self, file: &File, stored: &mut Vec<u8>) -> Result<()> {
        stored.resize(self.header.index_bytes() as usize, 0);
        file.read_exact_at(stored, self.table_at())
            .map_err(|e| Error::io_at(self.at, e))?;
        if crc32c::crc32c(stored) != self.header.index_crc32c.get() {
            let what = "the checksum of a frame's events is wrong";
            return Err(Error::corrupt(self.at, what));
        }
        Ok(())
    }

    /// Unpacks the events of an index into `events`.
    pub(crate) fn unpack_events(&self, index: &[u8], events: &mut Vec<RawEvent>) -> Result<()> {
        let count = self.header.event_count.get() as usize;
        events.resize(count, RawEvent::new_zeroed());
        let (packed, _) = self.packed(index);
        self.unpack_all("events", packed, events.as_mut_bytes())
    }

    /// Unpacks the replies of an index into `replies`.
    pub(crate) fn unpack_replies(&self, index: &[u8], replies: &mut Vec<Reply>) -> Result<()> {
        replies.clear();
        let count = self.header.reply_count.get() as usize;
        if count == 0 {
            return Ok(());
        }
        let mut raw = vec![RawReply::new_zeroed(); count];
        let (_, packed) = self.packed(index);
        self.unpack_all("replies", packed, raw.as_mut_bytes())?;
        for reply in &raw {
            let early = || Error::corrupt(self.at, "a reply precedes its request's completion");
            replies.push(reply.parse().ok_or_else(early)?);
        }
        Ok(())
    }

    /// Returns the stored events and the stored replies of an index.
    fn packed<'i>(&self, index: &'i [u8]) -> (&'i [u8], &'i [u8]) {
        let lists = index
            .get(self.pieces.len() * PIECE_ENTRY_BYTES..)
            .unwrap_or_default();
        let events = self.header.events_stored_bytes.get() as usize;
        lists.split_at_checked(events).unwrap_or_default()
    }

    fn unpack_all(&self, what: &str, packed: &[u8], into: &mut [u8]) -> Result<()> {
        let failed = |e| Error::corrupt(self.at, format!("a frame's {what} do not unpack: {e}"));
        if decompress(packed, into).map_err(failed)? != into.len() {
            let what = format!("a frame holds fewer {what} than its header states");
            return Err(Error::corrupt(self.at, what));
        }
        Ok(())
    }

    pub(crate) fn unpack_content(&self, file: &File, content: &mut [u8]) -> Result<()> {
        let mut at = self.content_at();
        let mut stored = Vec::new();
        for (piece, into) in self.pieces.iter().zip(content.chunks_mut(PIECE_BYTES)) {
            let failed = |e| Error::io_at(at, e);
            let stored_bytes = piece.stored_bytes.get() as usize;
            if stored_bytes == into.len() {
                // Stored uncompressed: read into its final place.
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

/// Number of bytes that these pieces take in the file.
pub(crate) fn stored_bytes(pieces: &[RawPiece]) -> u64 {
    pieces
        .iter()
        .map(|piece| u64::from(piece.stored_bytes.get()))
        .sum()
}

thread_local! {
    /// Shared, because creating a zstd state costs more than unpacking a small piece.
    static DECOMPRESSOR: RefCell<zstd::bulk::Decompressor<'static>> = RefCell::default();
}

/// Unpacks `stored`, and returns the number of unpacked bytes.
fn decompress(stored: &[u8], into: &mut [u8]) -> io::Result<usize> {
    DECOMPRESSOR.with_borrow_mut(|zstd| zstd.decompress_to_buffer(stored, into))
}

pub(crate) fn check_piece(at: u64, piece: &RawPiece, stored: &[u8]) -> Result<()> {
    if crc32c::crc32c(stored) != piece.crc32c.get() {
        let what = "the checksum of a piece of content is wrong";
        return Err(Error::corrupt(at, what));
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

/// Unpacks a piece whose checksum has been verified.
pub(crate) fn expand_piece(at: u64, stored: &[u8], into: &mut [u8]) -> Result<()> {
    if stored.len() == into.len() {
        into.copy_from_slice(stored);
        return Ok(());
    }
    let count = decompress(stored, into)
        .map_err(|e| Error::corrupt(at, format!("a piece of content does not unpack: {e}")))?;
    if count != into.len() {
        return Err(Error::corrupt(at, "a piece of content is too short"));
    }
    Ok(())
}
