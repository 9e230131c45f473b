//! Chunks: the mapping of logical addresses to devices. `struct btrfs_chunk`,
//! include/uapi/linux/btrfs_tree.h; the mapping follows `btrfs_map_block`, fs/btrfs/volumes.c.

use crate::bytes::checked::{le16, le64};
use std::collections::BTreeMap;

/// Chunk types.
pub mod flag {
    /// File data.
    pub const DATA: u64 = 1 << 0;
    /// The chunk tree.
    pub const SYSTEM: u64 = 1 << 1;
    /// Other trees.
    pub const METADATA: u64 = 1 << 2;
    pub(super) const RAID0: u64 = 1 << 3;
    pub(super) const RAID10: u64 = 1 << 6;
    pub(super) const RAID5: u64 = 1 << 7;
    pub(super) const RAID6: u64 = 1 << 8;
}

const FIXED_BYTES: usize = 48;
const STRIPE_BYTES: usize = 32;
/// `BTRFS_STRIPE_LEN`: the kernel accepts no other length.
const STRIPE_LENGTH: u64 = 64 << 10;

/// One chunk of the logical address space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    logical: u64,
    length: u64,
    flags: u64,
    sub_stripes: u64,
    /// Device and offset of each stripe.
    stripes: Vec<(u64, u64)>,
}

impl Chunk {
    /// Parses a chunk item; also returns its length in bytes.
    pub fn parse(logical: u64, item: &[u8]) -> Option<(Chunk, usize)> {
        let count = usize::from(le16(item, 44)?);
        let stripes = (0..count).map(|number| {
            let at = FIXED_BYTES + number * STRIPE_BYTES;
            Some((le64(item, at)?, le64(item, at + 8)?))
        });
        let chunk = Chunk {
            logical,
            length: le64(item, 0)?,
            flags: le64(item, 24)?,
            sub_stripes: u64::from(le16(item, 46)?),
            stripes: stripes.collect::<Option<_>>()?,
        };
        let bytes = FIXED_BYTES + count * STRIPE_BYTES;
        chunk.is_sane().then_some((chunk, bytes))
    }

    fn is_sane(&self) -> bool {
        let count = self.stripes.len() as u64;
        let sub_stripes = !self.has(flag::RAID10)
            || (self.sub_stripes > 0 && count.is_multiple_of(self.sub_stripes));
        let fits = |start: u64| start.checked_add(self.length).is_some();
        self.length > 0
            && fits(self.logical)
            && sub_stripes
            && self.data_stripes() > 0
            && self.stripes.iter().all(|&(_, start)| fits(start))
    }

    fn has(&self, flags: u64) -> bool {
        self.flags & flags != 0
    }

    fn is_striped(&self) -> bool {
        self.has(flag::RAID0 | flag::RAID10 | flag::RAID5 | flag::RAID6)
    }

    /// Number of stripes with different content.
    fn data_stripes(&self) -> u64 {
        let count = self.stripes.len() as u64;
        if self.has(flag::RAID0) {
            count
        } else if self.has(flag::RAID10) {
            count / self.sub_stripes.max(1)
        } else if self.has(flag::RAID5) {
            count.saturating_sub(1)
        } else if self.has(flag::RAID6) {
            count.saturating_sub(2)
        } else {
            count.min(1)
        }
    }

    fn stripe_bytes(&self) -> u64 {
        self.length / self.data_stripes().max(1)
    }

    /// Place at byte `offset` of stripe `stripe`.
    fn place(&self, stripe: u64, offset: u64) -> Option<Place> {
        let mut place = Place {
            flags: self.flags,
            logical: None,
            run: self.stripe_bytes() - offset,
            copy: 0,
        };
        if !self.is_striped() {
            place.logical = self.logical.checked_add(offset);
            place.copy = u8::try_from(stripe).unwrap_or(u8::MAX);
            return Some(place);
        }
        let (row, within) = (offset / STRIPE_LENGTH, offset % STRIPE_LENGTH);
        let column = if self.has(flag::RAID10) {
            place.copy = (stripe % self.sub_stripes) as u8;
            stripe / self.sub_stripes
        } else if self.has(flag::RAID0) {
            stripe
        } else {
            // Parity rotates by one stripe per row.
            let count = self.stripes.len() as u64;
            (stripe + count - row % count) % count
        };
        place.run = place.run.min(STRIPE_LENGTH - within);
        if column < self.data_stripes() {
            let strip = row.checked_mul(self.data_stripes())?.checked_add(column)?;
            let offset = strip.checked_mul(STRIPE_LENGTH)?.checked_add(within)?;
            place.logical = self.logical.checked_add(offset);
        }
        Some(place)
    }

