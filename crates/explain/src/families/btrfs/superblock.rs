//! The superblock: `struct btrfs_super_block`, fs/btrfs/fs.h and include/uapi/linux/btrfs_tree.h.

use super::bytes::{u32_at, u64_at};
use super::chunk::{Chunk, ChunkMap};
use super::key::{KEY_BYTES, Key};

/// Bytes of a superblock copy (`BTRFS_SUPER_INFO_SIZE`).
pub const SUPER_BYTES: u64 = 4096;
/// Where the copies are (`btrfs_sb_offset`).
pub const SUPER_OFFSETS: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];

const INCOMPAT_METADATA_UUID: u64 = 1 << 10;
const SYS_CHUNK_ARRAY_BYTES: usize = 2048;

/// What is needed of a superblock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Super {
    /// The id that every tree block carries.
    pub fsid: [u8; 16],
    pub generation: u64,
    pub root: u64,
    pub chunk_root: u64,
    /// 0 when no fsync is logged.
    pub log_root: u64,
    pub sector_bytes: u32,
    pub node_bytes: u32,
    /// The device that this copy lies on.
    pub devid: u64,
    /// The chunks that hold the chunk tree.
    sys_chunks: Vec<u8>,
}

impl Super {
    /// The superblock in these bytes. mkfs writes another magic until it is done; such a one is not
    /// followed.
    pub fn parse(bytes: &[u8]) -> Option<Super> {
        if bytes.get(0x40..0x48)? != b"_BHRfS_M" {
            return None;
        }
        let sys_chunk_bytes = (u32_at(bytes, 0xa0)? as usize).min(SYS_CHUNK_ARRAY_BYTES);
        let sector_bytes = u32_at(bytes, 0x90)?;
        let node_bytes = u32_at(bytes, 0x94)?;
        let sizes = [sector_bytes, node_bytes];
        if sizes
            .iter()
            .any(|s| !s.is_power_of_two() || !(4096..=65536).contains(s))
        {
            return None;
        }
        Some(Super {
            fsid: Super::id(bytes)?,
            generation: u64_at(bytes, 0x48)?,
            root: u64_at(bytes, 0x50)?,
            chunk_root: u64_at(bytes, 0x58)?,
            log_root: u64_at(bytes, 0x60)?,
            sector_bytes,
            node_bytes: node_bytes.max(sector_bytes),
            devid: u64_at(bytes, 0xc9)?,
            sys_chunks: bytes.get(0x32b..0x32b + sys_chunk_bytes)?.to_vec(),
        })
    }

    /// The id that the tree blocks of a superblock's file system carry.
    pub fn id(bytes: &[u8]) -> Option<[u8; 16]> {
        let metadata_uuid = u64_at(bytes, 0xbc)? & INCOMPAT_METADATA_UUID != 0;
        let at = if metadata_uuid { 0x23b } else { 0x20 };
        bytes.get(at..)?.first_chunk().copied()
    }

    /// Add the chunks that the superblock itself names.
    pub fn add_chunks(&self, chunks: &mut ChunkMap) {
        let mut rest = self.sys_chunks.as_slice();
        while let Some(key) = Key::parse(rest) {
            let Some((chunk, bytes)) = rest
                .get(KEY_BYTES..)
                .and_then(|item| Chunk::parse(key.offset, item))
            else {
                return;
            };
            chunks.insert(chunk);
            rest = rest.get(KEY_BYTES + bytes..).unwrap_or_default();
        }
    }
}

/// Which copy of the superblock `offset` lies in, and how many bytes are left of it.
pub fn copy_at(offset: u64) -> Option<(u8, u64)> {
    SUPER_OFFSETS.iter().enumerate().find_map(|(copy, &start)| {
        (start..start + SUPER_BYTES)
            .contains(&offset)
            .then(|| (copy as u8, start + SUPER_BYTES - offset))
    })
}

/// The first copy at or after `offset`.
pub fn next_copy(offset: u64) -> u64 {
    SUPER_OFFSETS
        .iter()
        .copied()
        .find(|&start| start >= offset)
        .unwrap_or(u64::MAX)
}
