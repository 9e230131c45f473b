//! Data reaches the disk before the metadata that says whose it is: rows which wait for their owner.

use std::collections::{BTreeMap, HashMap};

use super::{space::Kind, state::State};
use crate::classify::waiting::MAX_WAITING;
use crate::classify::{Cause, Causes, Rows, Structure};

/// A block is mapped by the transaction that runs when its data is written, or by the next where one is just being committed; later ones
/// can only use it for something else.
const COMMITS: u64 = 2;

/// The number of rows below which none is dropped.
const DROP_AT_LEAST: usize = 1 << 14;

#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// Blocks.
    length: u64,
    event: u64,
    commit: u64,
    /// Without a journal: who owned the blocks as far as the disk told, or 0.
    owner: u32,
}

impl Waiting {
    /// Whether what it is stays so: the data of a file that was removed before its blocks were mapped, or of one that was written since.
    fn is_settled(&self, commits: u64, confirmed: &HashMap<u32, u64>) -> bool {
        let confirmed = || confirmed.get(&self.owner).is_some_and(|&e| e > self.event);
        commits > self.commit + COMMITS || (self.owner != 0 && confirmed())
    }
}

/// The rows that wait.
#[derive(Debug, Default)]
pub struct Pending {
    /// By first block and number of the row.
    rows: BTreeMap<(u64, usize), Waiting>,
    /// Those that came since it was last asked who waits, in their order: put in their places together, which takes far less time for a million at
    /// random places.
    recent: Vec<((u64, usize), Waiting)>,
    longest: u64,
    /// When so many wait, those are dropped that no owner can come for.
    drop_at: usize,
    /// Commits so far.
    commits: u64,
    /// The event at which an inode in use was last written, where there is no journal.
    confirmed: HashMap<u32, u64>,
}

impl Pending {
    /// Row `row` is of `length` blocks at `start` that have no owner, or perhaps not this one any more.
    pub fn add(&mut self, start: u64, length: u64, row: usize, event: u64, owner: u32) {
        self.longest = self.longest.max(length);
        if self.rows.len() + self.recent.len() >= self.drop_at {
            self.drop(MAX_WAITING / 2);
            self.drop_at = (2 * self.rows.len()).max(DROP_AT_LEAST);
        }
        let commit = self.commits;
        let waiting = Waiting {
            length,
            event,
            commit,
            owner,
        };
        self.recent.push(((start, row), waiting));
    }

    fn place(&mut self) {
        self.recent.sort_unstable_by_key(|&(key, _)| key);
        self.rows.extend(self.recent.drain(..));
    }

    /// What no owner can come for waits no longer; nor, where more than `most` are left, do those that have waited longest.
    fn drop(&mut self, most: usize) {
        self.place();
        let (commits, confirmed) = (self.commits, &self.confirmed);
        self.rows.retain(|_, w| !w.is_settled(commits, confirmed));
        if let Some(surplus) = self.rows.len().checked_sub(most + 1) {
            let mut events: Vec<_> = self.rows.values().map(|w| w.event).collect();
            let (_, &mut last, _) = events.select_nth_unstable(surplus);
            self.rows.retain(|_, w| w.event > last);
        }
    }

    /// A transaction has taken effect.
    pub fn committed(&mut self) {
        self.commits += 1;
    }

    /// Without a journal: the inode was written, so what it mapped before `event` was its own.
    pub fn confirm(&mut self, inode: u32, event: u64) {
        self.confirmed.insert(inode, event);
    }

