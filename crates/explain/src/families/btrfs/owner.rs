//! Who owns data that lies where it lay before (written in place): the extent tree's back
//! references.
//! `struct btrfs_extent_item` and its inline references, include/uapi/linux/btrfs_tree.h.

use super::bytes::{u8_at, u64_at};
use super::items::FileExtent;
use super::key::{Key, kind, tree};
use super::volume::Volume;
use crate::Disks;
use fscost_recording::Result;

const EXTENT_ITEM_BYTES: usize = 24;
const FLAG_DATA: u64 = 1;
/// `BTRFS_EXTENT_OWNER_REF_KEY`, with simple quotas.
const EXTENT_OWNER_REF: u8 = 172;
/// How many items may stand between a logical address and the extent that it lies in: an extent's
/// references that did not fit in its item.
const MAX_STEPS: usize = 512;

/// A file that an extent belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub tree: u64,
    pub inode: u64,
    /// Where the extent ends.
    pub end: u64,
}

/// The owner of the data extent at `logical`, as the extent tree at `root` says; of several, one.
pub fn owner_of(
    volume: &mut Volume,
    disks: &mut Disks<'_>,
    root: u64,
    logical: u64,
) -> Result<Option<Owner>> {
    let last = Key::new(logical, kind::EXTENT_ITEM, u64::MAX);
    let leaves = volume.leaves(disks, root, last, last, 1)?;
    let Some(leaf) = leaves.first() else {
        return Ok(None);
    };
    let position = leaf.position(&last);
    for number in (position.saturating_sub(MAX_STEPS)..position).rev() {
        let Some((key, item)) = leaf.item(number) else {
            continue;
        };
        if key.kind != kind::EXTENT_ITEM {
            continue;
        }
        let end = key.objectid.saturating_add(key.offset);
        let is_data = u64_at(item, 16).is_some_and(|flags| flags & FLAG_DATA != 0);
        if end <= logical || !is_data {
            return Ok(None);
        }
        let mut reference = inline_reference(item);
        if reference.is_none() {
            // Too many for the item itself: items of their own.
            let (from, to) = (
                Key::new(key.objectid, kind::EXTENT_DATA_REF, 0),
                Key::new(key.objectid, kind::SHARED_DATA_REF, u64::MAX),
            );
            reference = volume
                .look_up(disks, root, from, to, |key, item| {
                    Some(match key.kind {
                        kind::EXTENT_DATA_REF => data_reference(item),
                        _ => Some(Reference::Leaf(key.offset)),
                    })
                })?
                .flatten();
        }
        return match reference {
            Some(Reference::File { tree, inode }) => Ok(Some(Owner { tree, inode, end })),
            Some(Reference::Leaf(bytenr)) => shared_owner(volume, disks, bytenr, key.objectid, end),
            None => Ok(None),
        };
    }
    Ok(None)
}

enum Reference {
    File {
        tree: u64,
        inode: u64,
    },
    /// A leaf that several trees share.
    Leaf(u64),
}

/// Of several, one of a file rather than of a shared leaf, and of the tree that balance moves data
/// in only if there is no other.
fn inline_reference(item: &[u8]) -> Option<Reference> {
    let mut at = EXTENT_ITEM_BYTES;
    let mut best = None;
    while let Some(kind) = u8_at(item, at) {
        let found = match kind {
            EXTENT_OWNER_REF => None,
            kind::EXTENT_DATA_REF => data_reference(item.get(at + 1..)?),
            kind::SHARED_DATA_REF => u64_at(item, at + 1).map(Reference::Leaf),
            _ => break,
        };
        match (&found, &best) {
            (Some(Reference::File { tree, .. }), _) if *tree != tree::DATA_RELOCATION => {
                return found;
            }
            (Some(Reference::Leaf(_)), Some(Reference::Leaf(_))) | (None, _) => {}
            (Some(Reference::Leaf(_)), _) | (_, None) => best = found,
            _ => {}
        }
        at += match kind {
            EXTENT_OWNER_REF => 9,
            kind::EXTENT_DATA_REF => 29,
            _ => 13,
        };
    }
    best
}

fn data_reference(bytes: &[u8]) -> Option<Reference> {
    Some(Reference::File {
        tree: u64_at(bytes, 0)?,
        inode: u64_at(bytes, 8)?,
    })
}

fn shared_owner(
    volume: &mut Volume,
    disks: &mut Disks<'_>,
    leaf: u64,
    extent: u64,
    end: u64,
) -> Result<Option<Owner>> {
    let Some(leaf) = volume.block(disks, leaf)? else {
        return Ok(None);
    };
    let found = leaf.items().find(|(key, item)| {
        key.kind == kind::EXTENT_DATA
            && FileExtent::parse(item).is_some_and(|e| e.disk_bytenr == extent)
    });
    Ok(found.map(|(key, _)| Owner {
        tree: leaf.header.owner,
        inode: key.objectid,
        end,
    }))
}
