//! Data that the kernel moved within the disk, as e4defrag asks (`EXT4_IOC_MOVE_EXT`).
//!
//! ext4 writes in place: file blocks that a transaction maps elsewhere than before were moved, or
//! the program freed them and wrote them again. The program would have changed the times of the
//! inode; the kernel does not (`ext4_move_extents`, `ext4_swap_extents`).

use std::collections::BTreeMap;

use super::{blocks::is_data, map::Claim};
use crate::hash::HashSet;

/// Data that inodes map no longer, or from now on, without a change of their times.
#[derive(Debug, Default)]
pub struct Moves {
    /// Inodes with another modification or change time, and inodes without a name.
    changed: HashSet<u32>,
    left: Vec<(u32, Claim)>,
    come: Vec<(u32, Claim)>,
}

impl Moves {
    /// Excludes an inode: its data may be that of a program.
    pub(super) fn exclude(&mut self, inode: u32) {
        self.changed.insert(inode);
    }

    pub(super) fn leave(&mut self, inode: u32, claim: Claim) {
        if is_data(claim.kind) && !self.changed.contains(&inode) {
            self.left.push((inode, claim));
        }
    }

    pub(super) fn come(&mut self, inode: u32, claim: Claim) {
        if is_data(claim.kind) && !self.changed.contains(&inode) {
            self.come.push((inode, claim));
        }
    }

    /// Returns the runs of blocks to which data moved: first block and number of blocks, by inode
    /// and place.
    pub(super) fn moved(&self) -> Vec<(u32, u64, u64)> {
        if self.left.is_empty() || self.come.is_empty() {
            return Vec::new();
        }
        // File blocks do not overlap: by inode and first file block.
        let left: BTreeMap<(u32, u64), Claim> = (self.left.iter())
            .map(|&(inode, claim)| ((inode, claim.first), claim))
            .collect();
        let mut moved = Vec::new();
        for &(inode, claim) in &self.come {
            let end = claim.first.saturating_add(claim.length);
            let before = left.range((inode, 0)..=(inode, claim.first)).next_back();
            let after = left.range((inode, claim.first.saturating_add(1))..(inode, end));
            for (_, old) in before.into_iter().chain(after) {
                let from = claim.first.max(old.first);
                let to = end.min(old.first.saturating_add(old.length));
                let place = claim.start.wrapping_add(from - claim.first);
                if from < to && place != old.start.wrapping_add(from - old.first) {
                    moved.push((inode, place, to - from));
                }
            }
        }
        moved.sort_unstable();
        moved.dedup_by(|next, run| {
            let follows = (run.0, run.1.wrapping_add(run.2)) == (next.0, next.1);
            if follows {
                run.2 += next.2;
            }
            follows
        });
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::{Content, Kind};
    use super::*;

    fn claim(start: u64, length: u64, first: u64) -> Claim {
        Claim {
            start,
            length,
            kind: Kind::Content(Content::Data),
            first,
        }
    }

    #[test]
    fn only_file_blocks_at_another_place_have_moved() {
        let mut moves = Moves::default();
        moves.exclude(13);
        for inode in [12, 13] {
            moves.leave(inode, claim(100, 4, 0));
            moves.leave(inode, claim(200, 4, 4));
            // The last block is at its former place, and a new one follows.
            moves.come(inode, claim(500, 7, 0));
            moves.come(inode, claim(203, 1, 7));
            moves.come(inode, claim(300, 1, 8));
        }
        assert_eq!(moves.moved(), [(12, 500, 7)]);
    }
}
