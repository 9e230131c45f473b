//! Fast commits: inode changes in the journal, between two transactions.

use super::{
    blocks::{Mapper, Run, Space, Use, is_data},
    fast_commit::{Record, records},
    map::Claim,
    state::State,
};
use crate::hash::HashSet;
use crate::track::reused::{Owner, Reused};
use std::collections::BTreeMap;

/// State from fast commits, valid until the next full transaction.
#[derive(Debug, Default)]
pub(super) struct FastCommits {
    /// Blocks of the fast-commit area without a block that ends a fast commit yet, by position.
    open: BTreeMap<u32, Box<[u8]>>,
    /// Transaction of the last fast commit, and the position after it.
    end: Option<(u32, u32)>,
    /// Data that inodes have mapped since rows were last settled.
    new: Vec<(u32, Claim)>,
    /// Uses that fast commits gave to blocks, with the blocks as they were before.
    claimed: Vec<(Use, Run)>,
    /// Inodes that became other files in the last fast commit.
    remade: HashSet<u32>,
    /// True from the end of a fast commit until rows are settled.
    is_complete: bool,
    /// First row that the next fast commit may have seen written.
    first: usize,
}

/// What fast commits have mapped since rows were last settled.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    /// Blocks that were free: first block, number of blocks.
    pub new: Vec<(u64, u64)>,
    /// Data blocks of other files. Only `data=writeback` reuses blocks before the transaction that
    /// freed them is committed (`ext4_free_blocks`).
    pub reused: Reused,
    /// First row that the last fast commit may have seen written.
    pub first: usize,
}

impl FastCommits {
    /// Reads a block of the journal's fast-commit area; `complete` is the last transaction that was
    /// complete. RAID 4, 5 and 6 write pages of 4 KiB, and with them the smaller blocks beside a
    /// new one, which may hold fast commits of transactions that are complete.
    pub(super) fn read(
        &mut self,
        position: u32,
        block: &[u8],
        complete: Option<u32>,
        state: &mut State,
    ) {
        self.open.insert(position, block.into());
        let tail = records(block, &state.superblock).find_map(|record| match record {
            Record::Tail(transaction) => Some(transaction),
            _ => None,
        });
        let Some(tail) = tail else {
            return;
        };
        let begin = self.end.filter(|&(transaction, _)| transaction == tail);
        let begin = begin.map_or(0, |(_, position)| position);
        // `tid_gt` of include/linux/jbd2.h
        let is_new = |complete| tail.wrapping_sub(complete) as i32 > 0;
        if position < begin || !complete.is_none_or(is_new) {
            self.open.remove(&position);
            return;
        }
        for (_, block) in std::mem::take(&mut self.open).range(begin..=position) {
            self.apply(block, state);
        }
        self.end = Some((tail, position.saturating_add(1)));
        self.is_complete = true;
    }

    fn apply(&mut self, block: &[u8], state: &mut State) {
        for record in records(block, &state.superblock) {
            match record {
                Record::Range(inode, claim) => self.new.push((inode, claim)),
                Record::Name(directory, entry) => state.names.told(directory, &entry),
                Record::Inode(inode, generation) => {
                    if state.names.told_generation(inode, generation) {
                        self.remade.insert(inode);
                    }
                }
                Record::Tail(_) => {}
            }
        }
    }

    /// Claims the blocks that were newly mapped; `next` is the number of the next row.
    pub(super) fn claim(&mut self, state: &mut State, next: usize) -> Mapped {
        let mut found = Mapped {
            first: self.first,
            ..Mapped::default()
        };
        let bytes = state.block_bytes();
        for (inode, claim) in std::mem::take(&mut self.new) {
            let used = Mapper::of_inode(inode).uses(claim.kind);
            for run in state.space.runs(claim.start, claim.length) {
                let file_block = Some(claim.first + (run.start - claim.start));
                match run.used {
                    None => found.new.push((run.start, run.length)),
                    Some(before) if is_data(before.kind) && self.is_another(before, inode) => {
                        let offset = run.start.saturating_mul(bytes);
                        let length = run.length.saturating_mul(bytes);
                        let to = Owner {
                            inode: inode.into(),
                            shift: state.shift_of(run.start, file_block),
                        };
                        found.reused.add(offset, length, before.inode.into(), to);
                    }
                    Some(_) => continue,
                }
                state.space.map(run.start, run.length, used, file_block);
                self.claimed.push((used, run));
            }
        }
        if std::mem::take(&mut self.is_complete) {
            self.first = next;
            self.remade.clear();
        }
        found
    }

    /// Returns whether these blocks were those of another file than the inode now is.
    fn is_another(&self, before: Use, inode: u32) -> bool {
        before.inode != inode || self.remade.contains(&inode)
    }

