//! Metadata blocks, identified by their own headers. A v5 block carries a magic number, its own
//! address and the file system's UUID; data is very unlikely to contain all three by chance
//! (fs/xfs/libxfs/xfs_format.h, xfs_da_format.h).

use super::superblock::{BASIC_BLOCK, Geometry};
use crate::bytes::{array, be16, be32 as be32_or_0, checked::be32, checked::be64, fingerprint};
use std::ops::Range;

/// Kind of a metadata block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The superblock.
    Superblock,
    /// A copy of the superblock, in another group.
    SuperblockBackup,
    /// Free space of a group (AGF).
    Agf,
    /// Inodes of a group (AGI).
    Agi,
    /// Free blocks for the trees of a group (AGFL).
    Agfl,
    /// A tree of free space, by location or by length.
    FreeSpaceBtree,
    /// The tree of inodes.
    InodeBtree,
    /// The tree of free inodes.
    FreeInodeBtree,
    /// The tree of block owners.
    RmapBtree,
    /// The tree of shared blocks.
    RefcountBtree,
    /// A tree of a file's extents.
    ExtentMap,
    /// Names of a directory; a small directory has their hashes in the same block.
    Directory,
    /// Free space in the blocks with a directory's names.
    DirectoryFree,
    /// Hashes of a directory's names, and free space in the blocks with the names.
    DirectoryLeaf,
    /// Hashes of a directory's names, in a leaf below nodes.
    DirectoryLeafBelow,
    /// A node of a tree of hashes, for a directory or for attributes: the owner's forks decide
    /// Interior node of a directory's hash tree. [`by_magic`] also returns it for nodes of
    /// attributes, which have the same magic number.
    HashNode,
    /// Interior node of the hash tree of an inode's attributes.
    XattrNode,
    /// Attributes.
    XattrLeaf,
    /// The value of a large attribute.
    XattrValue,
    /// The target of a long symbolic link.
    Symlink,
}

/// A metadata block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Kind of the block.
    pub kind: Kind,
    /// Inode that owns the block, or 0.
    pub owner: u64,
    /// Offset and length of the log sequence number and of the checksum, which change with every
    /// write.
    volatile: [(usize, usize); 2],
}

/// A magic number at its place. Every written block is compared with each of them.
enum Magic {
    /// Magic number in the first bytes.
    First([u8; 4]),
    /// Magic number from byte 8 on.
    Ninth([u8; 2]),
}

/// Offsets of address, UUID, owner, LSN and checksum in a header.
struct Header {
    address: usize,
    uuid: usize,
    owner: Option<usize>,
    lsn: usize,
    crc: usize,
}

const SHORT_TREE: Header = Header {
    address: 16,
    uuid: 32,
    owner: None,
    lsn: 24,
    crc: 52,
};
const LONG_TREE: Header = Header {
    address: 24,
    uuid: 40,
    owner: Some(56),
    lsn: 32,
    crc: 64,
};
const DIRECTORY: Header = Header {
    address: 8,
    uuid: 24,
    owner: Some(40),
    lsn: 16,
    crc: 4,
};
const HASHED: Header = Header {
    address: 16,
    uuid: 32,
    owner: Some(48),
    lsn: 24,
    crc: 12,
};
const REMOTE: Header = Header {
    address: 40,
    uuid: 16,
    owner: Some(32),
    lsn: 48,
    crc: 12,
};

const KINDS: [(Magic, Kind, Header); 16] = [
    (Magic::First(*b"AB3B"), Kind::FreeSpaceBtree, SHORT_TREE),
    (Magic::First(*b"AB3C"), Kind::FreeSpaceBtree, SHORT_TREE),
    (Magic::First(*b"IAB3"), Kind::InodeBtree, SHORT_TREE),
    (Magic::First(*b"FIB3"), Kind::FreeInodeBtree, SHORT_TREE),
    (Magic::First(*b"RMB3"), Kind::RmapBtree, SHORT_TREE),
    (Magic::First(*b"R3FC"), Kind::RefcountBtree, SHORT_TREE),
    (Magic::First(*b"BMA3"), Kind::ExtentMap, LONG_TREE),
    (Magic::First(*b"XDB3"), Kind::Directory, DIRECTORY),
    (Magic::First(*b"XDD3"), Kind::Directory, DIRECTORY),
    (Magic::First(*b"XDF3"), Kind::DirectoryFree, DIRECTORY),
    (Magic::Ninth([0x3d, 0xf1]), Kind::DirectoryLeaf, HASHED),
    (Magic::Ninth([0x3d, 0xff]), Kind::DirectoryLeafBelow, HASHED),
    (Magic::Ninth([0x3e, 0xbe]), Kind::HashNode, HASHED),
    (Magic::Ninth([0x3b, 0xee]), Kind::XattrLeaf, HASHED),
    (Magic::First(*b"XARM"), Kind::XattrValue, REMOTE),
    (Magic::First(*b"XSLM"), Kind::Symlink, REMOTE),
];

