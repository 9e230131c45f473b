//! Items of the log: what was logged is the same as in blocks and inodes at home, in pieces.

use super::record::SECTOR;
use super::{block, forks};
use crate::bytes::{le16, le32, le64};
use crate::families::xfs::Geometry;
use crate::strip::Secret;
use std::collections::HashMap;

/// `XFS_BLF_CHUNK`
const CHUNK: usize = 128;
const BUFFER_CANCELLED: u16 = 1 << 1;
pub const MOST_BUFFER_BYTES: usize = 1 << 16;
/// Fields of an inode item: a fork that is local, of extents, or the root of a tree.
const DATA: [u32; 3] = [0x002, 0x004, 0x008];
const ATTRIBUTES: [u32; 3] = [0x040, 0x080, 0x100];

/// Sectors of metadata as they were logged or written last, by byte offset: the log brings changes
/// to them.
#[derive(Default)]
pub struct Contents(HashMap<u64, Box<[u8; SECTOR]>>);

impl Contents {
    /// A write outside the log. Of what may be a buffer, so much is kept as a buffer may have.
    pub fn write(&mut self, offset: u64, content: &[u8]) {
        let mut wanted = 0;
        for (number, sector) in content.chunks_exact(SECTOR).enumerate() {
            let (at, place) = (number * SECTOR, offset + (number * SECTOR) as u64);
            if block::names_itself(sector, place) {
                wanted = at + MOST_BUFFER_BYTES;
            }
            if let Some(sector) = sector.first_chunk() {
                if at < wanted {
                    self.0.insert(place, Box::new(*sector));
                } else if let Some(known) = self.0.get_mut(&place) {
                    **known = *sector;
                }
            }
        }
    }

    fn buffer(&self, offset: u64, length: usize) -> Vec<u8> {
        let sectors = (0..length / SECTOR).map(|number| offset + (number * SECTOR) as u64);
        let contents = sectors.map(|place| self.0.get(&place).map_or([0; SECTOR], |known| **known));
        contents.flatten().collect()
    }

    fn log(&mut self, offset: u64, buffer: &[u8]) {
        for (number, sector) in buffer.as_chunks().0.iter().enumerate() {
            self.0
                .insert(offset + (number * SECTOR) as u64, Box::new(*sector));
        }
    }

    fn cancel(&mut self, offset: u64, length: usize) {
        for number in 0..length / SECTOR {
            self.0.remove(&(offset + (number * SECTOR) as u64));
        }
    }
}

/// Take what is private out of an item's regions, the first of which says what it is.
pub fn strip(
    regions: &mut [Vec<u8>],
    contents: &mut Contents,
    geometry: &Geometry,
    secret: &mut Secret,
) {
    let Some((format, regions)) = regions.split_first_mut() else {
        return;
    };
    match le16(format, 0) {
        0x123b => inode(format, regions, secret),
        0x123c => {
            if !buffer(format, regions, contents, geometry, secret) {
                rest(regions, secret);
            }
        }
        // Extents to be freed, mapped, counted; inodes made or removed; quota: numbers.
        0x1236..=0x1238 | 0x123d..=0x1245 | 0x1248..=0x124f => {}
        _ => rest(regions, secret),
    }
}

/// What is not understood.
pub fn rest(regions: &mut [Vec<u8>], secret: &Secret) {
    for region in regions {
        secret.bytes(region);
    }
}

/// `xfs_inode_log_format`, core, then the forks that changed.
fn inode(format: &[u8], regions: &mut [Vec<u8>], secret: &mut Secret) {
    let fields = le32(format, 4);
    let Some((core, mut forks)) = regions.split_first_mut() else {
        return;
    };
    let mode = le16(core, 2);
    for (kinds, size_at) in [(DATA, 10), (ATTRIBUTES, 8)] {
        let Some(kind) = kinds.iter().position(|kind| fields & kind != 0) else {
            continue;
        };
        if le16(format, size_at) == 0 {
            continue;
        }
        let Some((fork, others)) = forks.split_first_mut() else {
            return;
        };
        match (kind, kinds == DATA) {
            (0, true) => forks::local(fork, mode, None, secret),
            (0, false) => forks::attributes(fork, secret),
            _ => {} // numbers of blocks
        }
        forks = others;
    }
    rest(forks, secret);
}

/// `xfs_buf_log_format`, then the chunks that changed. `false` if they are not understood.
fn buffer(
    format: &[u8],
    regions: &mut [Vec<u8>],
    contents: &mut Contents,
    geometry: &Geometry,
    secret: &mut Secret,
) -> bool {
    let flags = le16(format, 4);
    let offset = le64(format, 8).saturating_mul(SECTOR as u64);
    let length = usize::from(le16(format, 6)) * SECTOR;
    if offset.checked_add(MOST_BUFFER_BYTES as u64).is_none() || length > MOST_BUFFER_BYTES {
        return false;
    }
    if flags & BUFFER_CANCELLED != 0 {
        contents.cancel(offset, length);
        return false;
    }
    let Some(places) = places(format, regions, length) else {
        return false;
    };
    let mut whole = contents.buffer(offset, length);
    for (region, &at) in regions.iter().zip(&places) {
        whole[at..at + region.len()].copy_from_slice(region);
    }
    contents.log(offset, &whole);
    // Buffers of inodes, by enum xfs_blft; accounts and AG headers are numbers.
    let understood = match flags >> 11 {
        8 => whole
            .chunks_mut(geometry.inode_bytes as usize)
            .fold(true, |_, slot| {
                block::strip(slot, geometry, secret) || {
                    secret.bytes(slot);
                    true
                }
            }),
        1..=3 | 5..=7 | 19 | 20 => true,
        _ => block::strip(&mut whole, geometry, secret),
    };
    if understood {
        for (region, &at) in regions.iter_mut().zip(&places) {
            let length = region.len();
            region.copy_from_slice(&whole[at..at + length]);
        }
    }
    understood
}

/// Where in the buffer each region lies: the bits of the map are chunks, and each region is a run
/// of them.
fn places(format: &[u8], regions: &[Vec<u8>], length: usize) -> Option<Vec<usize>> {
    let words = le32(format, 16) as usize;
    let is_logged =
        |bit: usize| bit / 32 < words && le32(format, 20 + bit / 32 * 4) >> (bit % 32) & 1 != 0;
    let (chunks, mut bit, mut found) = (length / CHUNK, 0, Vec::new());
    for region in regions {
        bit = (bit..chunks).find(|&bit| is_logged(bit))?;
        found.push(bit * CHUNK);
        let count = region.len().div_ceil(CHUNK);
        if count == 0 || bit * CHUNK + region.len() > length {
            return None;
        }
        bit += count;
    }
    Some(found)
}
