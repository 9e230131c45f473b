//! Splitting of a write into pieces of a single kind.

use super::block::Header;
use super::chunk::flag;
use super::metadata::Volume;
use super::superblock::{Super, copy_at, next_copy};
use crate::Write;
use crate::bytes::is_zero;

/// Kind of a piece of a write, determined by its place and first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    Superblock {
        copy: u8,
    },
    Block {
        header: Header,
        copy: u8,
    },
    /// Part of the tree block at a logical address: the write begins or ends within the block.
    PartOfBlock {
        bytenr: u64,
        copy: u8,
    },
    Data {
        copy: u8,
    },
    /// Parity of RAID5 or RAID6.
    Parity,
    /// Place in no known chunk, and not recognisable as a block by its header. The chunk was
    /// allocated since the last commit.
    Unmapped,
    /// Zeros at a place without data.
    Zeros,
    Unknown,
}

/// Returns the first piece of a write, and the length of the piece.
pub fn first_piece(volume: &Volume, write: &Write<'_>) -> (Piece, u64) {
    let (disk, offset, content) = (write.disk, write.offset, write.content);
    if let Some((copy, bytes)) = copy_at(offset) {
        let bytes = bytes.min(write.length);
        // The magic is missing while mkfs is not done, or after a device was removed.
        let is_super = Super::has_magic(content) || Super::has_been(content, &volume.fsid, offset);
        return match content.get(..bytes as usize) {
            Some(content) if !is_super && !is_zero(content) => (Piece::Unknown, bytes),
            Some(_) if is_super => (Piece::Superblock { copy }, bytes),
            _ => (Piece::Zeros, bytes),
        };
    }
    let limit = write.length.min(next_copy(offset) - offset);
    if content.is_empty() {
        return (Piece::Zeros, limit);
    }
    let Some(place) = volume.place(disk, offset) else {
        let devid = volume.devices.devid(disk);
        let until = devid.map_or(u64::MAX, |devid| volume.chunks.next_stripe(devid, offset));
        let limit = limit.min(until - offset);
        return run_until_block(volume, content, limit, Piece::Unmapped, 0);
    };
    let limit = limit.min(place.run);
    let Some(logical) = place.logical else {
        return (Piece::Parity, limit);
    };
    let copy = place.copy;
    if place.flags & (flag::METADATA | flag::SYSTEM) == 0 {
        return (Piece::Data { copy }, limit);
    }
    if let Some(header) = block_at(volume, content, limit).filter(|h| h.bytenr == logical) {
        return (Piece::Block { header, copy }, u64::from(volume.node_bytes));
    }
    if place.flags & flag::DATA != 0 {
        return run_until_block(volume, content, limit, Piece::Data { copy }, copy);
    }
    let node_bytes = u64::from(volume.node_bytes);
    let slot = logical - logical % node_bytes;
    let bytes = limit.min(slot + node_bytes - logical);
    match content.get(..bytes as usize) {
        Some(content) if !is_zero(content) => (Piece::PartOfBlock { bytenr: slot, copy }, bytes),
        _ => (Piece::Zeros, bytes),
    }
}

/// Returns whether [`first_piece`] reads the content of any piece of such a write.
pub fn is_read(volume: &Volume, disk: u16, offset: u64, length: u64) -> bool {
    let end = offset.saturating_add(length);
    if copy_at(offset).is_some() || next_copy(offset) < end {
        return true;
    }
    let mut at = offset;
    while at < end {
        let Some(place) = volume.place(disk, at) else {
            return true;
        };
        if place.logical.is_some() && place.flags & (flag::METADATA | flag::SYSTEM) != 0 {
            return true;
        }
        at = at.saturating_add(place.run.max(1));
    }
    false
}

fn block_at(volume: &Volume, content: &[u8], limit: u64) -> Option<Header> {
    let is_whole = limit >= u64::from(volume.node_bytes);
    is_whole.then(|| volume.header(content)).flatten()
}

/// Returns the block at the start of `content`, or else a piece that extends to the next block.
fn run_until_block(
    volume: &Volume,
    content: &[u8],
    limit: u64,
    otherwise: Piece,
    copy: u8,
) -> (Piece, u64) {
    if let Some(header) = block_at(volume, content, limit) {
        return (Piece::Block { header, copy }, u64::from(volume.node_bytes));
    }
    let step = u64::from(volume.sector_bytes);
    let mut at = step;
    while at < limit {
        if content
            .get(at as usize..)
            .is_some_and(|rest| block_at(volume, rest, limit - at).is_some())
        {
            break;
        }
        at += step;
    }
    (otherwise, at.min(limit))
}