/// Headers at the start of an allocation group: magic number, kind, and the offsets of LSN and
/// checksum. The index of each is the number of its sector in the group.
const GROUP_HEADERS: [(&[u8; 4], Kind, usize, usize); 4] = [
    (b"XFSB", Kind::Superblock, 240, 224),
    (b"XAGF", Kind::Agf, 208, 216),
    (b"XAGI", Kind::Agi, 320, 312),
    (b"XAFL", Kind::Agfl, 24, 32),
];

/// Identifies the block at byte `offset` from its own header.
pub fn identify(geometry: &Geometry, offset: u64, content: &[u8]) -> Option<Block> {
    let address = offset / BASIC_BLOCK;
    let (first, ninth) = (array(content, 0), array(content, 8));
    let (_, kind, header) = KINDS.iter().find(|(magic, _, header)| {
        magic.is(first, ninth)
            && be64(content, header.address) == Some(address)
            && array(content, header.uuid) == Some(geometry.uuid)
    })?;
    let kind = match kind {
        Kind::HashNode if !is_directory_node(geometry, content) => Kind::XattrNode,
        kind => *kind,
    };
    Some(Block {
        kind,
        owner: header.owner.and_then(|at| be64(content, at)).unwrap_or(0),
        volatile: [(header.lsn, 8), (header.crc, 4)],
    })
}

/// Returns whether a node of a hash tree belongs to a directory: its children then follow the names
/// in the directory's file. Attributes are numbered from 0.
fn is_directory_node(geometry: &Geometry, node: &[u8]) -> bool {
    let first_child = be32(node, DIRECTORY_AT + 4).unwrap_or(0);
    u64::from(first_child) * geometry.block_bytes >= LEAVES_AT
}

impl Magic {
    #[inline]
    fn is(&self, first: Option<[u8; 4]>, ninth: Option<[u8; 2]>) -> bool {
        match self {
            Magic::First(magic) => first == Some(*magic),
            Magic::Ninth(magic) => ninth == Some(*magic),
        }
    }
}

/// Identifies a block by its magic number alone, at any place, and locates its checksum.
pub fn by_magic(content: &[u8]) -> Option<(Kind, usize)> {
    let (first, ninth) = (array(content, 0), array(content, 8));
    let mut group_headers = GROUP_HEADERS.iter();
    if let Some(&(_, kind, _, crc)) = group_headers.find(|(magic, ..)| first == Some(**magic)) {
        return Some((kind, crc));
    }
    let mut kinds = KINDS.iter();
    let (_, kind, header) = kinds.find(|(magic, ..)| magic.is(first, ninth))?;
    Some((*kind, header.crc))
}

/// Returns whether an inode may begin here, by its magic number alone.
pub fn begins_inode(content: &[u8]) -> bool {
    content.starts_with(b"IN")
}

/// Returns whether the slot at `offset` holds the inode that belongs there, and so is in an inode
/// block.
pub fn is_inode(geometry: &Geometry, offset: u64, slot: &[u8]) -> bool {
    begins_inode(slot)
        && slot.get(4) == Some(&3)
        && be64(slot, 152) == Some(geometry.inode_at(offset))
        && array(slot, 160) == Some(geometry.uuid)
}

/// Returns whether these bytes are a block of quota accounts (`xfs_dqblk`).
pub fn is_quota(geometry: &Geometry, content: &[u8]) -> bool {
    begins_quota(content) && array(content, 120) == Some(geometry.uuid)
}

/// Returns whether a quota account may begin here, by its magic number alone.
pub fn begins_quota(content: &[u8]) -> bool {
    content.starts_with(b"DQ")
}

/// Identifies the header at the start of an allocation group, by its sector.
pub fn group_header(geometry: &Geometry, offset: u64, content: &[u8]) -> Option<Block> {
    let (group, sector) = geometry.header_sector(offset)?;
    let &(magic, kind, lsn, crc) = GROUP_HEADERS.get(usize::try_from(sector).ok()?)?;
    if content.get(..4)? != magic {
        return None;
    }
    // xfs_agf, xfs_agi, xfs_agfl: the group number in the header ties it to its place.
    let number = match kind {
        Kind::Superblock => Some(group),
        Kind::Agfl => be32(content, 4).map(u64::from),
        _ => be32(content, 8).map(u64::from),
    };
    (number == Some(group)).then_some(Block {
        kind: match (kind, group) {
            (Kind::Superblock, 1..) => Kind::SuperblockBackup,
            _ => kind,
        },
        owner: 0,
        volatile: [(lsn, 8), (crc, 4)],
    })
}

impl Block {
    /// Log sequence number, from the block's content, of the checkpoint that last changed the
    /// block. Blocks that are not logged have none.
    pub fn sequence(&self, content: &[u8]) -> Option<u64> {
        be64(content, self.volatile[0].0).filter(|&lsn| lsn != 0 && lsn != u64::MAX)
    }

