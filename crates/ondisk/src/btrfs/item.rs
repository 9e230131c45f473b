//! Items of trees: their keys, and the numbers and names in them
//! (include/uapi/linux/btrfs_tree.h).

use crate::bytes::array;
use crate::bytes::checked::{byte, le16, le64};
use std::ops::Range;

/// Bytes of a key on disk.
pub(super) const KEY_BYTES: usize = 17;
/// Offset of the item type in a key.
pub(super) const KEY_KIND: usize = 8;

/// Sort key of the items of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Object ID: usually an inode number.
    pub objectid: u64,
    /// Item type, a [`kind`].
    pub kind: u8,
    /// Offset; its meaning depends on the kind.
    pub offset: u64,
}

impl Key {
    /// Smallest key.
    pub const FIRST: Key = Key::new(0, 0, 0);
    /// Greatest key.
    pub const LAST: Key = Key::new(u64::MAX, u8::MAX, u64::MAX);

    /// Creates a key.
    pub const fn new(objectid: u64, kind: u8, offset: u64) -> Key {
        Key {
            objectid,
            kind,
            offset,
        }
    }

    /// Parses the key at the start of these bytes.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Key> {
        let (objectid, kind) = (le64(bytes, 0)?, byte(bytes, KEY_KIND)?);
        Some(Key::new(objectid, kind, le64(bytes, 9)?))
    }
}

/// Item kinds.
pub mod kind {
    /// An inode.
    pub const INODE_ITEM: u8 = 1;
    /// Names of an inode in a directory.
    pub const INODE_REF: u8 = 12;
    /// More names.
    pub const INODE_EXTREF: u8 = 13;
    /// Attributes.
    pub const XATTR: u8 = 24;
    /// fs-verity descriptor of a file.
    pub const VERITY_DESC: u8 = 36;
    /// fs-verity hashes of a file's content.
    pub const VERITY_MERKLE: u8 = 37;
    /// An inode without a name.
    pub const ORPHAN: u8 = 48;
    /// Range of names, by hash, that a log holds completely.
    pub const DIR_LOG_ITEM: u8 = 60;
    /// Range of names, by index, that a log holds completely.
    pub const DIR_LOG_INDEX: u8 = 72;
    /// Names of a directory, by hash.
    pub const DIR_ITEM: u8 = 84;
    /// Names of a directory, by age.
    pub const DIR_INDEX: u8 = 96;
    /// An extent of a file, or its content.
    pub const EXTENT_DATA: u8 = 108;
    /// Checksums of data.
    pub const CSUM: u8 = 128;
    /// The root of a tree.
    pub const ROOT_ITEM: u8 = 132;
    /// Name of a subvolume, keyed by the subvolume.
    pub const ROOT_BACKREF: u8 = 144;
    /// Name of a subvolume, keyed by its parent.
    pub const ROOT_REF: u8 = 156;
    /// An extent in use.
    pub const EXTENT_ITEM: u8 = 168;
    /// Reference from a file to an extent.
    pub const EXTENT_DATA_REF: u8 = 178;
    /// Reference from a shared leaf to an extent.
    pub const SHARED_DATA_REF: u8 = 184;
    /// A chunk.
    pub const CHUNK: u8 = 228;
    /// A device that is being replaced.
    pub const DEV_REPLACE: u8 = 250;
    /// A string, for tests.
    pub const STRING: u8 = 253;
}

/// Trees by the objectid of their root.
pub mod tree {
    /// Tree of the roots of other trees.
    pub const ROOT: u64 = 1;
    /// Extents in use.
    pub const EXTENT: u64 = 2;
    /// Chunks.
    pub const CHUNK: u64 = 3;
    /// Chunks by device.
    pub const DEVICE: u64 = 4;
    /// The first subvolume.
    pub const FS: u64 = 5;
    /// Quota accounts.
    pub const QUOTA: u64 = 8;
    /// Logs written by fsync.
    pub const LOG: u64 = -6i64 as u64;
    /// Tree of the blocks that balance is moving.
    pub const RELOCATION: u64 = -8i64 as u64;
    /// Data that balance is moving.
    pub const DATA_RELOCATION: u64 = -9i64 as u64;
    /// First number that inodes and subvolumes use.
    pub const FIRST_FREE: u64 = 256;
    /// Last number that inodes and subvolumes use.
    pub const LAST_FREE: u64 = -256i64 as u64;
}

/// Returns whether a tree is a subvolume or snapshot.
pub fn is_fs_tree(owner: u64) -> bool {
    owner == tree::FS || (tree::FIRST_FREE..=tree::LAST_FREE).contains(&owner)
}

