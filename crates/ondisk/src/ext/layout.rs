//! Purposes of blocks: fixed by the superblock and group descriptors, or mapped by inodes.

use super::superblock::Superblock;
use crate::bytes::le32;

/// Structure at a fixed place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// Space before the superblock.
    Boot,
    /// The superblock.
    Superblock,
    /// A backup copy of the superblock.
    SuperblockBackup,
    /// Group descriptors, copies included.
    GroupDescriptors,
    /// Bitmap of used blocks in a group.
    BlockBitmap,
    /// Bitmap of used inodes in a group.
    InodeBitmap,
    /// Inodes of a group.
    InodeTable,
    /// Block for multiple mount protection (MMP).
    Mmp,
}

/// Content of the blocks that an inode maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// Bytes of a file.
    Data,
    /// Directory entries.
    Directory,
    /// The target of a long symbolic link.
    Symlink,
    /// Quota accounts.
    Quota,
    /// The orphan file.
    Orphan,
    /// The journal.
    Journal,
    /// Values of large extended attributes (`ea_inode`).
    Xattr,
}

/// Purpose of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Structure at a place that the superblock and the group descriptors define.
    Fixed(Area),
    /// Content mapped by an inode.
    Content(Content),
    /// Node of an extent tree that maps this content.
    Extents(Content),
    /// Block of pointers, this many levels above the content.
    Pointers(u8, Content),
    /// A block of extended attributes.
    Xattr,
}

impl Kind {
    /// Returns whether the block maps others.
    pub fn is_node(self) -> bool {
        matches!(self, Kind::Extents(_) | Kind::Pointers(..))
    }

    /// Returns whether versions of the block are kept, to find changes.
    pub fn is_metadata(self) -> bool {
        !matches!(
            self,
            Kind::Content(Content::Data | Content::Journal)
                | Kind::Fixed(Area::Boot | Area::SuperblockBackup)
        )
    }
}

/// A run of blocks at a fixed place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The first block.
    pub start: u64,
    /// Number of blocks.
    pub length: u64,
    /// Structure of these blocks.
    pub area: Area,
    /// First inode of an inode table; 0 for other areas.
    pub inode: u32,
}

impl Place {
    fn new(start: u64, length: u64, area: Area) -> Place {
        Place {
            start,
            length,
            area,
            inode: 0,
        }
    }
}

/// Locations in a group descriptor. Format: Linux `fs/ext4/ext4.h`, struct `ext4_group_desc`.
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
    /// Parses a group descriptor.
    pub fn parse(bytes: &[u8]) -> Group {
        let block = |low: usize, high: usize| {
            let high = match bytes.len() {
                64.. => le32(bytes, high),
                _ => 0,
            };
            u64::from(high) << 32 | u64::from(le32(bytes, low))
        };
        Group {
            block_bitmap: block(0, 32),
            inode_bitmap: block(4, 36),
            inode_table: block(8, 40),
        }
    }

    /// Returns the places that the descriptor of group `number` defines; those outside the file
    /// system are left out.
    pub fn places(
        &self,
        superblock: &Superblock,
        number: u64,
    ) -> impl Iterator<Item = Place> + use<> {
        let first_inode = (number * u64::from(superblock.inodes_per_group)).saturating_add(1);
        let blocks = superblock.inode_table_blocks();
        let inodes = Place {
            inode: first_inode as u32,
            ..Place::new(self.inode_table, blocks, Area::InodeTable)
        };
        let places = [
            Place::new(self.block_bitmap, 1, Area::BlockBitmap),
            Place::new(self.inode_bitmap, 1, Area::InodeBitmap),
            inodes,
        ];
        let (first, end) = (superblock.first_data_block, superblock.blocks);
        let is_inside = move |place: &Place| {
            place.start > first && place.start.saturating_add(place.length) <= end
        };
        places.into_iter().filter(is_inside)
    }
}

/// Location of the primary copy of group descriptor block `number` (`ext4_get_group_desc`,
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

/// Calls `tell` for every place that follows from the superblock alone.
pub fn places(superblock: &Superblock, mut tell: impl FnMut(Place)) {
    let mut fix = |start, length, area| tell(Place::new(start, length, area));
    let primary = superblock.primary_block();
    if primary > 0 {
        fix(0, primary, Area::Boot);
    }
    let classic = superblock.classic_descriptor_blocks();
    let per_block = superblock.descriptors_per_block();
    for group in 0..superblock.groups() {
        let mut at = superblock.group_start(group);
        if group == 0 {
            at = at.max(primary);
        }
        if superblock.group_has_super(group) {
            let area = match group {
                0 => Area::Superblock,
                _ => Area::SuperblockBackup,
            };
            fix(at, 1, area);
            let descriptors = classic + superblock.reserved_gdt_blocks;
            let end = (at + 1).saturating_add(descriptors).min(superblock.blocks);
            let count = end.saturating_sub(at + 1);
            fix(at + 1, count, Area::GroupDescriptors);
            at += 1;
        }
        // Each descriptor block of meta_bg lies in the first, second and last of the groups that it
        // describes.
        let within = group % per_block;
        if group / per_block >= classic
            && (within < 2 || within == per_block - 1)
            && at < superblock.blocks
        {
            fix(at, 1, Area::GroupDescriptors);
        }
    }
    if superblock.mmp_block > 0 && superblock.mmp_block < superblock.blocks {
        fix(superblock.mmp_block, 1, Area::Mmp);
    }
}
