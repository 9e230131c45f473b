//! A member's superblock, version 1 (`struct mdp_superblock_1` in
//! `include/uapi/linux/raid/md_p.h`).

use crate::{Area, Geometry, Level, Member};

const MAGIC: u32 = 0xa92b_4efc;
const SECTOR_BYTES: u64 = 512;
const BYTES: usize = 4096;
/// Bytes before the table of roles.
const FIXED_BYTES: usize = 256;
const BITMAP: u32 = 1;
const PARTIAL_PARITY_LOG: u32 = 512;
/// First of the special roles: spare, failed member, journal.
const FIRST_SPECIAL_ROLE: u16 = 0xfffd;
/// Feature flag of a member that is being rebuilt.
const RECOVERY_OFFSET: u32 = 2;

/// One member's superblock: the shape of the array and the member's place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// UUID of the array.
    pub array: [u8; 16],
    /// Index of the member in the array.
    pub role: usize,
    /// Number of members of the array.
    pub members: usize,
    /// Layout of the data.
    pub level: Level,
    /// Variant of the level.
    pub layout: u32,
    /// Consecutive bytes on one member; 0 for levels without chunks.
    pub chunk_bytes: u64,
    /// Bytes that this member contributes.
    pub member_bytes: u64,
    /// True if md is copying or computing this member's content from the others.
    pub is_rebuilding: bool,
    /// Areas of the member.
    pub areas: Member,
}

/// Possible offsets of a superblock on a member: version 1.2, 1.1, 1.0.
pub const PLACES: [fn(u64) -> Option<u64>; 3] = [
    |_| Some(8 * SECTOR_BYTES),
    |_| Some(0),
    // super_1_load(): 8 KiB from the end, rounded down to 4 KiB.
    |disk_bytes| Some((disk_bytes / SECTOR_BYTES).checked_sub(16)? / 8 * 8 * SECTOR_BYTES),
];

impl Superblock {
    /// Number of bytes that [`parse`](Self::parse) needs.
    pub const BYTES: usize = BYTES;

    /// Parses the superblock in `bytes`, which were read at offset `at` of a disk. `None` if there
    /// is no superblock, its checksum is wrong, it belongs at another offset, or the member is a
    /// spare.
    pub fn parse(bytes: &[u8], at: u64, disk_bytes: u64) -> Option<Superblock> {
        let bytes = bytes.get(..BYTES)?;
        let feature_map = le32(bytes, 8);
        let is_one = le32(bytes, 0) == MAGIC
            && le32(bytes, 4) == 1
            && le64(bytes, 144) == at / SECTOR_BYTES
            && checksum(bytes)? == le32(bytes, 216);
        if !is_one {
            return None;
        }
        let number = le32(bytes, 160);
        let role_at = usize::try_from(number).ok()?.checked_mul(2)?;
        let is_known = number < le32(bytes, 220);
        let role_at = FIXED_BYTES.checked_add(role_at).filter(|_| is_known)?;
        let role = le16(bytes, role_at)?;
        if role >= FIRST_SPECIAL_ROLE {
            return None;
        }
        let level = Level::from_number(le32(bytes, 72) as i32)?;
        let (size, data_size) = (sectors(bytes, 80)?, sectors(bytes, 136)?);
        let member_bytes = match level {
            Level::Linear | Level::Raid0 => data_size,
            _ => size.min(data_size),
        };
        Some(Superblock {
            array: bytes[16..32].try_into().ok()?,
            role: usize::from(role),
            members: usize::try_from(le32(bytes, 92)).ok()?,
            level,
            layout: le32(bytes, 76),
            chunk_bytes: u64::from(le32(bytes, 88)) * SECTOR_BYTES,
            member_bytes,
            is_rebuilding: feature_map & RECOVERY_OFFSET != 0,
            areas: areas(bytes, at, disk_bytes)?,
        })
    }

    /// Returns the shape of the array with these members. Each member's index must equal its role.
    pub fn geometry(members: &[&Superblock]) -> Option<Geometry> {
        let first = members.first()?;
        let shape = |each: &Superblock| (each.level, each.layout, each.chunk_bytes);
        let are_alike = members.iter().all(|other| shape(other) == shape(first));
        are_alike.then(|| Geometry {
            level: first.level,
            layout: first.layout,
            chunk_bytes: first.chunk_bytes,
            member_bytes: members.iter().map(|each| each.member_bytes).collect(),
        })
    }
}

fn areas(bytes: &[u8], at: u64, disk_bytes: u64) -> Option<Member> {
    let (data_offset, data_size) = (sectors(bytes, 128)?, sectors(bytes, 136)?);
    let mut areas = vec![
        (data_offset, data_size, Area::Data { offset: 0 }),
        (at, BYTES as u64, Area::Superblock),
    ];
    let feature_map = le32(bytes, 8);
    // The bitmap's length depends on its own superblock. It ends at the latest where another area
    // begins.
    if feature_map & BITMAP != 0 {
        let start = beside(at, i64::from(le32(bytes, 96) as i32))?;
        areas.push((start, u64::MAX, Area::Bitmap));
    }
    if feature_map & PARTIAL_PARITY_LOG != 0 {
        let start = beside(at, i64::from(le16(bytes, 96)? as i16))?;
        let length = u64::from(le16(bytes, 98)?) * SECTOR_BYTES;
        areas.push((start, length, Area::PartialParityLog));
    }
    let (bad_blocks, sectors) = (le32(bytes, 188) as i32, u64::from(le16(bytes, 186)?));
    if bad_blocks != 0 && sectors > 0 {
        let start = beside(at, i64::from(bad_blocks))?;
        areas.push((start, sectors * SECTOR_BYTES, Area::BadBlocks));
    }
    Some(Member::new(disk_bytes, &areas))
}

/// Returns the offset `sectors` after the superblock, or before it if negative.
fn beside(at: u64, sectors: i64) -> Option<u64> {
    at.checked_add_signed(sectors.checked_mul(SECTOR_BYTES as i64)?)
}

/// Computes the checksum as `calc_sb_1_csum()` does.
fn checksum(bytes: &[u8]) -> Option<u32> {
    let roles = usize::try_from(le32(bytes, 220)).ok()?.checked_mul(2)?;
    let length = FIXED_BYTES.checked_add(roles)?;
    let bytes = bytes.get(..length)?;
    let words = (0..length / 4).filter(|&word| word != 216 / 4);
    let sum: u64 = words.map(|word| u64::from(le32(bytes, word * 4))).sum();
    let sum = match length % 4 {
        2 => sum + u64::from(le16(bytes, length - 2)?),
        _ => sum,
    };
    Some((sum as u32).wrapping_add((sum >> 32) as u32))
}

/// Reads a count of sectors and returns it in bytes.
fn sectors(bytes: &[u8], at: usize) -> Option<u64> {
    le64(bytes, at).checked_mul(SECTOR_BYTES)
}

fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    let found = bytes.get(at..)?.first_chunk();
    found.copied().map(u16::from_le_bytes)
}

/// Reads a little-endian integer. `at` is below [`FIXED_BYTES`], or bounded by the caller.
fn le32(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.copied().map_or(0, u32::from_le_bytes)
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found.copied().map_or(0, u64::from_le_bytes)
}
