//! The superblock: geometry and features. Format: Linux `fs/ext4/ext4.h`, struct
//! `ext4_super_block`.

use crate::bytes::{le16, le32, uuid};
use std::ops::Range;

/// Offset of the primary superblock, in bytes.
pub const AT: u64 = 1024;
/// Bytes of a superblock.
pub const BYTES: usize = 1024;

/// Text fields: the label, the path of the last mount, the mount options.
pub const TEXTS: [Range<usize>; 3] = [0x78..0x88, 0x88..0xC8, 0x200..0x240];
/// Text fields of the block for multiple mount protection (`struct mmp_struct`): the node and the
/// device that use the file system.
pub const MMP_TEXTS: [Range<usize>; 2] = [0x10..0x50, 0x50..0x70];
/// Offset of the checksum in a superblock and in an MMP block; it covers everything before it.
pub const CHECKSUM_AT: usize = 0x3FC;

const MAGIC: u16 = 0xEF53;
const COMPAT_HAS_JOURNAL: u32 = 0x4;
const COMPAT_SPARSE_SUPER2: u32 = 0x200;
const COMPAT_ORPHAN_FILE: u32 = 0x1000;
const INCOMPAT_FILETYPE: u32 = 0x2;
const INCOMPAT_JOURNAL_DEV: u32 = 0x8;
const INCOMPAT_META_BG: u32 = 0x10;
const INCOMPAT_64BIT: u32 = 0x80;
const INCOMPAT_MMP: u32 = 0x100;
const INCOMPAT_EA_INODE: u32 = 0x400;
const RO_SPARSE_SUPER: u32 = 0x1;
const RO_METADATA_CSUM: u32 = 0x400;

/// Largest disk of a recording: 2 TiB.
const MAX_BYTES: u64 = 1 << 41;
/// Largest number of groups: 2 TiB with 1 KiB blocks, in groups of a quarter of the usual size.
const MAX_GROUPS: u64 = 1 << 20;

/// Layout of the file system according to its superblock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// Bytes of a block, a power of two from 1 KiB to 64 KiB.
    pub block_bytes: u32,
    /// Blocks of the file system.
    pub blocks: u64,
    /// First data block: 1 for blocks of 1 KiB (not clustered), otherwise 0.
    pub first_data_block: u64,
    /// Blocks of a group; never 0.
    pub blocks_per_group: u64,
    /// Inodes of a group; never 0.
    pub inodes_per_group: u32,
    /// Number of all inodes.
    pub inodes: u32,
    /// Bytes of an inode in the table, a power of two from 128 to the block size.
    pub inode_bytes: u32,
    /// Bytes of a group descriptor: 32, or at least 64.
    pub descriptor_bytes: u32,
    /// Blocks reserved after the group descriptors for additional descriptors.
    pub reserved_gdt_blocks: u64,
    /// First group of descriptor blocks that lie in their own groups (`meta_bg`).
    pub first_meta_bg: u64,
    /// Groups that hold copies of the superblock, with `sparse_super2`.
    pub backup_groups: [u32; 2],
    /// Inode of the journal, or 0.
    pub journal_inode: u32,
    /// UUID of the external journal.
    pub journal_uuid: [u8; 16],
    /// UUID of the file system, or of the external journal itself.
    pub uuid: [u8; 16],
    /// Quota files of users, groups, projects; 0 for none.
    pub quota_inodes: [u32; 3],
    /// Inode of the orphan file, or 0.
    pub orphan_inode: u32,
    /// Block for multiple mount protection, or 0.
    pub mmp_block: u64,
    compat: u32,
    incompat: u32,
    ro_compat: u32,
}

/// Returns whether these bytes have the magic number of a superblock.
pub fn has_magic(bytes: &[u8]) -> bool {
    bytes.len() >= BYTES && le16(bytes, 0x38) == MAGIC
}

impl Superblock {
    /// Parses the bytes at [`AT`]; `None` if they are not a superblock or its numbers make no
    /// sense. The file system may be larger than the known size of the disk: an imported log does
    /// not state that size, and the last block need not be written.
    pub fn parse(bytes: &[u8]) -> Option<Superblock> {
        if !has_magic(bytes) {
            return None;
        }
        let incompat = le32(bytes, 0x60);
        let compat = le32(bytes, 0x5C);
        let old = le32(bytes, 0x4C) == 0;
        let wide = incompat & INCOMPAT_64BIT != 0;
        let high = if wide { le32(bytes, 0x150) } else { 0 };
        let inode_bytes = if old { 128 } else { le16(bytes, 0x58) };
        let descriptor_bytes = if wide { le16(bytes, 0xFE) } else { 32 };
        let block_bytes = 1024u32.checked_shl(le32(bytes, 0x18)).unwrap_or(0);
        let has = |set: bool, value: u32| if set { value } else { 0 };
        let found = Superblock {
            block_bytes,
            blocks: u64::from(high) << 32 | u64::from(le32(bytes, 4)),
            first_data_block: u64::from(le32(bytes, 0x14)),
            blocks_per_group: u64::from(le32(bytes, 0x20)),
            inodes_per_group: le32(bytes, 0x28),
            inodes: le32(bytes, 0),
            inode_bytes: inode_bytes.into(),
            descriptor_bytes: descriptor_bytes.into(),
            reserved_gdt_blocks: u64::from(le16(bytes, 0xCE)),
            first_meta_bg: u64::from(le32(bytes, 0x104)),
            backup_groups: [le32(bytes, 0x24C), le32(bytes, 0x250)],
            journal_inode: has(compat & COMPAT_HAS_JOURNAL != 0, le32(bytes, 0xE0)),
            journal_uuid: uuid(bytes, 0xD0),
            uuid: uuid(bytes, 0x68),
            quota_inodes: [0x240, 0x244, 0x26C].map(|at| le32(bytes, at)),
            orphan_inode: has(compat & COMPAT_ORPHAN_FILE != 0, le32(bytes, 0x280)),
            mmp_block: u64::from(has(incompat & INCOMPAT_MMP != 0, le32(bytes, 0x168))),
            compat,
            incompat,
            ro_compat: le32(bytes, 0x64),
        };
        found.makes_sense().then_some(found)
    }