    /// All copies of the content at `offset` into the chunk.
    fn copies(&self, offset: u64) -> impl Iterator<Item = Spot> + '_ {
        let (strip, within) = (offset / STRIPE_LENGTH, offset % STRIPE_LENGTH);
        let data_stripes = self.data_stripes().max(1);
        let (row, column) = (strip / data_stripes, strip % data_stripes);
        let count = self.stripes.len() as u64;
        let (first, copies) = if !self.is_striped() {
            (0, count)
        } else if self.has(flag::RAID10) {
            (column * self.sub_stripes, self.sub_stripes)
        } else if self.has(flag::RAID5 | flag::RAID6) {
            ((column + row % count) % count, 1)
        } else {
            (column, 1)
        };
        let (into, run) = match self.is_striped() {
            true => (row * STRIPE_LENGTH + within, STRIPE_LENGTH - within),
            false => (offset, self.length - offset),
        };
        (0..copies).filter_map(move |copy| {
            let &(devid, start) = self.stripes.get((first + copy) as usize)?;
            Some(Spot {
                devid,
                offset: start.checked_add(into)?,
                run,
                copy: copy as u8,
            })
        })
    }
}

/// Content at a place on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The chunk's type.
    pub flags: u64,
    /// Logical address; `None` for parity.
    pub logical: Option<u64>,
    /// Length of the contiguous mapping from here, in bytes.
    pub run: u64,
    /// Number of the copy.
    pub copy: u8,
}

/// Place of a copy of a logical address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// The device.
    pub devid: u64,
    /// Byte offset on the device.
    pub offset: u64,
    /// Length of the contiguous mapping from here, in bytes.
    pub run: u64,
    /// Number of the copy.
    pub copy: u8,
}

/// All chunks.
#[derive(Debug, Default)]
pub struct ChunkMap {
    chunks: BTreeMap<u64, Chunk>,
    /// Chunk and stripe number, by device and offset.
    stripes: BTreeMap<(u64, u64), (u64, u64)>,
}

impl ChunkMap {
    /// Adds a chunk.
    pub fn insert(&mut self, chunk: Chunk) {
        for (number, &place) in chunk.stripes.iter().enumerate() {
            self.stripes.insert(place, (chunk.logical, number as u64));
        }
        self.chunks.insert(chunk.logical, chunk);
    }

    /// Number of chunks.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Returns the place at `offset` of a device, if a chunk covers it.
    pub fn place(&self, devid: u64, offset: u64) -> Option<Place> {
        let mut before = self.stripes.range((devid, 0)..=(devid, offset));
        let (&(_, start), &(logical, stripe)) = before.next_back()?;
        let chunk = self.chunks.get(&logical)?;
        let into = offset - start;
        (into < chunk.stripe_bytes()).then(|| chunk.place(stripe, into))?
    }

    /// Returns the offset of the device's first stripe after `offset`. If `offset` is unmapped, so
    /// is everything up to there.
    pub fn next_stripe(&self, devid: u64, offset: u64) -> u64 {
        let after = (devid, offset.saturating_add(1))..=(devid, u64::MAX);
        let next = self.stripes.range(after).next();
        next.map_or(u64::MAX, |(&(_, start), _)| start)
    }

    /// Returns the places of all copies of a logical address.
    pub fn copies(&self, logical: u64) -> impl Iterator<Item = Spot> + '_ {
        let before = self.chunks.range(..=logical).next_back();
        let chunk = before.map(|(_, chunk)| chunk);
        let chunk = chunk.filter(|chunk| logical - chunk.logical < chunk.length);
        chunk
            .into_iter()
            .flat_map(move |c| c.copies(logical - c.logical))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chunk(flags: u64, count: u64, sub_stripes: u64) -> Chunk {
        let mut chunk = Chunk {
            logical: 1 << 30,
            length: 0,
            flags,
            sub_stripes,
            stripes: (0..count).map(|n| (n + 1, (n + 1) << 20)).collect(),
        };
        chunk.length = chunk.data_stripes() * (8 << 20);
        chunk
    }

    proptest! {
        #[test]
        fn every_copy_of_an_address_is_found_at_its_place(kind in 0..6usize, at in 0..(8u64 << 20)) {
            let (flags, count, sub) = [(0, 1, 1), (1 << 5, 2, 1), (1 << 4, 2, 1), (flag::RAID0, 3, 1), (flag::RAID10, 4, 2), (flag::RAID6, 5, 1)][kind];
            let mut map = ChunkMap::default();
            let chunk = chunk(flags, count, sub);
            prop_assert!(chunk.is_sane());
            map.insert(chunk);
            let logical = (1 << 30) + at;
            let copies: Vec<_> = map.copies(logical).collect();
            prop_assert_eq!(copies.len() as u64, match kind { 1 | 2 | 4 => 2, _ => 1 });
            for spot in copies {
                let place = map.place(spot.devid, spot.offset).unwrap();
                prop_assert_eq!(place.logical, Some(logical));
                prop_assert_eq!(place.copy, spot.copy);
            }
        }
    }

    #[test]
    fn raid5_parity_has_no_address_of_its_own() {
        let mut map = ChunkMap::default();
        map.insert(chunk(flag::RAID5, 3, 1));
        let of = |devid: u64| map.place(devid, devid << 20).unwrap().logical;
        assert_eq!(
            [of(1), of(2), of(3)],
            [Some(1 << 30), Some((1 << 30) + STRIPE_LENGTH), None]
        );
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Chunk::parse(0, &[0; 48]).is_none());
        assert!(Chunk::parse(0, &[0xff; 4096]).is_none());
        assert!(Chunk::parse(u64::MAX, &[1; 4096]).is_none());
    }
}
