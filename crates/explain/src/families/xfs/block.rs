//! Metadata blocks as they name themselves: v5 blocks carry a magic number, their own address and
//! the file system's UUID, which
//! data can hardly have by chance (fs/xfs/libxfs/xfs_format.h, xfs_da_format.h).

use super::bytes::{array, be16, be32, be64, fingerprint};
use super::superblock::{BASIC_BLOCK, Geometry};
use crate::Structure;

/// A metadata block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub structure: Structure,
    /// The inode that owns it, or 0.
    pub owner: u64,
    /// Where its log sequence number and checksum are: they change with every write.
    volatile: [(usize, usize); 2],
}

/// A magic number, by its place. Every written block is compared with each of them.
enum Magic {
    /// In the first bytes.
    First([u8; 4]),
    /// From byte 8 on.
    Ninth([u8; 2]),
}

/// The header of a kind of block: magic, then where address, UUID, owner, LSN and checksum are.
struct Header {
    magic: Magic,
    structure: Structure,
    address: usize,
    uuid: usize,
    owner: Option<usize>,
    lsn: usize,
    crc: usize,
}

const fn short_tree(magic: &[u8; 4], structure: Structure) -> Header {
    Header {
        magic: Magic::First(*magic),
        structure,
        address: 16,
        uuid: 32,
        owner: None,
        lsn: 24,
        crc: 52,
    }
}

const fn directory(magic: &[u8; 4], structure: Structure) -> Header {
    Header {
        magic: Magic::First(*magic),
        structure,
        address: 8,
        uuid: 24,
        owner: Some(40),
        lsn: 16,
        crc: 4,
    }
}

const fn hashed(magic: [u8; 2], structure: Structure) -> Header {
    Header {
        magic: Magic::Ninth(magic),
        structure,
        address: 16,
        uuid: 32,
        owner: Some(48),
        lsn: 24,
        crc: 12,
    }
}

const fn remote(magic: &[u8; 4], structure: Structure) -> Header {
    Header {
        magic: Magic::First(*magic),
        structure,
        address: 40,
        uuid: 16,
        owner: Some(32),
        lsn: 48,
        crc: 12,
    }
}

const HEADERS: [Header; 16] = [
    short_tree(b"AB3B", Structure::FreeSpaceBtree),
    short_tree(b"AB3C", Structure::FreeSpaceBtree),
    short_tree(b"IAB3", Structure::InodeBtree),
    short_tree(b"FIB3", Structure::FreeInodeBtree),
    short_tree(b"RMB3", Structure::RmapBtree),
    short_tree(b"R3FC", Structure::RefcountBtree),
    Header {
        magic: Magic::First(*b"BMA3"),
        structure: Structure::ExtentMap,
        address: 24,
        uuid: 40,
        owner: Some(56),
        lsn: 32,
        crc: 64,
    },
    directory(b"XDB3", Structure::Directory),
    directory(b"XDD3", Structure::Directory),
    directory(b"XDF3", Structure::DirectoryIndex),
    hashed([0x3d, 0xf1], Structure::DirectoryIndex),
    hashed([0x3d, 0xff], Structure::DirectoryIndex),
    // A node of a directory's hash tree or of an attribute tree: the owner's forks tell.
    hashed([0x3e, 0xbe], Structure::DirectoryIndex),
    hashed([0x3b, 0xee], Structure::Xattr),
    remote(b"XARM", Structure::Xattr),
    remote(b"XSLM", Structure::Symlink),
];

/// What the block at byte `offset` says that it is.
pub fn identify(geometry: &Geometry, offset: u64, content: &[u8]) -> Option<Block> {
    let address = offset / BASIC_BLOCK;
    let (first, ninth) = (array(content, 0), array(content, 8));
    for header in &HEADERS {
        let has_magic = match header.magic {
            Magic::First(magic) => first == Some(magic),
            Magic::Ninth(magic) => ninth == Some(magic),
        };
        if has_magic
            && be64(content, header.address) == Some(address)
            && array(content, header.uuid) == Some(geometry.uuid)
        {
            return Some(Block {
                structure: header.structure,
                owner: header.owner.and_then(|at| be64(content, at)).unwrap_or(0),
                volatile: [(header.lsn, 8), (header.crc, 4)],
            });
        }
    }
    None
}

/// Whether it is a node that directories and attributes have in common.
pub fn is_hash_node(content: &[u8]) -> bool {
    be16(content, 8) == Some(0x3ebe)
}

/// The inode in the slot at `offset` is really that one: an inode block.
pub fn is_inode(geometry: &Geometry, offset: u64, slot: &[u8]) -> bool {
    slot.get(..2) == Some(b"IN")
        && slot.get(4) == Some(&3)
        && be64(slot, 152) == Some(geometry.inode_at(offset))
        && array(slot, 160) == Some(geometry.uuid)
}

/// A block of quota accounts (`xfs_dqblk`).
pub fn is_quota(geometry: &Geometry, content: &[u8]) -> bool {
    content.get(..2) == Some(b"DQ") && array(content, 120) == Some(geometry.uuid)
}

/// The header at the begin of an allocation group, by its sector.
pub fn group_header(geometry: &Geometry, offset: u64, content: &[u8]) -> Option<Block> {
    let (group, sector) = geometry.header_sector(offset)?;
    let found = |structure, lsn, crc| {
        Some(Block {
            structure,
            owner: 0,
            volatile: [(lsn, 8), (crc, 4)],
        })
    };
    match (sector, content.get(..4)?) {
        (0, b"XFSB") if group == 0 => found(Structure::Superblock, 240, 224),
        (0, b"XFSB") => found(Structure::SuperblockBackup, 240, 224),
        // xfs_agf, xfs_agi, xfs_agfl: their own number of the group is what ties them to the place.
        (1, b"XAGF") if be32(content, 8).map(u64::from) == Some(group) => {
            found(Structure::Agf, 208, 216)
        }
        (2, b"XAGI") if be32(content, 8).map(u64::from) == Some(group) => {
            found(Structure::Agi, 320, 312)
        }
        (3, b"XAFL") if be32(content, 4).map(u64::from) == Some(group) => {
            found(Structure::Agfl, 24, 32)
        }
        _ => None,
    }
}

impl Block {
    /// A block of which only this is known.
    pub fn new(structure: Structure, owner: u64) -> Block {
        Block {
            structure,
            owner,
            volatile: [(0, 0); 2],
        }
    }

    /// The log's transaction that changed it last, as its content says: log sequence number of the
    /// checkpoint. Blocks that are not logged have none.
    pub fn sequence(&self, content: &[u8]) -> Option<u64> {
        let (at, length) = self.volatile[0];
        be64(content, at).filter(|&lsn| length > 0 && lsn != 0 && lsn != u64::MAX)
    }

    /// A fingerprint of the content without what changes with every write.
    pub fn fingerprint(&self, content: &[u8]) -> u32 {
        let mut ranges = self.volatile;
        ranges.sort_unstable();
        let mut parts: [&[u8]; 3] = [&[]; 3];
        let mut at = 0;
        for (part, (skip, length)) in parts.iter_mut().zip(ranges) {
            *part = content.get(at..skip).unwrap_or_default();
            at = skip + length;
        }
        if let Some(last) = parts.last_mut() {
            *last = content.get(at..).unwrap_or_default();
        }
        fingerprint(&parts)
    }
}