    /// Fingerprint of the content without the fields that change with every write.
    pub fn fingerprint(&self, content: &[u8]) -> u32 {
        let mut ranges = self.volatile;
        ranges.sort_unstable();
        let mut at = 0;
        let skipped = ranges.into_iter().chain([(content.len(), 0)]);
        fingerprint(skipped.map(|(skip, length)| {
            let part = content.get(at..skip).unwrap_or_default();
            at = skip + length;
            part
        }))
    }
}

/// Ends of headers: of trees within a group, of extent trees, and of directories and hashes.
const SHORT_TREE_AT: usize = 56;
const EXTENTS_AT: usize = 72;
pub(super) const DIRECTORY_AT: usize = 64;
/// Offset of the leaves in a directory's file (`XFS_DIR2_LEAF_OFFSET`).
pub const LEAVES_AT: u64 = 32 << 30;
/// Start of the content of a remote block.
pub const REMOTE_AT: usize = 56;

/// Range of the target in the block of a long symbolic link.
pub fn target(block: &[u8]) -> Range<usize> {
    let length = be32_or_0(block, 8) as usize;
    let end = length.saturating_add(REMOTE_AT).min(block.len());
    REMOTE_AT.min(end)..end
}

/// Ranges of a block that no record, key, pointer or hash uses, for kinds with no other content.
/// The ranges may hold stale content.
pub fn unused(kind: Kind, block: &[u8]) -> [Range<usize>; 2] {
    let tree = |first, record, key, pointer| {
        let count = usize::from(be16(block, 6));
        match be16(block, 4) {
            0 => [first + record * count..block.len(), 0..0],
            _ => unused_pointers(block.len(), first, (key, pointer), count),
        }
    };
    let hashes = DIRECTORY_AT + 8 * usize::from(be16(block, 56));
    let numbers = |at| (be32_or_0(block, at) as usize).saturating_mul(2);
    let [first, second] = match kind {
        Kind::FreeSpaceBtree => tree(SHORT_TREE_AT, 8, 8, 4),
        Kind::InodeBtree | Kind::FreeInodeBtree => tree(SHORT_TREE_AT, 16, 4, 4),
        Kind::RmapBtree => tree(SHORT_TREE_AT, 24, 40, 4),
        Kind::RefcountBtree => tree(SHORT_TREE_AT, 12, 4, 4),
        Kind::ExtentMap => tree(EXTENTS_AT, 16, 8, 8),
        Kind::DirectoryFree => [DIRECTORY_AT.saturating_add(numbers(52))..block.len(), 0..0],
        // Counts of free space are at the end of the block.
        Kind::DirectoryLeaf => {
            let counts = numbers(block.len().saturating_sub(4)).saturating_add(4);
            [hashes..block.len().saturating_sub(counts), 0..0]
        }
        Kind::DirectoryLeafBelow | Kind::HashNode | Kind::XattrNode => [hashes..block.len(), 0..0],
        _ => [0..0, 0..0],
    };
    [first, second].map(|range| range.start.min(range.end)..range.end)
}

/// Unused ranges after the keys and after the pointers of a node of this size. The pointers follow
/// the space for all keys.
pub(super) fn unused_pointers(
    bytes: usize,
    first: usize,
    (key, pointer): (usize, usize),
    count: usize,
) -> [Range<usize>; 2] {
    let most = bytes.saturating_sub(first) / (key + pointer);
    let pointers = (first + most * key).min(bytes);
    let keys_end = (first + count * key).min(pointers);
    let pointers_end = (pointers + count * pointer).min(bytes);
    [keys_end..pointers, pointers_end..bytes]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_known_by_its_magic_number() {
        let mut block = vec![0; 4096];
        assert_eq!(by_magic(&block), None);
        block[..4].copy_from_slice(b"XAGI");
        assert_eq!(by_magic(&block), Some((Kind::Agi, 312)));
        block[..4].fill(0);
        block[8..10].copy_from_slice(&[0x3b, 0xee]);
        assert_eq!(by_magic(&block), Some((Kind::XattrLeaf, 12)));
        assert_eq!(by_magic(&block[..9]), None);
    }

    #[test]
    fn unused_space_is_between_keys_and_pointers_and_behind_both() {
        let mut block = vec![0; 4096];
        // Two extents in a leaf.
        block[7] = 2;
        let unused_of = |block: &[u8]| unused(Kind::ExtentMap, block);
        assert_eq!(unused_of(&block), [72 + 32..4096, 0..0]);
        // A node has space for 251 keys.
        block[5] = 1;
        let pointers = 72 + 251 * 8;
        assert_eq!(unused_of(&block), [72 + 16..pointers, pointers + 16..4096]);
        block[6..8].fill(0xff);
        let [keys, rest] = unused_of(&block);
        assert!(keys.is_empty() && rest.is_empty());
        // A leaf of a directory, with three hashes, and the counts of five blocks at its end.
        (block[57], block[4095]) = (3, 5);
        let [free, _] = unused(Kind::DirectoryLeaf, &block);
        assert_eq!(free, 64 + 24..4096 - 14);
    }
}
