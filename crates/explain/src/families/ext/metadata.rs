//! Loads the metadata that mkfs made, and applies new versions of blocks to it.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use super::{
    blocks::{Area, Kind, Mapper, Use},
    change::Change,
    inode::Inode,
    layout,
    map::{self, Claim},
    state::{Applied, Blocks, Explanation, State, Trust, Update},
    superblock::Superblock,
};
use crate::bytes::{is_zero, part};
use crate::hash::HashSet;
use crate::{Disks, Structure};
use fscost_recording::Result;

impl State {
    /// Loads all metadata that mkfs created from the disk. `written` lists the blocks that mkfs
    /// wrote. Inodes in all other blocks are zeros.
    pub fn load(
        superblock: Superblock,
        disk: u16,
        written: Vec<Range<u64>>,
        disks: &mut Disks<'_>,
    ) -> Result<State> {
        let mut state = State::new(superblock, disk);
        state.place();
        for number in 0..state.superblock.descriptor_blocks() {
            let block = layout::descriptor_block(&state.superblock, number);
            let content = state.read(block, disks)?;
            state.read_descriptors(number, &content);
            state.versions.insert(block, content.into());
        }
        let is_table = |&block: &u64| {
            let used = state.space.get(block);
            used.is_some_and(|used| used.kind == Kind::Fixed(Area::InodeTable))
        };
        let tables: BTreeSet<u64> = written.into_iter().flatten().filter(is_table).collect();
        for block in tables {
            let content = state.read(block, disks)?;
            if !is_zero(&content) {
                // All inodes are new.
                state.versions.insert(block, Arc::default());
                let blocks = Blocks::from([(block, content.as_slice())]);
                state.apply(&blocks, Trust::All, disks)?;
            }
        }
        Ok(state)
    }

    /// Applies new versions of several blocks together.
    pub fn apply(
        &mut self,
        blocks: &Blocks<'_>,
        trust: Trust,
        disks: &mut Disks<'_>,
    ) -> Result<Applied> {
        self.allow_reads(blocks.len());
        self.reshape(blocks);
        let mut update = Update::new(blocks, trust, disks);
        let mut of_nodes = Change::default();
        let mut found = Vec::with_capacity(blocks.len());
        for (&block, &new) in blocks {
            found.push(match self.space.get(block) {
                Some(used) if used.kind == Kind::Fixed(Area::InodeTable) => {
                    Some(self.inode_table(block, used, new, &mut update)?)
                }
                Some(Use { kind, inode, .. }) if kind.is_node() => {
                    let old = match self.unread.contains(&block) {
                        true => Arc::default(),
                        false => self.before(block, update.disks)?,
                    };
                    let old_claims = map::of_node(kind, &old, &self.superblock);
                    let new_claims = map::of_node(kind, new, &self.superblock);
                    let mapper = Mapper { inode, node: block };
                    of_nodes.differ(mapper, old_claims, new_claims);
                    update.applied.mappers.push(mapper);
                    None
                }
                _ => None,
            });
        }
        // Claims are processed from the last: a node that moved to another inode comes first.
        let change = std::mem::take(&mut update.of_inodes).and(of_nodes);
        for (mapper, claim) in change.gone {
            self.release(mapper, claim, &mut update)?;
        }
        let visited = self.claim(change.come, &mut update)?;
        self.renumber(&change.renumbered);
        for ((&block, &new), known) in blocks.iter().zip(found) {
            let was_read = visited.contains(&block);
            let explanation = match known {
                Some(explanation) => explanation,
                None => self.explain(block, new, was_read, update.disks)?,
            };
            update.applied.explanations.insert(block, explanation);
            if !was_read && self.keeps(block, explanation, trust) {
                self.versions.insert(block, new.into());
            }
        }
        self.name();
        if trust == Trust::All {
            // A transaction contains the name of each new inode, unless the directory block did
            // not change: a file was deleted and created again under its old name and inode.
            self.names.settle();
        }
        Ok(update.applied)
    }

    /// Records the round in which these mappers were written. Called only without a journal.
    pub fn written(&mut self, mappers: &[Mapper]) {
        if !mappers.is_empty() {
            self.rounds.metadata();
        }
        for &mapper in mappers {
            let used = self.space.get(mapper.node);
            if mapper.node == 0 || used.is_some_and(|used| used.inode == mapper.inode) {
                self.written.insert(mapper, self.rounds.now);
            }
        }
    }

    /// Returns whether to keep the new version of a block. Without a journal, a block that is not
    /// mapped yet is not kept: it is on the disk and may be rewritten unnoticed.
    fn keeps(&self, block: u64, explanation: Explanation, trust: Trust) -> bool {
        match self.space.get(block) {
            Some(used) => used.kind.is_metadata(),
            None => trust == Trust::All && explanation.structure != Structure::FileData,
        }
    }

    /// Updates the layout, because the superblock or the group descriptors may show that the file
    /// system has grown.
    fn reshape(&mut self, blocks: &Blocks<'_>) {
        if let Some(block) = blocks.get(&self.superblock.primary_block()) {
            let from = (super::superblock::AT % self.block_bytes()) as usize;
            let bytes = part(block, from, from + super::superblock::BYTES);
            let new = Superblock::parse(bytes);
            if let Some(new) = new.filter(|new| new.may_follow(&self.superblock)) {
                let grown = new.blocks != self.superblock.blocks;
                self.superblock = new;
                if grown {
                    self.place();
                }
            }
        }
        for (block, content) in blocks {
            if let Some(&number) = self.descriptors.get(block) {
                self.read_descriptors(number, content);
            }
        }
    }

    /// Returns the runs of blocks that hold an inode's content: first block, number of blocks,
    /// number of the first block in the file.
    pub fn places_of(&self, inode: u32, disks: &mut Disks<'_>) -> Result<Vec<(u64, u64, u32)>> {
        let index = inode.saturating_sub(1);
        let group = (index / self.superblock.inodes_per_group) as usize;
        let table = self.groups.get(group).map_or(0, |g| g.inode_table);
        let size = self.superblock.inode_bytes as usize;
        let at = (index % self.superblock.inodes_per_group) as usize * size;
        let bytes = self.superblock.block_bytes as usize;
        let content = self.before(table.saturating_add((at / bytes) as u64), disks)?;
        let slot = Inode(part(&content, at % bytes, at % bytes + size));
        let claims = map::of_inode(slot, inode, &self.superblock).into_iter();
        let mut stack: Vec<(Claim, u64)> = claims.map(|claim| (claim, 0)).collect();
        let (mut places, mut visited) = (Vec::new(), HashSet::default());
        while let Some((claim, base)) = stack.pop() {
            let first = base.saturating_add(claim.first);
            if let Kind::Content(_) = claim.kind {
                let position = u32::try_from(first).unwrap_or(u32::MAX);
                places.push((claim.start, claim.length, position));
            } else if claim.kind.is_node() && visited.insert(claim.start) {
                let base = match claim.kind {
                    Kind::Pointers(..) => first,
                    _ => 0,
                };
                let node = self.before(claim.start, disks)?;
                let below = map::of_node(claim.kind, &node, &self.superblock).into_iter();
                stack.extend(below.map(|claim| (claim, base)));
            }
        }
        places.sort_unstable();
        Ok(places)
    }
}
