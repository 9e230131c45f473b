//! The superblock: geometry and features. Format: Linux `fs/ext4/ext4.h`, struct
//! `ext4_super_block`.

use crate::bytes::{le16, le32, uuid};

/// Where the primary superblock lies on the disk, and its length.
pub const AT: u64 = 1024;
/// Bytes of a superblock.
pub const BYTES: usize = 1024;

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

/// The largest disk of a recording: 2 TiB.
const MAX_BYTES: u64 = 1 << 41;
/// The largest number of groups: 2 TiB with 1 KiB blocks, in groups a quarter of the usual size.
const MAX_GROUPS: u64 = 1 << 20;

/// What a superblock says of the file system's shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// Bytes of a block: a power of two from 1 KiB to 64 KiB.
    pub block_bytes: u32,
    /// Blocks of the file system.
    pub blocks: u64,
    /// 1 where a block is 1 KiB (and not clustered), else 0.
    pub first_data_block: u64,
    /// Never 0.
    pub blocks_per_group: u64,
    /// Never 0.
    pub inodes_per_group: u32,
    /// All inodes.
    pub inodes: u32,
    /// Bytes of an inode in the table: a power of two from 128 to the block's size.
    pub inode_bytes: u32,
    /// Bytes of a group descriptor: 32, or 64 and more.
    pub descriptor_bytes: u32,
    /// Blocks kept after the group descriptors for more of them.
    pub reserved_gdt_blocks: u64,
    /// The first group of descriptor blocks that lie in their own groups (`meta_bg`).
    pub first_meta_bg: u64,
    /// Groups that hold copies of the superblock, with `sparse_super2`.
    pub backup_groups: [u32; 2],
    /// The journal's inode, or 0.
    pub journal_inode: u32,
    /// The external journal's UUID.
    pub journal_uuid: [u8; 16],
    /// The file system's own UUID (of an external journal: its own).
    pub uuid: [u8; 16],
    /// Quota files of users, groups, projects; 0 for none.
    pub quota_inodes: [u32; 3],
    /// The orphan file, or 0.
    pub orphan_inode: u32,
    /// The block of multiple mount protection, or 0.
    pub mmp_block: u64,
    compat: u32,
    incompat: u32,
    ro_compat: u32,
}

impl Superblock {
    /// From the bytes at [`AT`]; `None` if they are not one, or its numbers make no sense. It may
    /// be larger than what is known of
    /// the disk: an imported log does not say how large that was, and the last block need not be
    /// written.
    pub fn parse(bytes: &[u8]) -> Option<Superblock> {
        if bytes.len() < BYTES || le16(bytes, 0x38) != MAGIC {
            return None;
        }
        let incompat = le32(bytes, 0x60);
        let compat = le32(bytes, 0x5C);
        let old = le32(bytes, 0x4C) == 0;
        let wide = incompat & INCOMPAT_64BIT != 0;
        let high = if wide { le32(bytes, 0x150) } else { 0 };
        let block_bytes = 1024u32.checked_shl(le32(bytes, 0x18)).unwrap_or(0);
        let has = |set: bool, value: u32| if set { value } else { 0 };
        let found = Superblock {
            block_bytes,
            blocks: u64::from(high) << 32 | u64::from(le32(bytes, 4)),
            first_data_block: u64::from(le32(bytes, 0x14)),
            blocks_per_group: u64::from(le32(bytes, 0x20)),
            inodes_per_group: le32(bytes, 0x28),
            inodes: le32(bytes, 0),
            inode_bytes: if old {
                128
            } else {
                u32::from(le16(bytes, 0x58))
            },
            descriptor_bytes: if wide {
                u32::from(le16(bytes, 0xFE))
            } else {
                32
            },
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
        let shape = (1024..=65536).contains(&self.block_bytes)
            && self
                .blocks
                .checked_mul(size)
                .is_some_and(|b| b <= MAX_BYTES);
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

    /// Whether this can be what `old` has become: a file system grows, it does not change its
    /// units.
    pub fn may_follow(&self, old: &Superblock) -> bool {
        let units = |s: &Superblock| {
            let bytes = (s.block_bytes, s.inode_bytes, s.descriptor_bytes);
            (bytes, s.blocks_per_group, s.inodes_per_group)
        };
        self != old && !self.is_journal_device() && units(self) == units(old)
    }

    /// Whether this is an external journal, and nothing else.
    pub fn is_journal_device(&self) -> bool {
        self.incompat & INCOMPAT_JOURNAL_DEV != 0
    }

    /// Whether there is a journal, internal or external.
    pub fn has_journal(&self) -> bool {
        self.compat & COMPAT_HAS_JOURNAL != 0
    }

    /// Whether directory entries hold the type of the file.
    pub fn has_file_types(&self) -> bool {
        self.incompat & INCOMPAT_FILETYPE != 0
    }

    /// Whether large attributes have inodes of their own.
    pub fn has_value_inodes(&self) -> bool {
        self.incompat & INCOMPAT_EA_INODE != 0
    }

    /// Block groups.
    pub fn groups(&self) -> u64 {
        (self.blocks.saturating_sub(self.first_data_block)).div_ceil(self.blocks_per_group.max(1))
    }

    /// The first block of `group`.
    pub fn group_start(&self, group: u64) -> u64 {
        self.first_data_block + group * self.blocks_per_group
    }

    /// Where the primary superblock's block is; copies lie at the start of their groups.
    pub fn primary_block(&self) -> u64 {
        AT / u64::from(self.block_bytes)
    }

    /// Group descriptors in one block.
    pub fn descriptors_per_block(&self) -> u64 {
        u64::from(self.block_bytes / self.descriptor_bytes).max(1)
    }

    /// Blocks of group descriptors.
    pub fn descriptor_blocks(&self) -> u64 {
        self.groups().div_ceil(self.descriptors_per_block())
    }

    /// Blocks of the inode table of each group.
    pub fn inode_table_blocks(&self) -> u64 {
        (u64::from(self.inodes_per_group) * u64::from(self.inode_bytes))
            .div_ceil(u64::from(self.block_bytes))
    }

    /// Whether `group` begins with a superblock (`ext4_bg_has_super`).
    pub fn group_has_super(&self, group: u64) -> bool {
        if group == 0 {
            return true;
        }
        if self.compat & COMPAT_SPARSE_SUPER2 != 0 {
            return self.backup_groups.iter().any(|&g| u64::from(g) == group);
        }
        let power_of = |base: u64| {
            let mut power = base;
            while power < group {
                power *= base;
            }
            power == group
        };
        group == 1 || self.ro_compat & RO_SPARSE_SUPER == 0 || [3, 5, 7].into_iter().any(power_of)
    }

    /// The first descriptor block that `meta_bg` places in its own groups; all before it follow the
    /// superblock.
    pub fn classic_descriptor_blocks(&self) -> u64 {
        if self.incompat & INCOMPAT_META_BG != 0 {
            self.first_meta_bg.min(self.descriptor_blocks())
        } else {
            self.descriptor_blocks()
        }
    }
}
