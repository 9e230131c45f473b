//! Items of subvolumes, and what a change of one means.

use super::bytes::{u8_at, u16_at, u32_at, u64_at};
use super::key::{Key, is_fs_tree, kind, tree};
use crate::{Cause, Causes};

const S_IFMT: u32 = 0o170_000;
const S_IFDIR: u32 = 0o040_000;
/// `struct btrfs_inode_item`.
mod inode {
    use std::ops::Range;
    pub const SIZE_AND_BYTES: Range<usize> = 16..32;
    /// nlink, uid, gid, mode, rdev, flags.
    pub const LINKS_TO_FLAGS: Range<usize> = 40..72;
    pub const MODE: usize = 52;
    pub const SEQUENCE: Range<usize> = 72..80;
    pub const ATIME: Range<usize> = 112..124;
    /// ctime, mtime, otime.
    pub const OTHER_TIMES: Range<usize> = 124..160;
}

/// `struct btrfs_file_extent_item` of an extent outside the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileExtent {
    pub generation: u64,
    pub disk_bytenr: u64,
    pub disk_bytes: u64,
}

/// Inline extents hold the data itself (`BTRFS_FILE_EXTENT_INLINE`).
fn is_inline(item: &[u8]) -> bool {
    u8_at(item, 20) == Some(0)
}

impl FileExtent {
    /// The extent of an EXTENT_DATA item; none for holes and inline data.
    pub fn parse(item: &[u8]) -> Option<FileExtent> {
        let extent = FileExtent {
            generation: u64_at(item, 0)?,
            disk_bytenr: u64_at(item, 21)?,
            disk_bytes: u64_at(item, 29)?,
        };
        (!is_inline(item) && extent.disk_bytenr != 0).then_some(extent)
    }
}

/// A parent directory and a name in it, of an INODE_REF or INODE_EXTREF item.
pub fn name_of(key: Key, item: &[u8]) -> Option<(u64, &[u8])> {
    let (parent, length_at) = match key.kind {
        kind::INODE_REF => (key.offset, 8),
        kind::INODE_EXTREF => (u64_at(item, 0)?, 16),
        _ => return None,
    };
    let name = item.get(length_at + 2..)?;
    Some((parent, name.get(..usize::from(u16_at(item, length_at)?))?))
}

/// Why a leaf of one tree was written: gathered item by item, in the order of keys.
#[derive(Debug)]
pub struct Reasons {
    owner: u64,
    pub causes: Causes,
    /// The only inode that has changed.
    inode: Option<u64>,
    several: bool,
    /// Whether items came from or went to other leaves.
    pub reshaped: bool,
    /// The inode whose item came or went: the rest of its items say no more.
    whole: Option<(u64, Cause)>,
}

impl Reasons {
    pub fn new(owner: u64) -> Reasons {
        Reasons {
            owner,
            causes: Causes::NONE,
            inode: None,
            several: false,
            reshaped: false,
            whole: None,
        }
    }

    /// The inode, if all that changed belongs to one.
    pub fn inode(&self) -> Option<u64> {
        self.inode.filter(|_| !self.several)
    }

    /// An item is new, gone or another.
    pub fn add(&mut self, key: Key, old: Option<&[u8]>, new: Option<&[u8]>) {
        if old == new {
            return;
        }
        self.causes = self.causes.and(self.causes_of(key, old, new));
        if is_fs_tree(self.owner) && (tree::FIRST_FREE..=tree::LAST_FREE).contains(&key.objectid) {
            self.several |= self.inode.is_some_and(|i| i != key.objectid);
            self.inode = Some(key.objectid);
        }
    }

    fn causes_of(&mut self, key: Key, old: Option<&[u8]>, new: Option<&[u8]>) -> Causes {
        if let (kind::INODE_ITEM, true, Some(old), Some(new)) =
            (key.kind, is_fs_tree(self.owner), old, new)
        {
            return inode_causes(old, new);
        }
        Causes::one(match self.owner {
            tree::ROOT => root_item_cause(key),
            tree::QUOTA => Cause::Accounting,
            owner if is_fs_tree(owner) => self.fs_item_cause(key, old, new),
            _ => Cause::Allocation,
        })
    }

