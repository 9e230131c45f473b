//! Comparison of a leaf with the previous items of the same keys, as of the last superblock.

use super::block::{Block, Cursor};
use super::commit::{Follower, Step};
use super::item::{self, Key, kind, tree};
use super::items::Reasons;
use super::metadata::keys_of;
use super::superblock::Super;
use crate::Disks;
use crate::bytes::is_zero;
use crate::hash::HashMap;
use fscost_recording::Result;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of old leaves that a leaf is compared with.
const MAX_OLD_LEAVES: usize = 64;

impl Follower {
    /// Compares a leaf with the previous items of the same keys.
    pub fn compare(
        &mut self,
        step: &mut Step<'_, '_>,
        leaf: &Arc<Block>,
        owner: u64,
        reasons: &mut Reasons,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (leaf.key(0), leaf.key(leaf.len().saturating_sub(1)))
        else {
            return Ok(());
        };
        let (old_root, new_root) = self.roots(step, owner)?;
        let (old_log, _) = step.log_roots.get(&owner).copied().unwrap_or_default();
        let is_log = leaf.header.owner == tree::LOG;
        let mut old = Vec::new();
        for root in [old_log.filter(|_| is_log), old_root].into_iter().flatten() {
            let leaves = self
                .volume
                .leaves(step.disks, root, first, last, MAX_OLD_LEAVES)?;
            old.push(leaves);
        }
        let cursors = old.iter().map(|leaves| Cursor::new(leaves, &first));
        let mut cursors: Vec<_> = cursors.collect();
        for (key, item) in leaf.items() {
            let before = cursors.iter_mut().find_map(|cursor| cursor.find(&key));
            reasons.add(key, before, Some(item));
        }
        // A log holds only what changed: an item missing from it is not removed.
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
                // Items at the borders may have moved to a neighbour.
                let inside = first < key && key < last;
                let gone = inside
                    || match new_root {
                        Some(root) => !self.volume.has(step.disks, root, key, &mut neighbour)?,
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

    /// Returns the roots of a tree before and after the step. The old root of a new snapshot is the
    /// root of its source.
    pub fn roots(
        &mut self,
        step: &mut Step<'_, '_>,
        owner: u64,
    ) -> Result<(Option<u64>, Option<u64>)> {
        if let Some(&roots) = step.roots.get(&owner) {
            return Ok(roots);
        }
        let mut root_of = |superblock: Option<&Super>| match (superblock, owner) {
            (None, _) => Ok(None),
            (Some(s), tree::ROOT) => Ok(Some(s.root)),
            (Some(s), tree::CHUNK) => Ok(Some(s.chunk_root)),
            (Some(s), _) => self.volume.root_of(step.disks, s.root, owner),
        };
        let mut roots = (root_of(step.old)?, root_of(step.new)?);
        if let (None, Some(old), Some(new)) = (roots.0, step.old, step.new) {
            let (is_snapshot, origin) = self.origin(old, new, owner, step.disks)?;
            roots.0 = origin;
            if is_snapshot {
                step.snapshots.insert(owner);
            }
        }
        step.roots.insert(owner, roots);
        Ok(roots)
    }

    /// Returns whether a new tree is a snapshot, and the root of its source.
    fn origin(
        &mut self,
        old: &Super,
        new: &Super,
        owner: u64,
        disks: &mut Disks<'_>,
    ) -> Result<(bool, Option<u64>)> {
        let (from, to) = keys_of(owner, kind::ROOT_ITEM);
        let uuids = |_, item: &[u8]| Some(item::uuids(item));
        let uuids = self.volume.look_up(disks, new.root, from, to, uuids)?;
        let parent = uuids.flatten().map(|(_, parent)| parent);
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
            .find(|(_, item)| item::uuids(item).is_some_and(|(uuid, _)| uuid == parent))
            .and_then(|(_, item)| item::root(item));
        Ok((true, origin))
    }

    /// Finds the tree that each block of a log belongs to, by walking from the tree of logs through
    /// the blocks that were just written.
    pub fn find_logged(&mut self, step: &mut Step<'_, '_>) -> Result<()> {
        let log_root = |s: Option<&Super>| s.map(|s| s.log_root).filter(|&root| root != 0);
        let (old, new) = (log_root(step.old), log_root(step.new));
        let Some(new) = new else { return Ok(()) };
        self.add_logged(step, new, tree::LOG)?;
        for (id, root) in self.volume.logs(step.disks, new)? {
            let mut before = None;
            if let Some(old) = old {
                let key = Key::new(tree::LOG, kind::ROOT_ITEM, id);
                let bytenr = |_, item: &[u8]| item::root(item);
                before = self.volume.look_up(step.disks, old, key, key, bytenr)?;
            }
            step.log_roots.insert(id, (before, Some(root)));
            self.add_logged(step, root, id)?;
        }
        Ok(())
    }

    /// Adds the blocks below `root` that were just written to those of the log of tree `id`.
    fn add_logged(&mut self, step: &mut Step<'_, '_>, root: u64, id: u64) -> Result<()> {
        let mut next = Vec::new();
        let roots = std::iter::once(root);
        push_new(&mut next, roots, &self.written, &mut step.logged, id);
        while let Some(bytenr) = next.pop() {
            if let Some(block) = self.volume.block(step.disks, bytenr)? {
                let children = block.children();
                push_new(&mut next, children, &self.written, &mut step.logged, id);
            }
        }
        Ok(())
    }
}

/// Adds the blocks that were just written, and that no log has yet, to those of the log of tree
/// `id`, and to `next`. In a damaged tree, many blocks may name many others.
fn push_new(
    next: &mut Vec<u64>,
    blocks: impl Iterator<Item = u64>,
    written: &BTreeMap<u64, Vec<usize>>,
    logged: &mut HashMap<u64, u64>,
    id: u64,
) {
    let is_new = |block: &u64| written.contains_key(block) && logged.insert(*block, id).is_none();
    next.extend(blocks.filter(is_new));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_children_in_a_log_each_written_one_is_visited_once() {
        let written = BTreeMap::from([(1, vec![]), (2, vec![]), (3, vec![])]);
        let mut logged = HashMap::default();
        logged.insert(2, 256);
        let mut next = Vec::new();
        for _ in 0..2 {
            push_new(
                &mut next,
                (0..1000).map(|n| n % 10),
                &written,
                &mut logged,
                5,
            );
        }
        assert_eq!(next, [1, 3]);
        // A block that another log has is of the last one.
        assert_eq!((logged.len(), logged.get(&2)), (3, Some(&5)));
    }
}
