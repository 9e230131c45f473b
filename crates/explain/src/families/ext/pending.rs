//! Rows that wait for their owner, because data reaches the disk before the metadata that names its
//! owner.

use std::{collections::BTreeMap, ops::Range};

use super::{
    blocks::{Kind, Mapper, Use, structure_of},
    ownership::names_others,
    rounds::Round,
    state::{Released, State},
};
use crate::track::newer::{Age, Newer};
use crate::track::waiting::MAX_WAITING;
use crate::{Cause, Causes, Rows, Shift, Structure};

/// Number of commits for which a row waits. A block is mapped by the transaction that runs when its
/// data is written, or by the next one if a transaction is just being committed. Later transactions
/// can only map the block for another use.
const COMMITS: u64 = 2;

/// Number of waiting rows below which no row is dropped.
const DROP_AT_LEAST: usize = 1 << 14;

const NOBODY: Mapper = Mapper { inode: 0, node: 0 };

#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// Number of blocks.
    length: u64,
    commit: u64,
    /// Mapper of the blocks as far as the disk shows it, or nobody. Relevant only without a
    /// journal.
    owner: Mapper,
    /// Round in which the row was written. Relevant only without a journal.
    since: Round,
    /// True if the content looks like a node or directory entries. Other content is neither.
    may_be_metadata: bool,
}

impl Waiting {
    /// Returns whether the row's attribution is final. Either the file was removed before its
    /// blocks were mapped, or its inode and nodes were written since.
    fn is_settled(&self, commits: u64, state: &State) -> bool {
        commits > self.commit + COMMITS
            || (self.owner != NOBODY
                && self
                    .since
                    .is_told_by(state.known_at(self.owner), state.rounds.now))
    }
}

/// Waiting rows.
#[derive(Debug, Default)]
pub struct Pending {
    /// Waiting rows by first block and row number.
    rows: BTreeMap<(u64, usize), Waiting>,
    /// Rows added since the last lookup, in order of arrival. Inserting them together is far faster
    /// for a million rows at random places.
    recent: Vec<((u64, usize), Waiting)>,
    longest: u64,
    /// Number of waiting rows at which rows that can no longer get an owner are dropped.
    drop_at: usize,
    /// Number of commits so far.
    commits: u64,
    /// Rows split since the last query, each with the part that was split off.
    cuts: Vec<(usize, usize)>,
    /// True once blocks were reused in the transaction that freed them, which only
    /// `data=writeback` allows.
    pub reuses_at_once: bool,
}

impl Pending {
    /// Adds row `row` of these blocks, whose owner is unknown or possibly outdated.
    pub fn add(
        &mut self,
        blocks: Range<u64>,
        row: usize,
        may_be_metadata: bool,
        used: Option<Use>,
        state: &State,
    ) {
        let length = blocks.end - blocks.start;
        self.longest = self.longest.max(length);
        if self.rows.len() + self.recent.len() >= self.drop_at {
            self.drop(MAX_WAITING / 2, state);
            self.drop_at = (2 * self.rows.len()).max(DROP_AT_LEAST);
        }
        let waiting = Waiting {
            length,
            commit: self.commits,
            owner: used.map_or(NOBODY, Use::mapper),
            since: state.rounds.now,
            may_be_metadata,
        };
        self.recent.push(((blocks.start, row), waiting));
    }

    /// Adds a row of blocks that the last transaction freed. It was written before that transaction
    /// took effect.
    pub fn add_freed(&mut self, blocks: Range<u64>, row: usize, state: &State) {
        self.add(blocks, row, false, None, state);
        if let Some((_, waiting)) = self.recent.last_mut() {
            waiting.commit = waiting.commit.saturating_sub(1);
        }
    }

    fn place(&mut self) {
        self.recent.sort_unstable_by_key(|&(key, _)| key);
        self.rows.extend(self.recent.drain(..));
    }

    /// Drops rows that no owner can claim any more and, if more than `most` remain, those that have
    /// waited longest.
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

    /// Counts a transaction that has taken effect.
    pub fn committed(&mut self) {
        self.commits += 1;
    }

    /// Drops all waiting rows. Everything is on the disk, so rows without an owner belong to
    /// removed files. Called only without a journal.
    pub fn settle(&mut self) {
        self.rows.clear();
        self.recent.clear();
    }

    /// Marks rows in released blocks as doubtful if they were written after the blocks were last
    /// known to be the inode's. Such writes may belong to another file. They stay attributed to the
    /// inode until another owner is known. Called only without a journal.
    pub fn release(&mut self, released: &Released, state: &State, rows: &mut Rows) {
        let now = state.rounds.now;
        for mut part in self.take(released.start, released.length, state.block_bytes(), rows) {
            if part.waiting.owner.inode == released.inode {
                if part.waiting.since.is_told_by(released.known, now) {
                    continue;
                }
                part.waiting.owner = NOBODY;
                if let Some(row) = rows.get_mut(part.row) {
                    row.is_doubtful = true;
                }
            }
            self.rows.insert((part.start, part.row), part.waiting);
        }
    }