/// `struct btrfs_inode_item`.
pub mod inode {
    use crate::bytes::checked::{le32, le64};
    use crate::mode::Kind;
    use std::ops::Range;

    /// Size and bytes on the disk.
    pub const SIZE_AND_BYTES: Range<usize> = 16..32;
    /// Fields nlink, uid, gid, mode, rdev, flags.
    pub const LINKS_TO_FLAGS: Range<usize> = 40..72;
    const MODE: usize = 52;
    /// Number of changes to the inode.
    pub const SEQUENCE: Range<usize> = 72..80;
    /// The access time.
    pub const ATIME: Range<usize> = 112..124;
    /// Fields ctime, mtime, otime.
    pub const OTHER_TIMES: Range<usize> = 124..160;

    /// Returns whether the inode is a directory.
    pub fn is_directory(item: &[u8]) -> bool {
        kind(item) == Some(Kind::Directory)
    }

    /// Returns whether the inode is a symbolic link.
    pub fn is_symlink(item: &[u8]) -> bool {
        kind(item) == Some(Kind::Symlink)
    }

    /// Returns the ctime in seconds and nanoseconds.
    pub fn changed(item: &[u8]) -> Option<(u64, u32)> {
        let at = OTHER_TIMES.start;
        Some((le64(item, at)?, le32(item, at + 8)?))
    }

    fn kind(item: &[u8]) -> Option<Kind> {
        le32(item, MODE).map(Kind::of_mode)
    }
}

/// `struct btrfs_file_extent_item` of an extent outside the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileExtent {
    /// Generation of the transaction that wrote the extent.
    pub generation: u64,
    /// Logical address of the extent.
    pub disk_bytenr: u64,
    /// Bytes of the extent on disk.
    pub disk_bytes: u64,
    /// Byte of the extent at which the part that the item describes begins.
    offset: u64,
    /// Bytes of the part.
    pub bytes: u64,
    /// True if the extent holds data, and not only space for it.
    pub is_written: bool,
    is_plain: bool,
}

/// Returns whether an extent is inline: its item holds the data itself
/// (`BTRFS_FILE_EXTENT_INLINE`).
pub fn is_inline(item: &[u8]) -> bool {
    byte(item, 20) == Some(0)
}

impl FileExtent {
    /// Parses an EXTENT_DATA item; `None` for holes and inline data.
    pub fn parse(item: &[u8]) -> Option<FileExtent> {
        let extent = FileExtent {
            generation: le64(item, 0)?,
            disk_bytenr: le64(item, 21)?,
            disk_bytes: le64(item, 29)?,
            offset: le64(item, 37)?,
            bytes: le64(item, 45)?,
            is_written: byte(item, 20) == Some(1),
            is_plain: is_plain(item),
        };
        (!is_inline(item) && extent.disk_bytenr != 0).then_some(extent)
    }

    /// Returns whether this is the data of `old` at another place: only its address differs.
    pub fn is_moved_from(&self, old: &FileExtent) -> bool {
        let there = FileExtent {
            disk_bytenr: self.disk_bytenr,
            ..*old
        };
        *self == there && self.disk_bytenr != old.disk_bytenr
    }

    /// Returns the logical address of the part that the item describes, if it is stored as it is.
    pub fn plain_address(&self) -> Option<u64> {
        let address = self.disk_bytenr.checked_add(self.offset);
        address.filter(|_| self.is_plain && self.is_written)
    }

    /// Returns the offset in the file of byte `at` of the extent, if the item is at `key_offset`.
    /// The bytes of a compressed extent have none.
    pub fn file_offset(&self, key_offset: u64, at: u64) -> Option<u64> {
        let first = key_offset.wrapping_sub(self.offset);
        self.is_plain.then_some(first.wrapping_add(at))
    }
}

/// Start of the content of inline extents.
pub const INLINE_AT: usize = 21;

/// Returns whether an extent holds the file's content as it is: not compressed, encrypted or
/// encoded.
pub fn is_plain(item: &[u8]) -> bool {
    item.get(16..20) == Some(&[0; 4])
}

/// Place of a name in an item, and of the value stored with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub name: Range<usize>,
    /// The value of an attribute.
    pub value: Range<usize>,
}

