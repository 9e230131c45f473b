//! Data reaches the disk before the metadata that names its owner: rows which wait for their
//! owner.

use std::collections::BTreeMap;

use super::{
    ownership::names_others,
    rounds::Round,
    space::{Kind, Mapper, Use},
    state::{Released, State},
};
use crate::track::newer::{Age, Newer};
use crate::track::waiting::MAX_WAITING;
use crate::{Cause, Causes, Rows, Structure};

/// A block is mapped by the transaction that runs when its data is written, or by the next where
/// one is just being committed; later ones
/// can only use it for something else.
const COMMITS: u64 = 2;

/// The number of rows below which none is dropped.
const DROP_AT_LEAST: usize = 1 << 14;

const NOBODY: Mapper = Mapper { inode: 0, node: 0 };

#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// Blocks.
    length: u64,
    commit: u64,
    /// Without a journal: what maps the blocks as far as the disk told, or nobody.
    owner: Mapper,
    /// Without a journal: the round in which it was written.
    since: Round,
    /// Whether it looks like a node or names: what does not is neither.
    may_be_metadata: bool,
}

impl Waiting {
    /// Whether what it is stays so: the data of a file that was removed before its blocks were
    /// mapped, or of one whose inode and nodes were written
    /// since.
    fn is_settled(&self, commits: u64, state: &State) -> bool {
        commits > self.commit + COMMITS
            || (self.owner != NOBODY
                && self
                    .since
                    .is_told_by(state.known_at(self.owner), state.rounds.now()))
    }
}

/// The rows that wait.
#[derive(Debug, Default)]
pub struct Pending {
    /// By first block and number of the row.
    rows: BTreeMap<(u64, usize), Waiting>,
    /// Those that came since it was last asked who waits, in their order: put in their places
    /// together, which takes far less time for a million at
    /// random places.
    recent: Vec<((u64, usize), Waiting)>,
    longest: u64,
    /// When so many wait, those are dropped that no owner can come for.
    drop_at: usize,
    /// Commits so far.
    commits: u64,
    /// Rows that were cut since it was last asked, and what was cut off them.
    cuts: Vec<(usize, usize)>,
}

impl Pending {
    /// Row `row` is of `length` blocks at `start` that have no owner, or perhaps not this one any
    /// more.
    pub fn add(
        &mut self,
        (start, length): (u64, u64),
        row: usize,
        may_be_metadata: bool,
        used: Option<Use>,
        state: &State,
    ) {
        self.longest = self.longest.max(length);
        if self.rows.len() + self.recent.len() >= self.drop_at {
            self.drop(MAX_WAITING / 2, state);
            self.drop_at = (2 * self.rows.len()).max(DROP_AT_LEAST);
        }
        let waiting = Waiting {
            length,
            commit: self.commits,
            owner: used.map_or(NOBODY, Use::mapper),
            since: state.rounds.now(),
            may_be_metadata,
        };
        self.recent.push(((start, row), waiting));
    }

    fn place(&mut self) {
        self.recent.sort_unstable_by_key(|&(key, _)| key);
        self.rows.extend(self.recent.drain(..));
    }

    /// What no owner can come for waits no longer; nor, where more than `most` are left, do those
    /// that have waited longest.
    fn drop(&mut self, most: usize, state: &State) {
        self.place();
        let commits = self.commits;
        self.rows.retain(|_, w| !w.is_settled(commits, state));
        if let Some(surplus) = self.rows.len().checked_sub(most + 1) {
            let mut numbers: Vec<_> = self.rows.keys().map(|&(_, row)| row).collect();
            let (_, &mut last, _) = numbers.select_nth_unstable(surplus);
            self.rows.retain(|&(_, row), _| row > last);
        }
    }

    /// A transaction has taken effect.
    pub fn committed(&mut self) {
        self.commits += 1;
    }

    /// Without a journal: all is on the disk, so whatever has no owner was of a file that is
    /// removed.
    pub fn settle(&mut self) {
        self.rows.clear();
        self.recent.clear();
    }

    /// Without a journal: what was written there since the blocks were known to be the inode's may
    /// be another's. It stays the inode's, with a doubt,
    /// until another is known.
    pub fn release(&mut self, released: &Released, state: &State, rows: &mut Rows) {
        let bytes = u64::from(state.superblock.block_bytes);
        let now = state.rounds.now();
        for Part {
            start,
            row,
            waiting,
        } in self.take(released.start, released.length, bytes, rows)
        {
            if waiting.owner.inode != released.inode {
                self.rows.insert((start, row), waiting);
            } else if !waiting.since.is_told_by(released.known, now) {
                let owner = NOBODY;
                self.rows.insert((start, row), Waiting { owner, ..waiting });
                if let Some(row) = rows.get_mut(row) {
                    row.is_doubtful = true;
                }
            }
        }
    }