    fn fs_item_cause(&mut self, key: Key, old: Option<&[u8]>, new: Option<&[u8]>) -> Cause {
        if key.kind == kind::INODE_ITEM {
            let cause = if old.is_some() {
                Cause::InodeRemoved
            } else {
                Cause::NewInode
            };
            self.whole = Some((key.objectid, cause));
            return cause;
        }
        let inline = key.kind == kind::EXTENT_DATA && new.is_some_and(is_inline);
        let whole = self
            .whole
            .filter(|&(objectid, _)| objectid == key.objectid && !inline);
        match (key.kind, whole) {
            // A new directory's names are those of other inodes.
            (kind::DIR_ITEM | kind::DIR_INDEX, _) => Cause::Names,
            (_, Some((_, cause))) => cause,
            (
                kind::INODE_REF | kind::INODE_EXTREF | kind::DIR_LOG_ITEM | kind::DIR_LOG_INDEX,
                _,
            ) => Cause::Names,
            (kind::XATTR | kind::VERITY_DESC | kind::VERITY_MERKLE, _) => Cause::LinksOrMode,
            (kind::ORPHAN, _) => Cause::InodeRemoved,
            (kind::EXTENT_DATA, _) if inline => Cause::Data,
            // All but the generation.
            (kind::EXTENT_DATA, _)
                if old.and_then(|o| o.get(8..)) == new.and_then(|n| n.get(8..)) =>
            {
                Cause::Accounting
            }
            (kind::EXTENT_DATA, _) => Cause::SizeOrMap,
            _ => Cause::Accounting,
        }
    }
}

/// What a change in the tree of roots means: names of subvolumes, the inodes of free space cache
/// files, else roots that moved.
fn root_item_cause(key: Key) -> Cause {
    match key.kind {
        kind::ROOT_REF | kind::ROOT_BACKREF | kind::DIR_ITEM | kind::DIR_INDEX => Cause::Names,
        0 | kind::EXTENT_DATA | kind::INODE_ITEM => Cause::Allocation,
        _ => Cause::Accounting,
    }
}

/// What differs between two versions of an inode. Other times follow from a change of size, names
/// or mode and say no more then.
fn inode_causes(old: &[u8], new: &[u8]) -> Causes {
    let differs = |range: std::ops::Range<usize>| old.get(range.clone()) != new.get(range);
    let directory = u32_at(new, inode::MODE).is_some_and(|mode| mode & S_IFMT == S_IFDIR);
    let mut causes = Causes::NONE;
    if differs(inode::LINKS_TO_FLAGS) {
        causes = causes.with(Cause::LinksOrMode);
    }
    if differs(inode::SIZE_AND_BYTES) {
        // A directory's size is the length of its names.
        causes = causes.with(if directory {
            Cause::Names
        } else {
            Cause::SizeOrMap
        });
    }
    if !causes.is_empty() {
        return causes;
    }
    Causes::one(if differs(inode::OTHER_TIMES) {
        Cause::Times
    } else if differs(inode::ATIME) {
        Cause::Atime
    } else if differs(inode::SEQUENCE) {
        Cause::Times
    } else {
        // The transaction that touched it last.
        Cause::Accounting
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Causes of an inode item in which these bytes are others.
    fn causes(changed: &[usize]) -> Causes {
        let old = vec![0; 160];
        let mut new = old.clone();
        for &at in changed {
            new[at] = 1;
        }
        inode_causes(&old, &new)
    }

    #[test]
    fn an_access_time_is_the_cause_where_nothing_but_it_changed() {
        let (sequence, atime, ctime, mtime) = (72, 112, 124, 136);
        assert_eq!(causes(&[atime]), Causes::one(Cause::Atime));
        assert_eq!(causes(&[atime, sequence]), Causes::one(Cause::Atime));
        for other in [ctime, mtime] {
            assert_eq!(causes(&[other]), Causes::one(Cause::Times));
            assert_eq!(causes(&[atime, other]), Causes::one(Cause::Times));
        }
        assert_eq!(causes(&[sequence]), Causes::one(Cause::Times));
        let (size, links, transaction) = (16, 40, 8);
        assert_eq!(causes(&[atime, size]), Causes::one(Cause::SizeOrMap));
        assert_eq!(causes(&[ctime, links]), Causes::one(Cause::LinksOrMode));
        assert_eq!(causes(&[transaction]), Causes::one(Cause::Accounting));
    }
}
