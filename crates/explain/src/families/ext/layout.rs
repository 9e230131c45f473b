//! The places that the superblock and the group descriptors fix: superblocks, descriptors, bitmaps,
//! inode tables.

use super::{
    space::{Kind, Space, Use},
    superblock::Superblock,
};
use crate::Structure;
use crate::bytes::le32;

/// What a group descriptor says of where things are. Format: Linux `fs/ext4/ext4.h`, struct
/// `ext4_group_desc`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Group {
    /// Block of the block bitmap.
    pub block_bitmap: u64,
    /// Block of the inode bitmap.
    pub inode_bitmap: u64,
    /// First block of the inode table.
    pub inode_table: u64,
}

impl Group {
    /// From a descriptor's bytes.
    pub fn parse(bytes: &[u8]) -> Group {
        let block = |low: usize, high: usize| {
            let high = if bytes.len() >= 64 {
                le32(bytes, high)
            } else {
                0
            };
            u64::from(high) << 32 | u64::from(le32(bytes, low))
        };
        Group {
            block_bitmap: block(0, 32),
            inode_bitmap: block(4, 36),
            inode_table: block(8, 40),
        }
    }

    fn place(&self, space: &mut Space, superblock: &Superblock, number: u64) {
        let first_inode = (number * u64::from(superblock.inodes_per_group)).saturating_add(1);
        let blocks = superblock.inode_table_blocks();
        let places = [
            (self.block_bitmap, 1, Structure::BlockBitmap, 0),
            (self.inode_bitmap, 1, Structure::InodeBitmap, 0),
            (self.inode_table, blocks, Structure::InodeTable, first_inode),
        ];
        for (start, length, structure, inode) in places {
            if start > superblock.first_data_block
                && start.saturating_add(length) <= superblock.blocks
            {
                fix(space, start, length, structure, inode as u32);
            }
        }
    }
}

fn fix(space: &mut Space, start: u64, length: u64, structure: Structure, inode: u32) {
    let kind = Kind::Fixed(structure);
    space.set(
        start,
        length,
        Use {
            kind,
            inode,
            node: 0,
        },
    );
}

/// Where the primary copy of group descriptor block `number` lies (`ext4_get_group_desc`,
/// `descriptor_loc`).
pub fn descriptor_block(superblock: &Superblock, number: u64) -> u64 {
    if number < superblock.classic_descriptor_blocks() {
        return superblock.primary_block().max(superblock.first_data_block) + 1 + number;
    }
    let group = number * superblock.descriptors_per_block();
    superblock.group_start(group)
        + u64::from(superblock.group_has_super(group))
        + u64::from(group == 0 && superblock.primary_block() > superblock.first_data_block)
}

/// Mark the places that follow from the superblock alone.
pub fn place_superblocks(space: &mut Space, superblock: &Superblock) {
    let primary = superblock.primary_block();
    if primary > 0 {
        fix(space, 0, primary, Structure::Unused, 0); // the boot block
    }
    let classic = superblock.classic_descriptor_blocks();
    let per_block = superblock.descriptors_per_block();
    for group in 0..superblock.groups() {
        let mut at = superblock.group_start(group);
        if group == 0 {
            at = at.max(primary);
        }
        if superblock.group_has_super(group) {
            let structure = if group == 0 {
                Structure::Superblock
            } else {
                Structure::SuperblockBackup
            };
            fix(space, at, 1, structure, 0);
            let descriptors = classic + superblock.reserved_gdt_blocks;
            let end = (at + 1).saturating_add(descriptors).min(superblock.blocks);
            fix(
                space,
                at + 1,
                end.saturating_sub(at + 1),
                Structure::GroupDescriptors,
                0,
            );
            at += 1;
        }
        // Each descriptor block of meta_bg lies in the first, second and last group of those that
        // it describes.
        let within = group % per_block;
        if group / per_block >= classic
            && (within < 2 || within == per_block - 1)
            && at < superblock.blocks
        {
            fix(space, at, 1, Structure::GroupDescriptors, 0);
        }
    }
    if superblock.mmp_block > 0 && superblock.mmp_block < superblock.blocks {
        fix(space, superblock.mmp_block, 1, Structure::Mmp, 0);
    }
}

/// The groups as far as they are known, and the blocks of their descriptors.
#[derive(Debug, Default)]
pub struct Groups {
    groups: Vec<Group>,
}

impl Groups {
    /// Read the descriptors that block `number` of them holds, and mark the places that are new.
    pub fn update(
        &mut self,
        space: &mut Space,
        superblock: &Superblock,
        number: u64,
        block: &[u8],
    ) {
        let first = number * superblock.descriptors_per_block();
        let size = superblock.descriptor_bytes as usize;
        for (group, bytes) in (first..superblock.groups()).zip(block.chunks_exact(size)) {
            let index = group as usize;
            if self.groups.len() <= index {
                self.groups.resize(index + 1, Group::default());
            }
            let new = Group::parse(bytes);
            if let Some(old) = self.groups.get_mut(index) {
                let moved = new != *old;
                *old = new;
                if moved {
                    new.place(space, superblock, group);
                }
            }
        }
    }

    /// Each group, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter()
    }
}