    /// Removes the rows in these blocks from the waiting rows. The parts outside become separate
    /// rows and keep waiting.
    fn take(&mut self, start: u64, length: u64, bytes: u64, rows: &mut Rows) -> Vec<Part> {
        self.place();
        let end = start.saturating_add(length);
        let first = start.saturating_sub(self.longest);
        let near = self.rows.range((first, 0)..(end, 0));
        let near = near.map(|(&key, &waiting)| (key, waiting));
        let overlapping = near.filter(|((at, _), waiting)| at + waiting.length > start);
        let mut taken = Vec::new();
        for ((at, row), waiting) in overlapping.collect::<Vec<_>>() {
            self.rows.remove(&(at, row));
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

    /// Returns the rows split since the last call, each with the part that was split off.
    pub fn cuts(&mut self) -> Vec<(usize, usize)> {
        std::mem::take(&mut self.cuts)
    }

    /// Completes the rows of `length` blocks at `start`, which are now mapped. With a journal, this
    /// is final; if blocks are reused at once, an overwritten row may be that of a file that was
    /// removed before the transaction was complete, and is doubtful. Returns the rows whose owner
    /// changed, with the epochs in which they were written.
    pub fn resolve(
        &mut self,
        (start, length): (u64, u64),
        has_journal: bool,
        state: &State,
        rows: &mut Rows,
    ) -> Vec<(usize, u32)> {
        let mut completed = Vec::new();
        let mut taken = self.take(start, length, state.block_bytes(), rows);
        // Newest first: only the newest row certainly belongs to the current owner.
        taken.sort_by_cached_key(|part| std::cmp::Reverse(rows.age(part.row)));
        let mut newer = Newer::default();
        for mut part in taken {
            let Part { row, waiting, .. } = part;
            if waiting.is_settled(self.commits, state) {
                continue;
            }
            let time = (waiting.commit, waiting.since);
            let age = newer.add(part.start, part.start + waiting.length, time);
            let used = state.space.get(part.start);
            let may_be_metadata = !has_journal && waiting.may_be_metadata;
            let is_its = may_be_metadata || !used.is_some_and(|used| names_others(used.kind));
            if age == Age::OfBefore || !is_its {
                continue;
            }
            let shift = state.shift_of(part.start, state.space.file_block(part.start));
            let is_another = used.is_some_and(|used| {
                complete(rows, row, used, shift) || used.inode != waiting.owner.inode
            });
            if is_another {
                completed.push((row, waiting.since.epoch));
            }
            if let Some(row) = rows.get_mut(row) {
                let is_unnamed = !is_another && row.path.is_none() && row.is_doubtful;
                let is_overwritten = age == Age::Overwritten;
                row.is_doubtful = match has_journal {
                    true => is_overwritten && self.reuses_at_once,
                    false => is_overwritten || is_unnamed,
                };
            }
            if !has_journal {
                part.waiting.owner = used.map_or(NOBODY, Use::mapper);
                self.rows.insert((part.start, part.row), part.waiting);
            }
        }
        completed
    }
}

/// Part taken from a row.
struct Part {
    /// The first block.
    start: u64,
    row: usize,
    waiting: Waiting,
}

/// Splits `from..to` off the beginning or end of a row as a separate row.
fn split(rows: &mut Rows, row: usize, from: u64, to: u64) -> Option<usize> {
    let original = rows.get_mut(row)?;
    let whole = *original;
    let offset = from.max(whole.offset);
    let length = to.min(whole.offset + whole.length).saturating_sub(offset);
    if length == 0 || length >= whole.length {
        return None;
    }
    if offset == whole.offset {
        original.offset += length;
    }
    original.length -= length;
    Some(rows.push(crate::Row {
        offset,
        length,
        ..whole
    }))
}

/// Attributes a row to the current use of its block. Returns whether the attribution changed.
fn complete(rows: &mut Rows, row: usize, used: Use, shift: Option<Shift>) -> bool {
    let Some(row) = rows.get_mut(row) else {
        return false;
    };
    row.shift = shift;
    let structure = match row.structure {
        Structure::DirectoryIndex => Structure::Directory,
        other => other,
    };
    let is_another = (row.inode, structure) != (used.inode.into(), structure_of(used.kind));
    if is_another {
        row.structure = structure_of(used.kind);
        row.causes = Causes::one(cause_of_new(used.kind));
        row.inode = u64::from(used.inode);
    }
    is_another
}

/// Returns the cause of a write to a block that was not in use before.
fn cause_of_new(kind: Kind) -> Cause {
    match structure_of(kind) {
        Structure::Directory => Cause::DirectoryEntries,
        Structure::ExtentMap => Cause::SizeOrExtents,
        Structure::Xattr => Cause::LinksOrMode,
        Structure::Quota | Structure::OrphanFile => Cause::Accounting,
        _ => Cause::Data,
    }
}

#[cfg(test)]
mod tests;
