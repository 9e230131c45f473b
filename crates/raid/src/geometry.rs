//! The shape of an array, and places in it.

/// Levels that have a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Members concatenated.
    Linear,
    /// Data striped over members.
    Raid0,
    /// Data mirrored on members.
    Raid1,
    /// Parity on the last member.
    Raid4,
    /// Parity on all members in rotation.
    Raid5,
    /// Parity and a syndrome in each stripe.
    Raid6,
    /// Data striped over mirrors.
    Raid10,
}

impl Level {
    /// Returns the level for its number in a superblock (`include/uapi/linux/raid/md_p.h`).
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

/// The shape of an array. Offsets and sizes refer to the members' data areas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// Layout of the data.
    pub level: Level,
    /// Variant of the level, as encoded in a superblock.
    pub layout: u32,
    /// Consecutive bytes on one member; 0 for levels without chunks.
    pub chunk_bytes: u64,
    /// Bytes that each member contributes. All members are equal except for RAID 0 and linear.
    pub member_bytes: Vec<u64>,
}

/// Role of a byte of a member's data area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Data of the array.
    Data {
        /// Byte offset in the array.
        array_offset: u64,
        /// Number of the copy, in the order of [`Map::places`](crate::Map::places); 0 for the
        /// first.
        copy: u8,
    },
    /// Exclusive or of a stripe's data (P).
    Parity,
    /// Second parity of RAID 6 (Q).
    Syndrome,
    /// Bytes left over by rounding.
    Unused,
}

/// A run of bytes of one member with one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Length in bytes, at least 1.
    pub length: u64,
    /// Role of the bytes.
    pub role: Role,
}

/// A byte of a member's data area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index of the member, which is its role in the superblock.
    pub member: usize,
    /// Byte offset in the member's data area.
    pub offset: u64,
}