    fn overlapping(&mut self, start: u64, length: u64) -> Vec<(u64, usize)> {
        self.place();
        let from = start.saturating_sub(self.longest);
        let end = start.saturating_add(length);
        let near = self.rows.range((from, 0)..(end, 0));
        near.filter(|&(&(at, _), waiting)| at + waiting.length > start)
            .map(|(&key, _)| key)
            .collect()
    }

    /// Rows, or what of them lies in these blocks, wait no more; their other parts go on as rows of
    /// their own.
    fn take(&mut self, start: u64, length: u64, bytes: u64, rows: &mut Rows) -> Vec<Part> {
        let end = start.saturating_add(length);
        let mut taken = Vec::new();
        for (at, row) in self.overlapping(start, length) {
            let Some(waiting) = self.rows.remove(&(at, row)) else {
                continue;
            };
            let stop = at + waiting.length;
            let (from, to) = (start.max(at), end.min(stop));
            for (part, part_end) in [(at, from), (to, stop)] {
                if part < part_end
                    && let Some(other) = split(rows, row, part * bytes, part_end * bytes)
                {
                    let length = part_end - part;
                    self.cuts.push((row, other));
                    self.rows
                        .insert((part, other), Waiting { length, ..waiting });
                }
            }
            let length = to - from;
            taken.push(Part {
                start: from,
                row,
                waiting: Waiting { length, ..waiting },
            });
        }
        taken
    }

    /// Rows that were cut since this was last asked, and what was cut off them.
    pub fn cuts(&mut self) -> Vec<(usize, usize)> {
        std::mem::take(&mut self.cuts)
    }

    /// `length` blocks at `start` are mapped: their rows are complete, with a journal for good.
    /// Returns those that have another owner than before, and the epochs in which they were written.
    pub fn resolve(
        &mut self,
        (start, length): (u64, u64),
        has_journal: bool,
        state: &State,
        rows: &mut Rows,
    ) -> Vec<(usize, u32)> {
        let bytes = u64::from(state.superblock.block_bytes);
        let mut completed = Vec::new();
        let mut taken = self.take(start, length, bytes, rows);
        // The newest first: only that is surely of who has the place now.
        taken.sort_by_cached_key(|part| std::cmp::Reverse(rows.age(part.row)));
        let mut newer = Newer::default();
        for Part {
            start,
            row,
            waiting,
        } in taken
        {
            if waiting.is_settled(self.commits, state) {
                continue;
            }
            let time = (waiting.commit, waiting.since);
            let age = newer.add(start, start + waiting.length, time);
            let used = state.space.get(start);
            let is_its = used.is_none_or(|used| {
                let is_possible = !has_journal && waiting.may_be_metadata;
                is_possible || !names_others(used.kind)
            });
            if age == Age::OfBefore || !is_its {
                continue;
            }
            let is_another = used
                .is_some_and(|used| complete(rows, row, used) || used.inode != waiting.owner.inode);
            if is_another {
                completed.push((row, waiting.since.epoch()));
            }
            if let Some(row) = rows.get_mut(row) {
                let is_unnamed = !is_another && row.path.is_none() && row.is_doubtful;
                row.is_doubtful = !has_journal && (age == Age::Overwritten || is_unnamed);
            }
            if !has_journal {
                let waiting = Waiting {
                    owner: used.map_or(NOBODY, Use::mapper),
                    ..waiting
                };
                self.rows.insert((start, row), waiting);
            }
        }
        completed
    }
}

/// What is taken of a row.
struct Part {
    /// The first block.
    start: u64,
    row: usize,
    waiting: Waiting,
}

/// Cut `from..to` off a row, at its beginning or end, as a row of its own.
fn split(rows: &mut Rows, row: usize, from: u64, to: u64) -> Option<usize> {
    let original = rows.get_mut(row)?;
    let whole = *original;
    let whole_end = whole.offset + whole.length;
    let (from, to) = (from.max(whole.offset), to.min(whole_end));
    if from >= to || to - from >= whole.length {
        return None;
    }
    if from == whole.offset {
        original.offset = to;
    }
    original.length -= to - from;
    let length = to - from;
    Some(rows.push(crate::Row {
        offset: from,
        length,
        ..whole
    }))
}

