//! Owners of data written in place, from back references in the extent tree.

use super::item::{self, FileExtent, Key, Reference, kind, tree};
use super::metadata::Volume;
use crate::Disks;
use fscost_recording::Result;

/// Maximum number of items between a logical address and the item of its extent. They are
/// references of the extent that did not fit into its item.
const MAX_STEPS: usize = 512;

/// A file that owns an extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub tree: u64,
    pub inode: u64,
    /// Offset in the file of the logical address, if known.
    pub file_offset: Option<u64>,
    /// End of the extent.
    pub end: u64,
}

/// Returns the owner of the data extent at `logical` according to the extent tree at `root`. If
/// there are several, returns one of them.
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
        if end <= logical || !item::is_data(item) {
            return Ok(None);
        }
        let mut reference = inline_reference(item);
        if reference.is_none() {
            // References that do not fit into the item are items of their own.
            let (from, to) = (
                Key::new(key.objectid, kind::EXTENT_DATA_REF, 0),
                Key::new(key.objectid, kind::SHARED_DATA_REF, u64::MAX),
            );
            reference = volume
                .look_up(disks, root, from, to, |key, item| {
                    Some(Reference::of_item(key, item))
                })?
                .flatten();
        }
        return match reference {
            Some(Reference::File {
                tree,
                inode,
                offset,
            }) => Ok(Some(Owner {
                tree,
                inode,
                // Data of which no written leaf tells was written in place, and so not compressed.
                // In a damaged tree, an item may come before smaller ones.
                file_offset: logical
                    .checked_sub(key.objectid)
                    .map(|within| offset.wrapping_add(within)),
                end,
            })),
            Some(Reference::Leaf(bytenr)) => {
                shared_owner(volume, disks, bytenr, (key.objectid, end), logical)
            }
            None => Ok(None),
        };
    }
    Ok(None)
}

/// Returns the preferred reference: a file first, then a shared leaf, and last a file in the tree
/// that balance moves data in.
fn inline_reference(item: &[u8]) -> Option<Reference> {
    let mut best = None;
    for found in item::references(item) {
        match (found, best) {
            (Reference::File { tree, .. }, _) if tree != tree::DATA_RELOCATION => {
                return Some(found);
            }
            (Reference::Leaf(_), Some(Reference::Leaf(_))) => {}
            (Reference::Leaf(_), _) | (_, None) => best = Some(found),
            _ => {}
        }
    }
    best
}

fn shared_owner(
    volume: &mut Volume,
    disks: &mut Disks<'_>,
    leaf: u64,
    (extent, end): (u64, u64),
    logical: u64,
) -> Result<Option<Owner>> {
    let Some(leaf) = volume.block(disks, leaf)? else {
        return Ok(None);
    };
    let mut extents = leaf.items_of(kind::EXTENT_DATA);
    let found = extents.find_map(|(key, item)| {
        let known = FileExtent::parse(item).filter(|known| known.disk_bytenr == extent);
        known.map(|known| (key, known))
    });
    Ok(found.map(|(key, known)| Owner {
        tree: leaf.header.owner,
        inode: key.objectid,
        file_offset: logical
            .checked_sub(extent)
            .and_then(|within| known.file_offset(key.offset, within)),
        end,
    }))
}
