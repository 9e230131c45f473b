//! Structures of trees, and causes of changed items.

use super::item::{FileExtent, Key, inode, is_fs_tree, is_inline, kind, tree};
use crate::{Cause, Causes, Structure};

/// Returns the structure of the blocks of a tree.
pub fn structure_of(owner: u64) -> Structure {
    match owner {
        tree::ROOT => Structure::RootTree,
        tree::EXTENT => Structure::ExtentTree,
        // The stripe tree also maps logical addresses to devices.
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

/// Reasons why a leaf of one tree was written, collected item by item in key order.
#[derive(Debug, Default)]
pub struct Reasons {
    owner: u64,
    pub causes: Causes,
    /// The inode that changed last; the only one unless `several`.
    inode: Option<u64>,
    several: bool,
    /// True if items moved from or to other leaves.
    pub reshaped: bool,
    /// Inode whose inode item was added or removed. Its other items add no reason of their own.
    whole: Option<(u64, Cause)>,
}

impl Reasons {
    pub fn new(owner: u64) -> Reasons {
        Reasons {
            owner,
            ..Reasons::default()
        }
    }

    /// Returns the inode if all changes belong to a single one.
    pub fn inode(&self) -> Option<u64> {
        self.inode.filter(|_| !self.several)
    }

    /// Adds a changed item: `old` is None if it is new, `new` is None if it is gone.
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
            let cause = match old {
                Some(_) => Cause::InodeRemoved,
                None => Cause::NewInode,
            };
            self.whole = Some((key.objectid, cause));
            return cause;
        }
        let inline = key.kind == kind::EXTENT_DATA && new.is_some_and(is_inline);
        let whole = self
            .whole
            .filter(|&(objectid, _)| objectid == key.objectid && !inline);
        match (key.kind, whole) {
            // The names in a new directory belong to other inodes.
            (kind::DIR_ITEM | kind::DIR_INDEX, _) => Cause::DirectoryEntries,
            (_, Some((_, cause))) => cause,
            (
                kind::INODE_REF | kind::INODE_EXTREF | kind::DIR_LOG_ITEM | kind::DIR_LOG_INDEX,
                _,
            ) => Cause::DirectoryEntries,
            (kind::XATTR | kind::VERITY_DESC | kind::VERITY_MERKLE, _) => Cause::LinksOrMode,
            (kind::ORPHAN, _) => Cause::InodeRemoved,
            (kind::EXTENT_DATA, _) if inline => Cause::Data,
            // Only the generation differs.
            (kind::EXTENT_DATA, _)
                if old.and_then(|o| o.get(8..)) == new.and_then(|n| n.get(8..)) =>
            {
                Cause::Accounting
            }
            (kind::EXTENT_DATA, _) if is_moved(old, new) => Cause::Relocation,
            (kind::EXTENT_DATA, _) => Cause::SizeOrExtents,
            _ => Cause::Accounting,
        }
    }
}

/// Returns whether two versions of an extent are the same data at another place: balance moves
/// extents without a new generation (`replace_file_extents`).
fn is_moved(old: Option<&[u8]>, new: Option<&[u8]>) -> bool {
    let parse = |item: Option<&[u8]>| FileExtent::parse(item?);
    parse(old)
        .zip(parse(new))
        .is_some_and(|(old, new)| new.is_moved_from(&old))
}

/// Returns the cause of a change in the tree of roots: names of subvolumes, inodes of free space
/// cache files, or else roots that moved.
fn root_item_cause(key: Key) -> Cause {
    match key.kind {
        kind::ROOT_REF | kind::ROOT_BACKREF | kind::DIR_ITEM | kind::DIR_INDEX => {
            Cause::DirectoryEntries
        }
        0 | kind::EXTENT_DATA | kind::INODE_ITEM => Cause::Allocation,
        _ => Cause::Accounting,
    }
}

/// Returns the causes of the differences between two versions of an inode. Timestamps are ignored
/// if size, names, links or mode changed, because they change along with these.
fn inode_causes(old: &[u8], new: &[u8]) -> Causes {
    let differs = |range: std::ops::Range<usize>| old.get(range.clone()) != new.get(range);
    // A directory's size is the total length of its names.
    let size = match inode::is_directory(new) {
        true => Cause::DirectoryEntries,
        false => Cause::SizeOrExtents,
    };
    let causes = Causes::of([
        (differs(inode::LINKS_TO_FLAGS), Cause::LinksOrMode),
        (differs(inode::SIZE_AND_BYTES), size),
    ]);
    causes.or(if differs(inode::OTHER_TIMES) {
        Cause::Times
    } else if differs(inode::ATIME) {
        Cause::Atime
    } else if differs(inode::SEQUENCE) {
        Cause::Times
    } else {
        // Only the number of the last transaction that touched the inode differs.
        Cause::Accounting
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the causes for an inode item in which these bytes differ.
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
        assert_eq!(causes(&[atime, size]), Causes::one(Cause::SizeOrExtents));
        assert_eq!(causes(&[ctime, links]), Causes::one(Cause::LinksOrMode));
        assert_eq!(causes(&[transaction]), Causes::one(Cause::Accounting));
    }
}
