//! The superblock (`struct reiserfs_super_block`): sizes and locations.

use crate::bytes::{le16, le32};

/// Offset of the superblock, in bytes.
pub const AT: u64 = 65536;
/// Size of the superblock, in bytes.
pub const BYTES: usize = 204;

/// Sizes and locations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// Size of a block, in bytes.
    pub block_bytes: u64,
    /// Number of blocks in the file system.
    pub blocks: u64,
    /// First block of the journal.
    pub journal_at: u64,
    /// Number of blocks in the journal, including the block with its header.
    pub journal_blocks: u64,
    /// Magic number that a separate journal device also carries; 0 if the journal is on this disk.
    pub journal_magic: u32,
}

impl Geometry {
    /// Parses the superblock of a disk of this size.
    pub fn parse(sb: &[u8], disk_bytes: u64) -> Option<Geometry> {
        let magic = sb.get(52..62)?;
        if !magic.starts_with(b"ReIsEr2Fs") && !magic.starts_with(b"ReIsEr3Fs") {
            return None;
        }
        let block_bytes = u64::from(le16(sb, 44));
        let blocks = u64::from(le32(sb, 0));
        let is_one =
            matches!(block_bytes, 1024 | 2048 | 4096 | 8192) && blocks * block_bytes <= disk_bytes;
        let is_elsewhere = le32(sb, 16) != 0;
        is_one.then(|| Geometry {
            block_bytes,
            blocks,
            journal_at: u64::from(le32(sb, 12)),
            // The count excludes the block with the header.
            journal_blocks: u64::from(le32(sb, 20)) + 1,
            journal_magic: if is_elsewhere { le32(sb, 28) } else { 0 },
        })
    }

    /// Block with the journal's header.
    pub fn journal_header(&self) -> u64 {
        self.journal_at + self.journal_blocks - 1
    }
}