    fn makes_sense(&self) -> bool {
        let size = u64::from(self.block_bytes);
        let bytes = self.blocks.checked_mul(size);
        let shape = (1024..=65536).contains(&self.block_bytes)
            && bytes.is_some_and(|bytes| bytes <= MAX_BYTES);
        if self.is_journal_device() {
            return shape;
        }
        shape
            && self.first_data_block <= 1
            && self.first_data_block < self.blocks
            && self.blocks_per_group > 0
            && self.inodes_per_group > 0
            && self.groups() <= MAX_GROUPS
            && self.inode_bytes.is_power_of_two()
            && (128..=self.block_bytes).contains(&self.inode_bytes)
            && (32..=1024).contains(&self.descriptor_bytes)
            && u64::from(self.inodes_per_group) <= 8 * size
    }

    /// Returns whether this can be a later version of `old`: a file system can grow, but its units
    /// never change.
    pub fn may_follow(&self, old: &Superblock) -> bool {
        let units = |s: &Superblock| {
            let bytes = (s.block_bytes, s.inode_bytes, s.descriptor_bytes);
            (bytes, s.blocks_per_group, s.inodes_per_group)
        };
        self != old && !self.is_journal_device() && units(self) == units(old)
    }

    /// Returns whether this is an external journal and nothing else.
    pub fn is_journal_device(&self) -> bool {
        self.incompat & INCOMPAT_JOURNAL_DEV != 0
    }

    /// Returns whether the file system has a journal, internal or external.
    pub fn has_journal(&self) -> bool {
        self.compat & COMPAT_HAS_JOURNAL != 0
    }

    /// Returns whether directory entries contain the file type.
    pub fn has_file_types(&self) -> bool {
        self.incompat & INCOMPAT_FILETYPE != 0
    }

    /// Returns whether metadata carries checksums.
    pub fn has_checksums(&self) -> bool {
        self.ro_compat & RO_METADATA_CSUM != 0
    }

    /// Returns whether large attributes have inodes of their own.
    pub fn has_value_inodes(&self) -> bool {
        self.incompat & INCOMPAT_EA_INODE != 0
    }

    /// Number of block groups.
    pub fn groups(&self) -> u64 {
        (self.blocks.saturating_sub(self.first_data_block)).div_ceil(self.blocks_per_group.max(1))
    }

    /// First block of `group`.
    pub fn group_start(&self, group: u64) -> u64 {
        self.first_data_block + group * self.blocks_per_group
    }

    /// Block of the primary superblock; copies lie at the start of their groups.
    pub fn primary_block(&self) -> u64 {
        AT / u64::from(self.block_bytes)
    }

    /// Number of group descriptors in one block.
    pub fn descriptors_per_block(&self) -> u64 {
        u64::from(self.block_bytes / self.descriptor_bytes.max(1)).max(1)
    }

    /// Number of blocks of group descriptors.
    pub fn descriptor_blocks(&self) -> u64 {
        self.groups().div_ceil(self.descriptors_per_block())
    }

    /// Number of blocks of each group's inode table.
    pub fn inode_table_blocks(&self) -> u64 {
        (u64::from(self.inodes_per_group) * u64::from(self.inode_bytes))
            .div_ceil(u64::from(self.block_bytes))
    }

    /// Returns whether `group` begins with a superblock (`ext4_bg_has_super`).
    pub fn group_has_super(&self, group: u64) -> bool {
        if group == 0 {
            return true;
        }
        if self.compat & COMPAT_SPARSE_SUPER2 != 0 {
            return self.backup_groups.iter().any(|&g| u64::from(g) == group);
        }
        let power_of = |base: u64| base.pow(group.ilog(base)) == group;
        group == 1 || self.ro_compat & RO_SPARSE_SUPER == 0 || [3, 5, 7].into_iter().any(power_of)
    }

    /// Returns the first descriptor block that `meta_bg` places in its own groups. All descriptor
    /// blocks before it follow the superblock.
    pub fn classic_descriptor_blocks(&self) -> u64 {
        if self.incompat & INCOMPAT_META_BG != 0 {
            self.first_meta_bg.min(self.descriptor_blocks())
        } else {
            self.descriptor_blocks()
        }
    }
}

/// Superblock of an 8 MiB ext2 file system with 1 KiB blocks.
#[cfg(test)]
pub fn example() -> Superblock {
    let mut bytes = [0; BYTES];
    let fields = [
        (0, 2048),
        (4, 8192),
        (0x14, 1),
        (0x20, 8192),
        (0x28, 2048),
        (0x38, 0xEF53),
    ];
    for (at, value) in fields {
        bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
    }
    Superblock::parse(&bytes).unwrap()
}
