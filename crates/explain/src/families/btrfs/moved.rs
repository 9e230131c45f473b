//! Data that the file system moved: by a balance, or to have fewer extents.

use super::blocks::MAX_EXTENT_BYTES;
use super::commit::{Follower, Step};
use super::item::{FileExtent, Key, inode, kind, tree};
use crate::{Cause, Disks};
use fscost_recording::Result;

/// Bytes that are compared at a time.
const PIECE_BYTES: u64 = 64 << 10;
/// Maximum number of old leaves that hold the extents of a range.
const MAX_LEAVES: usize = 64;

impl Follower {
    /// Returns why the data of an extent was written.
    ///
    /// - A balance moves extents without a new generation (`replace_file_extents`); data that is
    ///   written in place keeps its place as well.
    /// - Defragmentation writes the same content to a new extent, and changes no time of the inode
    ///   (`btrfs_defrag_file`). A program changes its times (`btrfs_write_check`).
    pub(super) fn why_written(
        &mut self,
        step: &mut Step<'_, '_>,
        owner: u64,
        key: Key,
        extent: &FileExtent,
    ) -> Result<Cause> {
        let Some(old) = step.old.filter(|_| owner != tree::ROOT) else {
            return Ok(Cause::Data);
        };
        let (Some(old_root), new_root) = self.roots(step, owner)? else {
            return Ok(Cause::Data);
        };
        if extent.generation <= old.generation {
            let parse = |_, item: &[u8]| FileExtent::parse(item);
            let before = (self.volume).look_up(step.disks, old_root, key, key, parse)?;
            let is_moved = before.is_some_and(|before| extent.is_moved_from(&before));
            return Ok(if is_moved {
                Cause::Relocation
            } else {
                Cause::Data
            });
        }
        let Some(new_root) = new_root.filter(|_| step.full) else {
            return Ok(Cause::Data);
        };
        let file = (owner, key.objectid);
        let is_untouched = match step.untouched.get(&file) {
            Some(&known) => known,
            None => {
                let known = self.is_untouched(step.disks, old_root, new_root, key.objectid)?;
                step.untouched.insert(file, known);
                known
            }
        };
        let is_same = is_untouched && self.has_same_content(step.disks, old_root, key, extent)?;
        Ok(if is_same {
            Cause::Defragmentation
        } else {
            Cause::Data
        })
    }

    /// Returns whether the times, the size and the number of changes of an inode are as they were.
    fn is_untouched(
        &mut self,
        disks: &mut Disks<'_>,
        old_root: u64,
        new_root: u64,
        number: u64,
    ) -> Result<bool> {
        let key = Key::new(number, kind::INODE_ITEM, 0);
        let mut versions = [None, None];
        for (root, version) in [old_root, new_root].into_iter().zip(&mut versions) {
            *version = self
                .volume
                .look_up(disks, root, key, key, |_, item: &[u8]| {
                    let fields = [inode::SEQUENCE, inode::OTHER_TIMES];
                    let fields = fields.map(|range| item.get(range).map(<[u8]>::to_vec));
                    Some((item.get(16..24).map(<[u8]>::to_vec), fields))
                })?;
        }
        Ok(versions[0].is_some() && versions[0] == versions[1])
    }

    /// Returns whether the part of an extent that an item describes holds what the same place in
    /// the file held before.
    fn has_same_content(
        &mut self,
        disks: &mut Disks<'_>,
        old_root: u64,
        key: Key,
        extent: &FileExtent,
    ) -> Result<bool> {
        let address = extent.plain_address();
        let Some(address) = address.filter(|_| extent.bytes <= MAX_EXTENT_BYTES) else {
            return Ok(false);
        };
        let end = key.offset.saturating_add(extent.bytes);
        let last = Key::new(key.objectid, kind::EXTENT_DATA, end.saturating_sub(1));
        let leaves = self.volume.leaves(disks, old_root, key, last, MAX_LEAVES)?;
        let mut at = key.offset;
        for (old_key, item) in leaves
            .iter()
            .flat_map(|leaf| leaf.items_of(kind::EXTENT_DATA))
        {
            let old = FileExtent::parse(item);
            let Some(old) = old.filter(|_| old_key.objectid == key.objectid) else {
                continue;
            };
            let old_end = old_key.offset.saturating_add(old.bytes);
            if old_end <= at || at >= end {
                continue;
            }
            let Some(before) = old.plain_address().filter(|_| old_key.offset <= at) else {
                return Ok(false);
            };
            while at < old_end.min(end) {
                let length = PIECE_BYTES.min(old_end.min(end) - at);
                let new = address.saturating_add(at - key.offset);
                let old = before.saturating_add(at - old_key.offset);
                let content = self.data(disks, new, length)?;
                if content.is_empty() || content != self.data(disks, old, length)? {
                    return Ok(false);
                }
                at += length;
            }
        }
        Ok(at >= end)
    }

    /// Reads data at a logical address; returns nothing if its place is not known.
    fn data(&self, disks: &mut Disks<'_>, logical: u64, length: u64) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        let mut at = 0;
        while at < length {
            let mut spots = self.volume.chunks.copies(logical.saturating_add(at));
            let Some(spot) = spots.next() else {
                return Ok(Vec::new());
            };
            let Some(disk) = self.volume.devices.disk(spot.devid) else {
                return Ok(Vec::new());
            };
            let mut part = vec![0; spot.run.clamp(1, length - at) as usize];
            disks.read(disk, spot.offset, &mut part)?;
            at += part.len() as u64;
            content.append(&mut part);
        }
        Ok(content)
    }
}
