//! The superblock: `struct btrfs_super_block`, fs/btrfs/fs.h and include/uapi/linux/btrfs_tree.h.

use super::chunk::{Chunk, ChunkMap};
use super::item::{KEY_BYTES, Key};
use crate::bytes::{
    array,
    checked::{le16, le32, le64},
};
use std::ops::Range;

/// Bytes of a superblock copy (`BTRFS_SUPER_INFO_SIZE`).
pub const SUPER_BYTES: u64 = 4096;
/// Offsets of the copies (`btrfs_sb_offset`).
pub const SUPER_OFFSETS: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];

/// The label.
pub const LABEL: Range<usize> = 0x12b..0x22b;

const MAGIC: &[u8] = b"_BHRfS_M";
const MAGIC_AT: usize = 0x40;
const INCOMPAT_METADATA_UUID: u64 = 1 << 10;
const SYS_CHUNK_ARRAY_BYTES: usize = 2048;

/// Fields of a superblock that fscost uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Super {
    /// The id that every tree block carries.
    pub fsid: [u8; 16],
    /// Generation of the transaction that the superblock was written for.
    pub generation: u64,
    /// The tree of roots.
    pub root: u64,
    /// The tree of chunks.
    pub chunk_root: u64,
    /// Root of the log tree; 0 when no fsync is logged.
    pub log_root: u64,
    /// Bytes of a data block.
    pub sector_bytes: u32,
    /// Bytes of a tree block.
    pub node_bytes: u32,
    /// Device that holds this copy.
    pub devid: u64,
    /// The chunks that hold the chunk tree.
    sys_chunks: Vec<u8>,
}

impl Super {
    /// Parses a finished superblock. mkfs writes a different magic number until it is done; such a
    /// superblock yields `None`.
    pub fn parse(bytes: &[u8]) -> Option<Super> {
        if !bytes.get(MAGIC_AT..)?.starts_with(MAGIC) {
            return None;
        }
        let sys_chunk_bytes = (le32(bytes, 0xa0)? as usize).min(SYS_CHUNK_ARRAY_BYTES);
        let sector_bytes = le32(bytes, 0x90)?;
        let node_bytes = le32(bytes, 0x94)?;
        let is_size = |bytes: u32| bytes.is_power_of_two() && (4096..=65536).contains(&bytes);
        if !is_size(sector_bytes) || !is_size(node_bytes) {
            return None;
        }
        Some(Super {
            fsid: Super::id(bytes)?,
            generation: le64(bytes, 0x48)?,
            root: le64(bytes, 0x50)?,
            chunk_root: le64(bytes, 0x58)?,
            log_root: le64(bytes, 0x60)?,
            sector_bytes,
            node_bytes: node_bytes.max(sector_bytes),
            devid: le64(bytes, 0xc9)?,
            sys_chunks: bytes.get(0x32b..0x32b + sys_chunk_bytes)?.to_vec(),
        })
    }

    /// Returns whether these bytes are a superblock, finished or not. Until it is done, mkfs writes
    /// a magic number with a different first byte.
    pub fn has_magic(bytes: &[u8]) -> bool {
        let magic = bytes.get(MAGIC_AT + 1..).unwrap_or_default();
        magic.starts_with(&MAGIC[1..])
    }

    /// Returns whether these bytes were a superblock of this file system at this offset until its
    /// magic number was erased (`btrfs_scratch_superblock`, fs/btrfs/volumes.c).
    pub fn has_been(bytes: &[u8], fsid: &[u8; 16], offset: u64) -> bool {
        bytes.get(MAGIC_AT..MAGIC_AT + 8) == Some(&[0; 8])
            && Super::id(bytes).as_ref() == Some(fsid)
            && le64(bytes, 0x30) == Some(offset)
    }

    /// Returns whether the superblock and its file system use CRC-32C checksums
    /// (`BTRFS_CSUM_TYPE_CRC32`).
    pub fn has_crc32c(bytes: &[u8]) -> bool {
        le16(bytes, 0xc4) == Some(0)
    }

    /// Returns the id that tree blocks of this file system carry.
    pub fn id(bytes: &[u8]) -> Option<[u8; 16]> {
        let metadata_uuid = le64(bytes, 0xbc)? & INCOMPAT_METADATA_UUID != 0;
        let at = if metadata_uuid { 0x23b } else { 0x20 };
        array(bytes, at)
    }

    /// Adds the chunks that the superblock itself lists.
    pub fn add_chunks(&self, chunks: &mut ChunkMap) {
        let mut rest = self.sys_chunks.as_slice();
        while let Some(key) = Key::parse(rest) {
            let item = rest.get(KEY_BYTES..).unwrap_or_default();
            let Some((chunk, bytes)) = Chunk::parse(key.offset, item) else {
                return;
            };
            chunks.insert(chunk);
            rest = rest.get(KEY_BYTES + bytes..).unwrap_or_default();
        }
    }
}

/// Number of the superblock copy that contains `offset`, and the bytes left in that copy.
pub fn copy_at(offset: u64) -> Option<(u8, u64)> {
    let contains = |&start: &u64| (start..start + SUPER_BYTES).contains(&offset);
    let copy = SUPER_OFFSETS.iter().position(contains)?;
    Some((copy as u8, SUPER_OFFSETS[copy] + SUPER_BYTES - offset))
}

/// Offset of the first copy at or after `offset`.
pub fn next_copy(offset: u64) -> u64 {
    let next = SUPER_OFFSETS.into_iter().find(|&start| start >= offset);
    next.unwrap_or(u64::MAX)
}
