//! Keys, and the numbers in them: include/uapi/linux/btrfs_tree.h.

use super::bytes::{u8_at, u64_at};
use crate::Structure;

/// Bytes of a key on disk.
pub const KEY_BYTES: usize = 17;
/// Where its kind stands in it.
pub const KEY_KIND: usize = 8;

/// What items of a tree are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub objectid: u64,
    pub kind: u8,
    pub offset: u64,
}

impl Key {
    pub const FIRST: Key = Key::new(0, 0, 0);
    pub const LAST: Key = Key::new(u64::MAX, u8::MAX, u64::MAX);

    pub const fn new(objectid: u64, kind: u8, offset: u64) -> Key {
        Key {
            objectid,
            kind,
            offset,
        }
    }

    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Key> {
        Some(Key::new(
            u64_at(bytes, 0)?,
            u8_at(bytes, KEY_KIND)?,
            u64_at(bytes, 9)?,
        ))
    }
}

/// Item kinds.
pub mod kind {
    pub const INODE_ITEM: u8 = 1;
    pub const INODE_REF: u8 = 12;
    pub const INODE_EXTREF: u8 = 13;
    pub const XATTR: u8 = 24;
    pub const VERITY_DESC: u8 = 36;
    pub const VERITY_MERKLE: u8 = 37;
    pub const ORPHAN: u8 = 48;
    pub const DIR_LOG_ITEM: u8 = 60;
    pub const DIR_LOG_INDEX: u8 = 72;
    pub const DIR_ITEM: u8 = 84;
    pub const DIR_INDEX: u8 = 96;
    pub const EXTENT_DATA: u8 = 108;
    pub const CSUM: u8 = 128;
    pub const ROOT_ITEM: u8 = 132;
    pub const ROOT_BACKREF: u8 = 144;
    pub const ROOT_REF: u8 = 156;
    pub const EXTENT_ITEM: u8 = 168;
    pub const EXTENT_DATA_REF: u8 = 178;
    pub const SHARED_DATA_REF: u8 = 184;
    pub const CHUNK: u8 = 228;
    pub const DEV_REPLACE: u8 = 250;
    pub const STRING: u8 = 253;
}

/// Trees by the objectid of their root.
pub mod tree {
    pub const ROOT: u64 = 1;
    pub const EXTENT: u64 = 2;
    pub const CHUNK: u64 = 3;
    pub const DEVICE: u64 = 4;
    pub const FS: u64 = 5;
    pub const QUOTA: u64 = 8;
    pub const LOG: u64 = -6i64 as u64;
    pub const RELOCATION: u64 = -8i64 as u64;
    pub const DATA_RELOCATION: u64 = -9i64 as u64;
    /// Inodes and subvolumes have numbers from here …
    pub const FIRST_FREE: u64 = 256;
    /// … to here.
    pub const LAST_FREE: u64 = -256i64 as u64;
}

/// Whether a tree is a subvolume or snapshot.
pub fn is_fs_tree(owner: u64) -> bool {
    owner == tree::FS || (tree::FIRST_FREE..=tree::LAST_FREE).contains(&owner)
}

/// What the blocks of a tree are.
pub fn structure_of(owner: u64) -> Structure {
    match owner {
        tree::ROOT => Structure::RootTree,
        tree::EXTENT => Structure::ExtentTree,
        // The stripe tree too says where logical addresses lie on devices.
        tree::CHUNK | 12 => Structure::ChunkTree,
        tree::DEVICE => Structure::DeviceTree,
        7 => Structure::CsumTree,
        tree::QUOTA => Structure::QuotaTree,
        9 => Structure::UuidTree,
        10 => Structure::FreeSpaceTree,
        11 => Structure::BlockGroupTree,
        tree::LOG => Structure::LogTree,
        tree::RELOCATION | tree::DATA_RELOCATION => Structure::RelocationTree,
        owner if is_fs_tree(owner) => Structure::FsTree,
        _ => Structure::Unknown,
    }
}