/// Returns whether it was another's before.
fn complete(rows: &mut Rows, row: usize, used: Use) -> bool {
    let Some(row) = rows.get_mut(row) else {
        return false;
    };
    let structure = match row.structure {
        Structure::DirectoryIndex => Structure::Directory,
        other => other,
    };
    let is_another = (row.inode, structure) != (used.inode.into(), used.kind.structure());
    if is_another {
        row.structure = used.kind.structure();
        row.causes = Causes::one(cause_of_new(used.kind));
        row.inode = u64::from(used.inode);
    }
    is_another
}

/// Why a block is written that was in no use before.
fn cause_of_new(kind: Kind) -> Cause {
    match kind.structure() {
        Structure::Directory => Cause::Names,
        Structure::ExtentMap => Cause::SizeOrMap,
        Structure::Xattr => Cause::LinksOrMode,
        Structure::Quota | Structure::OrphanFile => Cause::Accounting,
        _ => Cause::Data,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        journal::Piece,
        pieces::plain,
        space::{Content, Use},
        state::ext2 as state,
    };
    use super::*;

    fn own(state: &mut State, start: u64, length: u64, mapper: Mapper) -> Use {
        let kind = Kind::Content(Content::Data);
        let used = Use {
            kind,
            inode: mapper.inode,
            node: mapper.node,
        };
        state.space.claim(start, length, used);
        used
    }

    fn inode(inode: u32) -> Mapper {
        Mapper { inode, node: 0 }
    }

    /// The ten blocks at 100, which `used` has as far as is known.
    fn write(
        pending: &mut Pending,
        rows: &mut Rows,
        used: Option<Use>,
        state: &mut State,
    ) -> usize {
        let piece = Piece {
            event: 1,
            disk: 0,
            offset: 100 << 10,
            length: 10 << 10,
        };
        let mut row = plain(piece, Structure::FileData, Cause::Data);
        row.inode = used.map_or(0, |used| used.inode.into());
        let number = rows.push(row);
        state.rounds.data();
        pending.add((100, 10), number, false, used, state);
        number
    }

    fn found(rows: &Rows) -> Vec<(u64, u64, u64)> {
        let of = |r: &crate::Row| (r.offset >> 10, r.length >> 10, r.inode);
        let mut found: Vec<_> = rows.to_vec().iter().map(of).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn a_row_is_cut_where_its_owners_meet() {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        write(&mut pending, &mut rows, None, &mut state);
        own(&mut state, 103, 4, inode(12));
        own(&mut state, 107, 20, inode(13));
        pending.resolve((103, 4), true, &state, &mut rows);
        pending.resolve((107, 20), true, &state, &mut rows);
        assert_eq!(found(&rows), [(100, 3, 0), (103, 4, 12), (107, 3, 13)]);
    }

    #[test]
    fn a_later_file_does_not_own_what_was_written_before_it() {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        write(&mut pending, &mut rows, None, &mut state);
        (0..=COMMITS).for_each(|_| pending.committed());
        own(&mut state, 100, 10, inode(12));
        pending.resolve((100, 10), true, &state, &mut rows);
        assert_eq!(found(&rows), [(100, 10, 0)]);
    }

    #[test]
    fn beyond_the_bound_those_that_have_waited_longest_are_given_up() {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        for _ in 0..100 {
            write(&mut pending, &mut rows, None, &mut state);
        }
        pending.drop(100, &state);
        assert_eq!(pending.rows.len(), 100);
        pending.drop(40, &state);
        own(&mut state, 100, 10, inode(12));
        let owned = pending.resolve((100, 10), true, &state, &mut rows);
        let rows = owned.into_iter().rev().map(|(row, _)| row);
        assert!(rows.eq(60..100));
    }

    #[test]
    fn after_all_is_on_the_disk_nothing_waits() {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        write(&mut pending, &mut rows, None, &mut state);
        pending.settle();
        own(&mut state, 100, 10, inode(12));
        pending.resolve((100, 10), false, &state, &mut rows);
        assert_eq!(found(&rows), [(100, 10, 0)]);
    }

    #[test]
    fn as_many_wait_as_may() {
        let (state, mut pending) = (state(), Pending::default());
        for number in 0..=MAX_WAITING {
            pending.add((number as u64, 1), number, false, None, &state);
        }
        assert_eq!(
            pending.rows.len() + pending.recent.len(),
            MAX_WAITING / 2 + 1
        );
    }

    /// All that maps these blocks, 102 to 110, no longer does.
    fn release(pending: &mut Pending, state: &State, rows: &mut Rows) {
        let released = Released {
            start: 102,
            length: 8,
            inode: 12,
            known: state.known_at(inode(12)),
        };
        pending.release(&released, state, rows);
    }

    fn doubtful(rows: &Rows) -> Vec<u64> {
        let rows = rows.to_vec().into_iter().filter(|row| row.is_doubtful);
        let mut found: Vec<_> = rows.map(|row| row.offset >> 10).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn without_a_journal_blocks_of_a_removed_file_stay_its_own_as_far_as_they_were_known_to_be() {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        let first = own(&mut state, 100, 10, inode(12));
        write(&mut pending, &mut rows, Some(first), &mut state);
        state.written(&[inode(12)]); // still maps them: the first write is its own
        write(&mut pending, &mut rows, Some(first), &mut state);
        release(&mut pending, &state, &mut rows); // all but two no more: the second may be another's
        let cut = [(100, 2, 12), (100, 2, 12), (102, 8, 12), (102, 8, 12)];
        assert_eq!(found(&rows), cut);
        assert_eq!(doubtful(&rows), [102]);
        own(&mut state, 104, 6, inode(13));
        pending.resolve((104, 6), false, &state, &mut rows);
        let of_another = found(&rows).into_iter().filter(|r| r.2 == 13);
        assert_eq!(of_another.collect::<Vec<_>>(), [(104, 6, 13)]);
        assert_eq!(doubtful(&rows), [102]);
    }

    #[test]
    fn without_a_journal_an_inode_written_before_its_data_tells_of_it_once_a_flush_has_come() {
        for is_flushed in [false, true] {
            let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
            let first = own(&mut state, 100, 10, inode(12));
            state.written(&[inode(12)]);
            write(&mut pending, &mut rows, Some(first), &mut state);
            if is_flushed {
                state.rounds.flush();
            }
            own(&mut state, 100, 10, inode(13));
            pending.resolve((100, 10), false, &state, &mut rows);
            let owner = if is_flushed { 12 } else { 13 };
            assert_eq!(found(&rows), [(100, 10, owner)]);
        }
    }

    #[test]
    fn without_a_journal_a_node_is_believed_with_its_inode_in_any_order() {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        let node = Mapper {
            inode: 12,
            node: 50,
        };
        let of_node = Use {
            kind: Kind::Pointers(1, Content::Data),
            inode: 12,
            node: 0,
        };
        state.space.claim(50, 1, of_node);
        state.written(&[inode(12)]);
        write(&mut pending, &mut rows, None, &mut state);
        own(&mut state, 100, 10, node);
        state.written(&[node]);
        pending.resolve((100, 10), false, &state, &mut rows);
        assert_eq!(found(&rows), [(100, 10, 12)]);
        // The node was another's already, whose inode comes only now.
        own(&mut state, 100, 10, inode(13));
        pending.resolve((100, 10), false, &state, &mut rows);
        assert_eq!(found(&rows), [(100, 10, 13)]);
        // Had the first inode been written with it since, the node would be its own.
        own(&mut state, 100, 10, node);
        state.written(&[inode(12), node]);
        pending.resolve((100, 10), false, &state, &mut rows);
        own(&mut state, 100, 10, inode(13));
        pending.resolve((100, 10), false, &state, &mut rows);
        assert_eq!(found(&rows), [(100, 10, 12)]);
    }

    #[test]
    fn of_what_was_written_twice_the_first_is_the_owners_only_if_no_other_can_have_had_it() {
        for (has_journal, is_later, expected) in [
            (true, false, (12, vec![])),
            (true, true, (0, vec![])),
            (false, false, (12, vec![100])),
            (false, true, (0, vec![])),
        ] {
            let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
            let first = write(&mut pending, &mut rows, None, &mut state);
            if is_later {
                pending.committed();
                state.rounds.flush();
            }
            let second = write(&mut pending, &mut rows, None, &mut state);
            own(&mut state, 100, 10, inode(12));
            pending.resolve((100, 10), has_journal, &state, &mut rows);
            let rows_of = rows.to_vec();
            assert_eq!(rows_of[second].inode, 12);
            assert!(!rows_of[second].is_doubtful);
            assert_eq!((rows_of[first].inode, doubtful(&rows)), expected);
        }
    }

    #[test]
    fn data_is_never_a_node() {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        write(&mut pending, &mut rows, None, &mut state);
        let node = Use {
            kind: Kind::Pointers(1, Content::Data),
            inode: 12,
            node: 0,
        };
        state.space.claim(100, 1, node);
        pending.resolve((100, 1), false, &state, &mut rows);
        let structures = rows.to_vec().into_iter().map(|row| row.structure);
        assert!(structures.into_iter().all(|s| s == Structure::FileData));
    }
}