    /// Without a journal: `inode` was written and maps these no longer. What was written there since it last did may be another's.
    pub fn release(&mut self, start: u64, length: u64, inode: u32) {
        let confirmed = self.confirmed.get(&inode).copied().unwrap_or(0);
        for (at, row) in self.overlapping(start, length) {
            if let Some(waiting) = self.rows.get_mut(&(at, row))
                && waiting.owner == inode
                && waiting.event > confirmed
            {
                waiting.owner = 0;
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

    /// `length` blocks at `start` were mapped: their rows are complete. Returns their numbers.
    pub fn resolve(
        &mut self,
        start: u64,
        length: u64,
        state: &mut State,
        rows: &mut Rows,
    ) -> Vec<usize> {
        let end = start.saturating_add(length);
        let mut completed = Vec::new();
        for (at, row) in self.overlapping(start, length) {
            let Some(waiting) = self.rows.remove(&(at, row)) else {
                continue;
            };
            if waiting.is_settled(self.commits, &self.confirmed) {
                continue;
            }
            let stop = at + waiting.length;
            let bytes = u64::from(state.superblock.block_bytes);
            for (part, part_end) in [(at, start.min(stop)), (end.max(at), stop)] {
                if part < part_end
                    && let Some(other) = split(rows, row, part * bytes, part_end * bytes)
                {
                    let length = part_end - part;
                    self.rows
                        .insert((part, other), Waiting { length, ..waiting });
                }
            }
            complete(rows, row, start.max(at), state);
            completed.push(row);
        }
        completed
    }
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
    Some(rows.push(crate::classify::Row {
        offset: from,
        length,
        ..whole
    }))
}

fn complete(rows: &mut Rows, row: usize, block: u64, state: &mut State) {
    let Some(used) = state.space.get(block) else {
        return;
    };
    let path = state.names.path(used.inode, &mut rows.paths);
    if let Some(row) = rows.get_mut(row) {
        row.structure = used.kind.structure();
        row.causes = Causes::one(cause_of_new(used.kind));
        row.inode = u64::from(used.inode);
        row.path = path;
    }
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
        superblock::Superblock,
    };
    use super::*;

    /// 1 KiB blocks, 8 MiB.
    fn state() -> State {
        let mut bytes = [0; 1024];
        let fields = [
            (0, 2048),
            (4, 8192),
            (0x14, 1),
            (0x20, 8192),
            (0x28, 2048),
            (0x38, 0xEF53),
        ];
        for (at, value) in fields {
            bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
        }
        State::new(Superblock::parse(&bytes).unwrap(), 0)
    }

    fn own(state: &mut State, start: u64, length: u64, inode: u32) {
        let kind = Kind::Content(Content::Data);
        state.space.claim(start, length, Use { kind, inode });
    }

    fn write(pending: &mut Pending, rows: &mut Rows, event: u64, owner: u32) -> usize {
        let piece = Piece {
            event,
            disk: 0,
            offset: 100 << 10,
            length: 10 << 10,
        };
        let mut row = plain(piece, Structure::FileData, Cause::Data);
        row.inode = u64::from(owner);
        let number = rows.push(row);
        pending.add(100, 10, number, event, owner);
        number
    }

    fn found(rows: &Rows) -> Vec<(u64, u64, u64)> {
        let of = |r: &crate::classify::Row| (r.offset >> 10, r.length >> 10, r.inode);
        let mut found: Vec<_> = rows.to_vec().iter().map(of).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn a_row_is_cut_where_its_owners_meet() {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        write(&mut pending, &mut rows, 1, 0);
        own(&mut state, 103, 4, 12);
        own(&mut state, 107, 20, 13);
        pending.resolve(103, 4, &mut state, &mut rows);
        pending.resolve(107, 20, &mut state, &mut rows);
        assert_eq!(found(&rows), [(100, 3, 0), (103, 4, 12), (107, 3, 13)]);
    }

    #[test]
    fn a_later_file_does_not_own_what_was_written_before_it() {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        write(&mut pending, &mut rows, 1, 0);
        (0..=COMMITS).for_each(|_| pending.committed());
        own(&mut state, 100, 10, 12);
        pending.resolve(100, 10, &mut state, &mut rows);
        assert_eq!(found(&rows), [(100, 10, 0)]);
    }

    #[test]
    fn beyond_the_bound_those_that_have_waited_longest_are_given_up() {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        for event in 0..100 {
            write(&mut pending, &mut rows, event, 0);
        }
        pending.drop(100);
        assert_eq!(pending.rows.len(), 100);
        pending.drop(40);
        own(&mut state, 100, 10, 12);
        let owned = pending.resolve(100, 10, &mut state, &mut rows);
        assert!(owned.into_iter().eq(60..100));
    }

    #[test]
    fn as_many_wait_as_may() {
        let mut pending = Pending::default();
        for number in 0..=MAX_WAITING {
            pending.add(number as u64, 1, number, number as u64, 0);
        }
        assert_eq!(
            pending.rows.len() + pending.recent.len(),
            MAX_WAITING / 2 + 1
        );
    }

    #[test]
    fn without_a_journal_the_last_word_is_that_of_the_inodes() {
        let (mut state, mut pending, mut rows) = (state(), Pending::default(), Rows::default());
        write(&mut pending, &mut rows, 1, 12);
        pending.confirm(12, 2); // still maps them: the first write is its own
        write(&mut pending, &mut rows, 3, 12);
        pending.release(100, 10, 12); // no more: the second may be another's
        pending.confirm(12, 4);
        own(&mut state, 100, 10, 13);
        pending.resolve(100, 10, &mut state, &mut rows);
        assert_eq!(found(&rows), [(100, 10, 12), (100, 10, 13)]);
    }
}
