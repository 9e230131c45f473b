//! The superblock (`struct nilfs_super_block`): sizes and locations.

use crate::bytes::{le16, le32, le64};

/// Offset of the superblock, in bytes.
pub const AT: u64 = 1024;
/// Size of the superblock, in bytes.
pub const BYTES: usize = 1024;
const MAGIC: u16 = 0x3434;

/// Sizes and locations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// Size of a block, in bytes.
    pub block_bytes: u64,
    /// Number of blocks in a segment.
    pub segment_blocks: u64,
    /// First block of the first segment.
    pub first_block: u64,
    /// End of the last segment.
    pub end_block: u64,
    /// Offset of the second superblock, in bytes.
    pub backup_at: u64,
    /// Size of an inode, in bytes.
    pub inode_bytes: usize,
}

impl Geometry {
    /// Parses the superblock of a disk of this size.
    pub fn parse(sb: &[u8], disk_bytes: u64) -> Option<Geometry> {
        let block_log = le32(sb, 0x14);
        let segment_blocks = u64::from(le32(sb, 0x30));
        let inode_bytes = usize::from(le16(sb, 0x90));
        if le16(sb, 6) != MAGIC || block_log > 6 || !(128..=1024).contains(&inode_bytes) {
            return None;
        }
        let block_bytes = 1024 << block_log;
        let end_block = le64(sb, 0x18).checked_mul(segment_blocks)?;
        let first_block = le64(sb, 0x28);
        let is_within =
            end_block.checked_mul(block_bytes)? <= disk_bytes && first_block <= end_block;
        (is_within && segment_blocks > 0).then_some(Geometry {
            block_bytes,
            segment_blocks,
            first_block,
            end_block,
            // NILFS_SB2_OFFSET_BYTES
            backup_at: (disk_bytes >> 12).saturating_sub(1) << 12,
            inode_bytes,
        })
    }

    /// End of the segment that contains a block.
    pub fn segment_end(&self, block: u64) -> u64 {
        (block / self.segment_blocks + 1).saturating_mul(self.segment_blocks)
    }
}
