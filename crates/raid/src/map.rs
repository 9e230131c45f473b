//! The address map of an array, with one interface for all levels.

use crate::{
    geometry::{Geometry, Level, Piece, Place, Role},
    mirrored::Mirrored,
    parity::Parity,
    striped::Striped,
};

/// Bounds within which the arithmetic of a map cannot overflow.
const MOST_MEMBERS: usize = 512;
const MOST_MEMBER_BYTES: u64 = 1 << 48;
/// Largest number of copies: they are counted in the bits of a `u64`.
const MOST_COPIES: usize = 64;
const SECTOR_BYTES: u64 = 512;

/// Maps each byte of an array to its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Map {
    /// Map of linear and RAID 0.
    Striped(Striped),
    /// Map of RAID 1 and RAID 10.
    Mirrored(Mirrored),
    /// Map of RAID 4, 5 and 6.
    Parity(Parity),
}

impl Map {
    /// Creates the map of an array. `None` if the geometry is inconsistent or the kernel rejects
    /// it.
    pub fn new(geometry: &Geometry) -> Option<Map> {
        let (level, chunk_bytes) = (geometry.level, geometry.chunk_bytes);
        let member_bytes = &geometry.member_bytes;
        let is_chunked = !matches!(level, Level::Linear | Level::Raid1);
        let is_sound = (1..=MOST_MEMBERS).contains(&member_bytes.len())
            && member_bytes.iter().all(|&bytes| bytes <= MOST_MEMBER_BYTES)
            && chunk_bytes <= MOST_MEMBER_BYTES
            && chunk_bytes.is_multiple_of(SECTOR_BYTES)
            && (chunk_bytes > 0 || !is_chunked);
        if !is_sound {
            return None;
        }
        let map = match level {
            Level::Linear => Map::Striped(Striped::linear(geometry)),
            Level::Raid0 => Map::Striped(Striped::raid0(geometry)?),
            Level::Raid1 | Level::Raid10 => Map::Mirrored(Mirrored::new(geometry)?),
            Level::Raid4 | Level::Raid5 | Level::Raid6 => Map::Parity(Parity::new(geometry)?),
        };
        (map.copies() <= MOST_COPIES).then_some(map)
    }

    /// Returns the size of the array in bytes.
    pub fn size_bytes(&self) -> u64 {
        match self {
            Map::Striped(map) => map.size_bytes(),
            Map::Mirrored(map) => map.size_bytes(),
            Map::Parity(map) => map.size_bytes(),
        }
    }

    /// Returns the number of copies of each byte of data.
    pub fn copies(&self) -> usize {
        match self {
            Map::Mirrored(map) => map.copies(),
            Map::Striped(_) | Map::Parity(_) => 1,
        }
    }

    /// Returns the piece at `offset` of a member's data area, and its length.
    pub fn piece(&self, member: usize, offset: u64) -> Piece {
        let (role, length) = match self {
            Map::Striped(map) => map.role(member, offset),
            Map::Mirrored(map) => map.role(member, offset),
            Map::Parity(map) => map.role(member, offset),
        };
        let length = match role {
            // A chunk may extend beyond the array's end.
            Role::Data { array_offset, .. } => length.min(self.size_bytes() - array_offset),
            _ => length,
        };
        Piece { length, role }
    }

    /// Returns all places of the byte at `offset` of the array, first copy first, and the number of
    /// bytes from there on that are contiguous in every place. Empty beyond the array's end.
    pub fn places(&self, offset: u64) -> (Vec<Place>, u64) {
        if offset >= self.size_bytes() {
            return (Vec::new(), 0);
        }
        let (places, length) = match self {
            Map::Striped(map) => map.places(offset),
            Map::Mirrored(map) => map.places(offset),
            Map::Parity(map) => map.places(offset),
        };
        (places, length.min(self.size_bytes() - offset))
    }

    /// Returns the places of the parity that protects the byte at `offset` of the array: P, and Q
    /// for RAID 6.
    pub fn parity_places(&self, offset: u64) -> Vec<Place> {
        match self {
            Map::Parity(map) if offset < map.size_bytes() => map.parity_places(offset),
            _ => Vec::new(),
        }
    }
}