    /// Forgets everything: the full commit repeats everything that still holds.
    pub(super) fn forget(&mut self, space: &mut Space) {
        self.open.clear();
        self.end = None;
        for (used, before) in std::mem::take(&mut self.claimed).into_iter().rev() {
            space.release(before.start, before.length, used);
            if let Some(used) = before.used {
                space.map(before.start, before.length, used, before.file_block);
            }
        }
    }

    /// Returns the first row that was written since the last fast commit.
    pub(super) fn first(&self) -> usize {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        blocks::{Content, Kind, Mapper, Use},
        directory::Entry,
        map::Claim,
        state::ext2,
    };
    use super::FastCommits;
    use crate::{Row, Rows};

    const DATA: Kind = Kind::Content(Content::Data);

    fn data(inode: u32) -> Use {
        Mapper::of_inode(inode).uses(DATA)
    }

    /// Inode 13 maps blocks of inode 12 in a fast commit, before a transaction frees them.
    #[test]
    fn blocks_that_another_file_reuses_are_its_own_until_the_next_transaction() {
        let mut state = ext2();
        state.space.claim(100, 10, data(12));
        let mut rows = Rows::default();
        let mut push = || {
            rows.push(Row {
                inode: 12,
                ..Row::data(100 << 10, 10 << 10)
            })
        };
        // The second row was written after a fast commit.
        let (old, new) = (push(), push());
        let mut commits = FastCommits {
            first: new,
            is_complete: true,
            new: vec![(
                13,
                Claim {
                    start: 100,
                    length: 10,
                    first: 0,
                    kind: DATA,
                },
            )],
            ..FastCommits::default()
        };
        let mapped = commits.claim(&mut state, rows.next());
        assert!(mapped.new.is_empty());
        assert_eq!(state.space.get(105), Some(data(13)));
        let settled = mapped.reused.settle(mapped.first, &mut rows);
        assert_eq!(settled, [(new, 13)]);
        assert_eq!(rows.get_mut(old).map(|row| row.inode), Some(12));
        assert_eq!(commits.first(), new + 1);
        commits.forget(&mut state.space);
        assert_eq!(state.space.get(105), Some(data(12)));
    }

    #[test]
    fn blocks_of_the_same_inode_are_reused_only_if_it_became_another_file() {
        for is_remade in [false, true] {
            let mut state = ext2();
            state.space.claim(100, 10, data(12));
            let claim = Claim {
                start: 100,
                length: 10,
                first: 0,
                kind: DATA,
            };
            let mut commits = FastCommits {
                new: vec![(12, claim)],
                remade: is_remade.then_some(12).into_iter().collect(),
                ..FastCommits::default()
            };
            let mapped = commits.claim(&mut state, 0);
            assert_eq!(mapped.reused.is_empty(), !is_remade);
            assert_eq!(state.space.get(100), Some(data(12)));
        }
    }

    /// A page of RAID 5 holds four blocks of 1 KiB: what was just written, and what was there.
    #[test]
    fn blocks_beside_a_fast_commit_are_what_they_were() {
        let tag = |tag: u16, words: &[u32]| {
            let length = 4 * words.len() as u16;
            let body = words.iter().flat_map(|word| word.to_le_bytes());
            let head = [tag.to_le_bytes(), length.to_le_bytes()].concat();
            head.into_iter().chain(body).collect::<Vec<u8>>()
        };
        let range = |inode, start| tag(1, &[inode, 0, 4, start]);
        let tail = |transaction| tag(8, &[transaction, 0]);
        let mut state = ext2();
        let mut commits = FastCommits::default();
        let mut read = |position, block: &[u8]| {
            commits.read(position, block, Some(6), &mut state);
            let new = std::mem::take(&mut commits.new);
            new.into_iter().map(|(inode, _)| inode).collect::<Vec<_>>()
        };
        let (first, second) = (range(12, 100), [range(13, 200), tail(7)].concat());
        let stale = [range(99, 300), tail(6)].concat();
        assert!(read(10, &first).is_empty(), "the fast commit is not whole");
        assert!(read(11, &stale).is_empty());
        assert!(read(12, &range(98, 300)).is_empty());
        assert!(read(10, &first).is_empty());
        assert_eq!(read(11, &second), [12, 13]);
        // The next fast commit, with the last of this one before it.
        assert!(read(11, &second).is_empty());
        assert_eq!(read(12, &[range(14, 400), tail(7)].concat()), [14]);
        // The next transaction begins again.
        assert_eq!(read(10, &[range(15, 500), tail(8)].concat()), [15]);
    }

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