/// Returns the names in an item of this kind, in order, up to the first that cannot be read.
pub fn names(kind: u8, item: &[u8]) -> impl Iterator<Item = Name> {
    // Offsets of the name's length and of the name. The value of an attribute follows its name.
    let (length_at, name_at, value_length_at) = match kind {
        kind::INODE_REF => (8, 10, None),
        kind::INODE_EXTREF | kind::ROOT_REF | kind::ROOT_BACKREF => (16, 18, None),
        kind::DIR_ITEM | kind::DIR_INDEX | kind::XATTR => (27, 30, Some(25)),
        _ => (item.len(), item.len(), None),
    };
    let mut at = 0;
    std::iter::from_fn(move || {
        let name = at + name_at;
        let value = name + usize::from(le16(item, at + length_at)?);
        let value_bytes = value_length_at.map_or(Some(0), |there| le16(item, at + there))?;
        at = value + usize::from(value_bytes);
        (at <= item.len()).then_some(Name {
            name: name..value,
            value: value..at,
        })
    })
}

/// Parent directory and name in an INODE_REF or INODE_EXTREF item.
pub fn name_of(key: Key, item: &[u8]) -> Option<(u64, &[u8])> {
    let parent = match key.kind {
        kind::INODE_REF => key.offset,
        kind::INODE_EXTREF => le64(item, 0)?,
        _ => return None,
    };
    Some((parent, item.get(names(key.kind, item).next()?.name)?))
}

/// Parent directory and name of a subvolume, from a ROOT_REF or ROOT_BACKREF item.
pub fn subvolume_name(item: &[u8]) -> Option<(u64, &[u8])> {
    let name = names(kind::ROOT_REF, item).next()?.name;
    Some((le64(item, 0)?, item.get(name)?))
}

/// Logical address of a tree's root, from a ROOT_ITEM.
pub fn root(item: &[u8]) -> Option<u64> {
    le64(item, 176)
}

/// Device that is being replaced, from a DEV_REPLACE item.
pub fn replaced(item: &[u8]) -> Option<u64> {
    le64(item, 0)
}

/// UUIDs of a subvolume and of the subvolume that it is a snapshot of.
pub fn uuids(item: &[u8]) -> Option<([u8; 16], [u8; 16])> {
    Some((array(item, 247)?, array(item, 263)?))
}

/// Start of the inline references of an extent.
const REFERENCES_AT: usize = 24;
const FLAG_DATA: u64 = 1;
/// `BTRFS_EXTENT_OWNER_REF_KEY`, present with simple quotas.
const EXTENT_OWNER_REF: u8 = 172;

/// Returns whether an EXTENT_ITEM describes data.
pub fn is_data(item: &[u8]) -> bool {
    le64(item, 16).is_some_and(|flags| flags & FLAG_DATA != 0)
}

/// Owner of an extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// A file.
    File {
        /// Tree that contains the file.
        tree: u64,
        /// Inode number of the file.
        inode: u64,
        /// Offset in the file of the extent's first byte, modulo 2⁶⁴.
        offset: u64,
    },
    /// Leaf that several trees share.
    Leaf(u64),
}

impl Reference {
    /// Parses a separate reference item. An extent has such items if it has too many references for
    /// its own item.
    pub fn of_item(key: Key, item: &[u8]) -> Option<Reference> {
        match key.kind {
            kind::EXTENT_DATA_REF => Reference::file(item),
            _ => Some(Reference::Leaf(key.offset)),
        }
    }

    fn file(bytes: &[u8]) -> Option<Reference> {
        Some(Reference::File {
            tree: le64(bytes, 0)?,
            inode: le64(bytes, 8)?,
            offset: le64(bytes, 16)?,
        })
    }
}

/// Returns the references in the EXTENT_ITEM of a data extent.
pub fn references(item: &[u8]) -> impl Iterator<Item = Reference> {
    let mut at = REFERENCES_AT;
    let found = std::iter::from_fn(move || {
        let (kind, body) = (byte(item, at)?, item.get(at + 1..)?);
        let (found, bytes) = match kind {
            EXTENT_OWNER_REF => (None, 9),
            kind::EXTENT_DATA_REF => (Reference::file(body), 29),
            kind::SHARED_DATA_REF => (le64(body, 0).map(Reference::Leaf), 13),
            _ => return None,
        };
        at += bytes;
        Some(found)
    });
    found.flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_each_other() {
        let item = b"01234567\x02\0ab01234567\x01\0c";
        let found: Vec<_> = names(kind::INODE_REF, item).map(|n| n.name).collect();
        assert_eq!(found, [10..12, 22..23]);
        assert_eq!(names(kind::INODE_REF, &item[..22]).count(), 1);
        let mut item = vec![0; 30];
        (item[25], item[27]) = (2, 3);
        item.extend(b"abcVV");
        let expected = Name {
            name: 30..33,
            value: 33..35,
        };
        assert!(names(kind::XATTR, &item).eq([expected]));
        assert_eq!(names(kind::CSUM, &item).count(), 0);
    }
}
