//! The ifile: groups of inodes, each preceded by a bitmap. Descriptors of many groups precede these
//! groups (fs/nilfs2/alloc.c).

use crate::bytes::{le16, le32};
use crate::fingerprints::{Fingerprints, of};
pub use crate::mode::Kind;

/// Locations of inodes in the ifile.
#[derive(Debug)]
pub struct Layout {
    inodes_per_block: u64,
    inodes_per_group: u64,
    /// Blocks of a group, bitmap included.
    blocks_per_group: u64,
    /// Groups that follow each block of descriptors.
    groups: u64,
}

impl Layout {
    /// Creates the layout for blocks and inodes of these sizes.
    pub fn new(block_bytes: u64, inode_bytes: usize) -> Layout {
        let inodes_per_block = block_bytes / inode_bytes as u64;
        let inodes_per_group = block_bytes * 8;
        Layout {
            inodes_per_block,
            inodes_per_group,
            blocks_per_group: inodes_per_group.div_ceil(inodes_per_block) + 1,
            groups: block_bytes / 4,
        }
    }

    /// First inode in a block of the ifile; `None` for descriptors and bitmaps.
    pub fn first_inode(&self, block: u64) -> Option<u64> {
        let blocks = self.groups * self.blocks_per_group + 1;
        let (set, within) = (block / blocks, block % blocks);
        let within = within.checked_sub(1)?;
        let group = set
            .checked_mul(self.groups)?
            .checked_add(within / self.blocks_per_group)?;
        let within = (within % self.blocks_per_group).checked_sub(1)?;
        let first = group.checked_mul(self.inodes_per_group)?;
        first.checked_add(within * self.inodes_per_block)
    }
}

/// Fingerprints of an inode (`struct nilfs_inode`) for comparison with another version; `None` if
/// it is free.
pub fn fingerprints(slot: &[u8]) -> Option<Fingerprints> {
    (le16(slot, 48) != 0 && le16(slot, 50) != 0).then(|| Fingerprints {
        times: of(slot, &[(16, 40)]),
        map: of(slot, &[(0, 16), (56, 112)]),
        attributes: of(slot, &[(40, 56), (112, 124)]),
        ..Fingerprints::default()
    })
}

/// Generation; it changes when another inode gets this number.
pub fn generation(slot: &[u8]) -> u32 {
    le32(slot, 120)
}

/// Kind of an inode's data.
pub fn kind(slot: &[u8]) -> Kind {
    Kind::of_mode(le16(slot, 48).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_of_inodes_is_behind_its_bitmap() {
        // A block has 32 inodes, and a group has 32,768 in 1,024 blocks.
        let layout = Layout::new(4096, 128);
        let expected = [
            (0, None),
            (1, None),
            (2, Some(0)),
            (3, Some(32)),
            (1025, Some(32_736)),
            (1026, None),
            (1027, Some(32_768)),
            // These blocks follow the descriptors of another 1,024 groups.
            (1 + 1024 * 1025, None),
            (1 + 1024 * 1025 + 2, Some(1024 * 32_768)),
        ];
        for (block, inode) in expected {
            assert_eq!(layout.first_inode(block), inode, "{block}");
        }
    }
}
