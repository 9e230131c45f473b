//! Release of blocks that inodes and nodes no longer map, and of their state.

use super::{
    blocks::{Content, Kind, Mapper, Use},
    map::{self, Claim},
    ownership::names_others,
    state::{Applied, Released, State, Update},
};
use fscost_recording::Result;

impl State {
    pub(super) fn release(
        &mut self,
        mapper: Mapper,
        claim: Claim,
        update: &mut Update<'_, '_>,
    ) -> Result<()> {
        let inode = mapper.inode;
        let mut stack = vec![(mapper, claim, self.known_at(mapper))];
        while let Some((mapper, claim, known)) = stack.pop() {
            let used = mapper.uses(claim.kind);
            let Claim { start, length, .. } = claim;
            if claim.kind.is_node() {
                // The inode cannot release a block that has another owner by now, or that was
                // released before.
                if self.space.get(start) != Some(used) {
                    continue;
                }
                let below = mapper.below(start);
                let written = self.written.remove(&below).unwrap_or_default();
                if written.is_with(self.rounds.now) {
                    self.may_be_anothers(start, written);
                }
                if !self.unread.remove(&start) {
                    let old = self.before(start, update.disks)?;
                    let children = map::of_node(claim.kind, &old, &self.superblock);
                    let known = known.min(written);
                    stack.extend(children.into_iter().map(|child| (below, child, known)));
                }
            }
            if claim.kind == Kind::Xattr && self.leave_shared(start, used) {
                continue;
            }
            self.space.release(start, length, used);
            update.applied.moves.leave(inode, claim);
            update.applied.released.push(Released {
                start,
                length,
                inode,
                known,
            });
            if claim.kind.is_metadata() {
                self.forget(inode, claim, &mut update.applied);
            }
        }
        Ok(())
    }

    /// Removes an inode from the sharers of an attribute block. Returns whether other inodes still
    /// map the block. Inodes with the same attributes share a block
    /// (`ext4_xattr_block_cache_find`).
    fn leave_shared(&mut self, block: u64, used: Use) -> bool {
        let Some(others) = self.sharers.get_mut(&block) else {
            return false;
        };
        let holds = self.space.get(block) == Some(used);
        if holds && let Some(inode) = others.pop() {
            self.space.claim(block, 1, Use { inode, ..used });
        } else {
            others.retain(|&other| other != used.inode);
        }
        if others.is_empty() {
            self.sharers.remove(&block);
        }
        true
    }

    /// Releases blocks that were directories or nodes of other owners, and everything below them,
    /// although that change is not written yet. Called only without a journal.
    pub(super) fn displace(
        &mut self,
        start: u64,
        length: u64,
        by: Use,
        update: &mut Update<'_, '_>,
    ) -> Result<()> {
        let is_displaced =
            |used: &Use| names_others(used.kind) && (used.inode, used.kind) != (by.inode, by.kind);
        for run in self.space.runs(start, length) {
            let Some(used) = run.used.filter(is_displaced) else {
                continue;
            };
            for block in run.start..run.end() {
                let (mapper, claim) = self.claim_of(block, used);
                self.release(mapper, claim, update)?;
            }
        }
        Ok(())
    }

    /// Drops the versions of released blocks, and the names in them.
    fn forget(&mut self, inode: u32, claim: Claim, applied: &mut Applied) {
        let end = claim.start.saturating_add(claim.length);
        for block in self.known(claim.start..end) {
            let version = self.versions.remove(&block).unwrap_or_default();
            if claim.kind == Kind::Content(Content::Directory) {
                let old = self.entries(&version).unwrap_or_default();
                self.rename(inode, &old, &[]);
            }
            applied.forgotten.insert(block, version);
        }
    }
}
