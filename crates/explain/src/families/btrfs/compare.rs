//! A leaf compared with what the same keys held at the superblock before.

use super::block::{Block, Cursor};
use super::bytes::{is_zero, u64_at};
use super::commit::{Follower, Step};
use super::items::Reasons;
use super::key::{Key, kind, tree};
use super::superblock::Super;
use super::volume::{ROOT_ITEM_BYTENR, Volume};
use crate::Disks;
use fscost_recording::Result;
use std::rc::Rc;

/// A leaf is compared with at most so many leaves of the tree before it.
const MAX_OLD_LEAVES: usize = 64;
/// Where the UUIDs stand in `struct btrfs_root_item`.
const ROOT_ITEM_UUID: std::ops::Range<usize> = 247..263;
const ROOT_ITEM_PARENT_UUID: std::ops::Range<usize> = 263..279;

impl Follower {
    /// Compare a leaf with what the same keys were before.
    pub fn compare(
        &mut self,
        step: &mut Step<'_>,
        leaf: &Rc<Block>,
        owner: u64,
        reasons: &mut Reasons,
        disks: &mut Disks<'_>,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (leaf.key(0), leaf.key(leaf.len().saturating_sub(1)))
        else {
            return Ok(());
        };
        let (old_root, new_root) = self.roots(step, owner, disks)?;
        let (old_log, _) = step.log_roots.get(&owner).copied().unwrap_or_default();
        let is_log = leaf.header.owner == tree::LOG;
        let mut old = Vec::new();
        for root in [old_log.filter(|_| is_log), old_root].into_iter().flatten() {
            let leaves = self
                .volume
                .leaves(disks, root, first, last, MAX_OLD_LEAVES)?;
            old.push(leaves);
        }
        let cursors = old.iter().map(|leaves| Cursor::new(leaves, &first));
        let mut cursors: Vec<_> = cursors.collect();
        for (key, item) in leaf.items() {
            let before = cursors.iter_mut().find_map(|cursor| cursor.find(&key));
            reasons.add(key, before, Some(item));
        }
        // A log holds only what changed: what is not in it is not gone.
        if is_log {
            return Ok(());
        }
        let mut origins = 0;
        let mut now = Cursor::new(std::slice::from_ref(leaf), &first);
        let mut neighbour = None;
        for before in old.iter().flatten() {
            let (mut kept, mut moved) = (false, false);
            for (key, item) in before.items() {
                if now.find(&key).is_some() {
                    kept = true;
                    continue;
                }
                // At the borders it may have moved to a neighbour.
                let inside = first < key && key < last;
                let gone = inside
                    || match new_root {
                        Some(root) => !self.volume.has(disks, root, key, &mut neighbour)?,
                        None => false,
                    };
                if gone {
                    reasons.add(key, Some(item), None);
                } else {
                    moved = true;
                }
            }
            origins += usize::from(kept);
            reasons.reshaped |= kept && moved;
        }
        reasons.reshaped |= origins > 1;
        Ok(())
    }

    /// The roots of a tree before and after. A new snapshot was what it is a snapshot of.
    pub fn roots(
        &mut self,
        step: &mut Step<'_>,
        owner: u64,
        disks: &mut Disks<'_>,
    ) -> Result<(Option<u64>, Option<u64>)> {
        if let Some(&roots) = step.roots.get(&owner) {
            return Ok(roots);
        }
        let mut root_of = |superblock: Option<&Super>| match (superblock, owner) {
            (None, _) => Ok(None),
            (Some(s), tree::ROOT) => Ok(Some(s.root)),
            (Some(s), tree::CHUNK) => Ok(Some(s.chunk_root)),
            (Some(s), _) => self.volume.root_of(disks, s.root, owner),
        };
        let mut roots = (root_of(step.old)?, root_of(step.new)?);
        if let (None, Some(old), Some(new)) = (roots.0, step.old, step.new) {
            let (is_snapshot, origin) = self.origin(old, new, owner, disks)?;
            roots.0 = origin;
            if is_snapshot {
                step.snapshots.insert(owner);
            }
        }
        step.roots.insert(owner, roots);
        Ok(roots)
    }

    /// Whether a new tree is a snapshot, and the root that it was made of.
    fn origin(
        &mut self,
        old: &Super,
        new: &Super,
        owner: u64,
        disks: &mut Disks<'_>,
    ) -> Result<(bool, Option<u64>)> {
        let (from, to) = (
            Key::new(owner, kind::ROOT_ITEM, 0),
            Key::new(owner, kind::ROOT_ITEM, u64::MAX),
        );
        let uuid_of =
            |item: &[u8]| -> Option<[u8; 16]> { item.get(ROOT_ITEM_PARENT_UUID)?.try_into().ok() };
        let parent = self
            .volume
            .look_up(disks, new.root, from, to, |_, item| Some(uuid_of(item)))?;
        let parent = parent.flatten();
        let Some(parent) = parent.filter(|uuid| !is_zero(uuid)) else {
            return Ok((false, None));
        };
        let leaves = self
            .volume
            .leaves(disks, old.root, Key::FIRST, Key::LAST, MAX_OLD_LEAVES)?;
        let mut items = leaves
            .iter()
            .flat_map(|leaf| leaf.items())
            .filter(|(key, _)| key.kind == kind::ROOT_ITEM);
        let origin = items
            .find(|(_, item)| item.get(ROOT_ITEM_UUID) == Some(parent.as_slice()))
            .and_then(|(_, item)| u64_at(item, ROOT_ITEM_BYTENR));
        Ok((true, origin))
    }

    /// Which tree each block of a log belongs to: from the tree of logs to the logs, over what was
    /// just written.
    pub fn find_logged(&mut self, step: &mut Step<'_>, disks: &mut Disks<'_>) -> Result<()> {
        let log_root = |s: Option<&Super>| s.map(|s| s.log_root).filter(|&root| root != 0);
        let (old, new) = (log_root(step.old), log_root(step.new));
        let Some(new) = new else { return Ok(()) };
        for (id, root) in logs_at(&mut self.volume, disks, new)? {
            let before = match old {
                Some(old) => {
                    let key = Key::new(tree::LOG, kind::ROOT_ITEM, id);
                    let bytenr = |_, item: &[u8]| u64_at(item, ROOT_ITEM_BYTENR);
                    self.volume.look_up(disks, old, key, key, bytenr)?
                }
                None => None,
            };
            step.log_roots.insert(id, (before, Some(root)));
            let mut next = vec![root];
            while let Some(bytenr) = next.pop() {
                if !self.written.contains_key(&bytenr) || step.logged.insert(bytenr, id).is_some() {
                    continue;
                }
                if let Some(block) = self.volume.block(disks, bytenr)? {
                    next.extend(block.children());
                }
            }
        }
        Ok(())
    }
}

/// The logs that the tree of logs at `root` has: of which tree each is, and its root.
pub fn logs_at(volume: &mut Volume, disks: &mut Disks<'_>, root: u64) -> Result<Vec<(u64, u64)>> {
    let leaves = volume.leaves(disks, root, Key::FIRST, Key::LAST, MAX_OLD_LEAVES)?;
    let items = leaves.iter().flat_map(|leaf| leaf.items());
    let roots = items.filter(|(key, _)| (key.objectid, key.kind) == (tree::LOG, kind::ROOT_ITEM));
    let logs = roots.filter_map(|(key, item)| Some((key.offset, u64_at(item, ROOT_ITEM_BYTENR)?)));
    Ok(logs.collect())
}
