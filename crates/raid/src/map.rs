//! The address map of an array: one interface over all levels.

use crate::{mirrored::Mirrored, parity::Parity, striped::Striped};

/// The bounds within which no product of two of these overflows.
const MOST_MEMBERS: usize = 512;
const MOST_MEMBER_BYTES: u64 = 1 << 48;
/// Copies are counted in the bits of a `u64`.
const MOST_COPIES: usize = 64;
const SECTOR_BYTES: u64 = 512;

/// The levels that have a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Members one after the other.
    Linear,
    /// Striped.
    Raid0,
    /// Mirrored.
    Raid1,
    /// Parity on the last member.
    Raid4,
    /// Parity on all members in turn.
    Raid5,
    /// Parity and a syndrome.
    Raid6,
    /// Striped over mirrors.
    Raid10,
}

impl Level {
    /// As a superblock spells it (`include/uapi/linux/raid/md_p.h`).
    pub fn from_number(number: i32) -> Option<Level> {
        Some(match number {
            -1 => Level::Linear,
            0 => Level::Raid0,
            1 => Level::Raid1,
            4 => Level::Raid4,
            5 => Level::Raid5,
            6 => Level::Raid6,
            10 => Level::Raid10,
            _ => return None,
        })
    }
}

/// The shape of an array. Offsets and sizes are of the members' data areas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// How data is spread.
    pub level: Level,
    /// The variant of the level, as a superblock spells it.
    pub layout: u32,
    /// Consecutive bytes on one member; 0 where a level has no chunks.
    pub chunk_bytes: u64,
    /// Bytes that each member contributes; all the same but for RAID 0 and linear.
    pub member_bytes: Vec<u64>,
}

/// What part of an array a byte of a member's data area is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Data of the array.
    Data {
        /// Byte offset in the array.
        array_offset: u64,
        /// 0 for the first copy, in the order of [`Map::places`].
        copy: u8,
    },
    /// The exclusive or of a stripe's data (P).
    Parity,
    /// RAID 6's second parity (Q).
    Syndrome,
    /// Left over by rounding.
    Unused,
}

/// A run of bytes of one member with one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Bytes, at least 1.
    pub length: u64,
    /// What they are.
    pub role: Role,
}

/// A byte of a member's data area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index of the member: its role in the superblock.
    pub member: usize,
    /// Byte offset in its data area.
    pub offset: u64,
}

/// Where each byte of an array lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Map {
    /// Linear and RAID 0.
    Striped(Striped),
    /// RAID 1 and RAID 10.
    Mirrored(Mirrored),
    /// RAID 4, 5 and 6.
    Parity(Parity),
}

impl Map {
    /// The map of this shape; `None` where the shape makes no sense or the kernel refuses it.
    pub fn new(geometry: &Geometry) -> Option<Map> {
        let Geometry {
            level,
            chunk_bytes,
            member_bytes,
            ..
        } = geometry;
        let is_chunked = !matches!(level, Level::Linear | Level::Raid1);
        let is_sound = (1..=MOST_MEMBERS).contains(&member_bytes.len())
            && member_bytes.iter().all(|&bytes| bytes <= MOST_MEMBER_BYTES)
            && *chunk_bytes <= MOST_MEMBER_BYTES
            && chunk_bytes.is_multiple_of(SECTOR_BYTES)
            && (*chunk_bytes > 0 || !is_chunked);
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

    /// Size of the array.
    pub fn size_bytes(&self) -> u64 {
        match self {
            Map::Striped(map) => map.size_bytes(),
            Map::Mirrored(map) => map.size_bytes(),
            Map::Parity(map) => map.size_bytes(),
        }
    }

    /// How often each byte of data is stored.
    pub fn copies(&self) -> usize {
        match self {
            Map::Mirrored(map) => map.copies(),
            Map::Striped(_) | Map::Parity(_) => 1,
        }
    }

    /// What begins at `offset` of a member's data area, and how far it goes.
    pub fn piece(&self, member: usize, offset: u64) -> Piece {
        let (role, length) = match self {
            Map::Striped(map) => map.role(member, offset),
            Map::Mirrored(map) => map.role(member, offset),
            Map::Parity(map) => map.role(member, offset),
        };
        let length = match role {
            // A chunk may reach over the array's end.
            Role::Data { array_offset, .. } => length.min(self.size_bytes() - array_offset),
            _ => length,
        };
        Piece { length, role }
    }

    /// All places of the byte at `offset` of the array, the first copy first, and how many bytes
    /// from there on lie next to each other in each of them. Empty behind the array's end.
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

    /// The parity that protects the byte at `offset` of the array: P, and Q for RAID 6.
    pub fn parity_places(&self, offset: u64) -> Vec<Place> {
        match self {
            Map::Parity(map) if offset < map.size_bytes() => map.parity_places(offset),
            _ => Vec::new(),
        }
    }
}
