//! Fast commits: inode changes in the journal, between two transactions.

use super::{
    blocks::{Mapper, Space, Use},
    fast_commit::{Record, records},
    map::Claim,
    state::State,
};

/// State from fast commits, valid until the next full transaction.
#[derive(Debug, Default)]
pub(super) struct FastCommits {
    /// Data that inodes have mapped since rows were last settled.
    new: Vec<(u32, Claim)>,
    /// Blocks claimed for inodes in fast commits.
    claimed: Vec<(u64, u64, Use)>,
}

impl FastCommits {
    /// Reads a block of the journal's fast-commit area.
    pub(super) fn read(&mut self, block: &[u8], state: &mut State) {
        for record in records(block, &state.superblock) {
            match record {
                Record::Range(inode, claim) => self.new.push((inode, claim)),
                Record::Name(directory, entry) => state.names.told(directory, &entry),
                Record::Inode(inode, generation) => state.names.told_generation(inode, generation),
            }
        }
    }

    /// Claims the free blocks among those newly mapped, and returns them: first block, number of
    /// blocks.
    pub(super) fn claim(&mut self, space: &mut Space) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        for (inode, claim) in std::mem::take(&mut self.new) {
            let used = Mapper::of_inode(inode).uses(claim.kind);
            for run in space.runs(claim.start, claim.length) {
                if run.used.is_none() {
                    space.claim(run.start, run.length, used);
                    self.claimed.push((run.start, run.length, used));
                    found.push((run.start, run.length));
                }
            }
        }
        found
    }

    /// Forgets everything: the full commit repeats everything that still holds.
    pub(super) fn forget(&mut self, space: &mut Space) {
        for (start, length, used) in std::mem::take(&mut self.claimed) {
            space.release(start, length, used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{directory::Entry, state::ext2};

    #[test]
    fn a_name_of_a_fast_commit_holds_until_the_next_transaction() {
        let mut state = ext2();
        let entry = |inode, name| Entry {
            inode,
            name,
            is_directory: false,
        };
        let mut paths = crate::Paths::default();
        state.names.inode_is(100, 7, true, false);
        state.names.add(2, &entry(100, b"old"));
        state.names.told_generation(100, 7);
        assert!(state.names.path(100, &mut paths).is_some());
        // The inode is now another file without a name.
        state.names.told_generation(100, 8);
        assert_eq!(state.names.path(100, &mut paths), None);
        state.names.told(2, &entry(100, b"new"));
        let path = state.names.path(100, &mut paths).unwrap();
        assert_eq!(paths.text(path), "/new");
        state.names.settle();
        let path = state.names.path(100, &mut paths).unwrap();
        assert_eq!(paths.text(path), "/old");
    }
}
