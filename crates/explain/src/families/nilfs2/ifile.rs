//! The ifile: groups of inodes, each behind a bitmap, and descriptors of many groups in front of
//! them (fs/nilfs2/alloc.c).

use crate::Structure;
use crate::bytes::{le16, le32};
use crate::track::fingerprints::{Fingerprints, of};

/// Where inodes are in the ifile.
#[derive(Debug)]
pub struct Layout {
    inodes_per_block: u64,
    inodes_per_group: u64,
    /// Bitmap included.
    blocks_per_group: u64,
    /// Behind each block of descriptors.
    groups: u64,
}

impl Layout {
    /// For blocks and inodes of these sizes.
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

    /// The first inode of a block of the ifile; of descriptors and bitmaps, none.
    pub fn first_inode(&self, block: u64) -> Option<u64> {
        let blocks = self.groups * self.blocks_per_group + 1;
        let (set, within) = (block / blocks, block % blocks);
        let within = within.checked_sub(1)?;
        let (group, within) = (
            within / self.blocks_per_group,
            within % self.blocks_per_group,
        );
        let within = within.checked_sub(1)?;
        let group = set.checked_mul(self.groups)?.checked_add(group)?;
        group
            .checked_mul(self.inodes_per_group)?
            .checked_add(within * self.inodes_per_block)
    }
}

/// Of an inode (`struct nilfs_inode`); of a free one, none.
pub fn fingerprints(slot: &[u8]) -> Option<Fingerprints> {
    (le16(slot, 48) != 0 && le16(slot, 50) != 0).then(|| Fingerprints {
        times: of(slot, &[(16, 40)]),
        map: of(slot, &[(0, 16), (56, 112)]),
        attributes: of(slot, &[(40, 56), (112, 124)]),
        ..Fingerprints::default()
    })
}

/// Changes with the inode that has this number.
pub fn generation(slot: &[u8]) -> u32 {
    le32(slot, 120)
}

/// What an inode's data is.
pub fn kind(slot: &[u8]) -> Structure {
    match le16(slot, 48) & 0xf000 {
        0x4000 => Structure::Directory,
        0xa000 => Structure::Symlink,
        _ => Structure::FileData,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_of_inodes_is_behind_its_bitmap() {
        // 32 inodes a block, 32,768 a group: 1,024 blocks of them.
        let layout = Layout::new(4096, 128);
        let expected = [
            (0, None),
            (1, None),
            (2, Some(0)),
            (3, Some(32)),
            (1025, Some(32_736)),
            (1026, None),
            (1027, Some(32_768)),
            // Descriptors of another 1,024 groups.
            (1 + 1024 * 1025, None),
            (1 + 1024 * 1025 + 2, Some(1024 * 32_768)),
        ];
        for (block, inode) in expected {
            assert_eq!(layout.first_inode(block), inode, "{block}");
        }
    }
}
