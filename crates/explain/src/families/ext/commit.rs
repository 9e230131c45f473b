//! Effects of a commit, and the attribution of earlier rows that follows from it.

use super::{
    blocks::is_data,
    journal::{Journal, Transaction},
    journaled::for_log,
    pieces::{blocks_of, push_merged},
    running::{Checkpoint, Running},
    state::{Applied, Blocks, Explanation, State, Trust},
};
use crate::track::{
    newer::{Age, Newer},
    reused::{Owner, Reused},
};
use crate::{Cause, Causes, Disks, Row, Rows, Shift, Structure};
use fscost_recording::Result;
use std::collections::BTreeMap;

impl Running {
    /// Applies all complete transactions.
    pub(super) fn commit(&mut self, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        // Settle rows that wait in blocks that fast commits map.
        let mapped = self.fast_commits.claim(&mut self.state, rows.next());
        for run in mapped.new {
            self.resolve(run, rows);
        }
        self.settle_reused(mapped.reused, mapped.first, rows);
        while let Some((sequence, transaction)) = self.journal.as_mut().and_then(Journal::committed)
        {
            self.transaction(sequence, &transaction, disks, rows)?;
        }
        let abandoned = self.journal.as_mut().map(Journal::abandoned);
        let lost = abandoned.iter().flatten().map(|(home, copy)| Row {
            structure: Structure::JournalCopy,
            causes: Causes::one(Cause::Unknown),
            home_offset: home.map(|home| self.state.offset_of(home)),
            ..copy.row
        });
        push_merged(lost.collect(), rows);
        Ok(())
    }

    fn transaction(
        &mut self,
        sequence: u32,
        transaction: &Transaction,
        disks: &mut Disks<'_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let copies = transaction
            .copies
            .iter()
            .filter_map(|(home, copy)| Some((*home, copy.as_ref()?)));
        let blocks: Blocks<'_> = copies
            .clone()
            .map(|(home, copy)| (home, &*copy.content))
            .collect();
        self.fast_commits.forget(&mut self.state.space);
        let applied = self.state.apply(&blocks, Trust::All, disks)?;
        let mut found = Vec::new();
        let mut causes = Causes::NONE;
        for (home, copy) in copies {
            let Some(&what) = applied.explanations.get(&home) else {
                continue;
            };
            causes = causes.and(what.causes);
            let file_block = self.state.space.file_block(home);
            let shift = file_block.and_then(|number| {
                let file_offset = number.checked_mul(self.state.block_bytes())?;
                Some(Shift::between(copy.row.offset, file_offset))
            });
            found.push(Row {
                shift,
                structure: Structure::JournalCopy,
                home: Some(what.structure),
                home_offset: Some(self.state.offset_of(home)),
                transaction: Some(sequence.into()),
                ..self.row(copy.row, what, rows)
            });
            self.owe_checkpoint(home, what, sequence);
        }
        push_merged(found, rows);
        let own = self.own.remove(&sequence).unwrap_or_default();
        for &number in &own {
            if let Some(row) = rows.get_mut(number) {
                row.causes = for_log(causes);
            }
        }
        self.pending.committed();
        self.take_effect(&applied, rows);
        self.reused(&applied, rows);
        self.mark_moved(&applied, self.first(), rows);
        if let (Some(&first), Some(&last)) = (own.first(), own.last()) {
            self.open.next(first, last);
        }
        Ok(())
    }

    /// Sets the cause of rows from `first` on that hold data which the transaction moved. In
    /// ordered mode, this data is on the disk before the transaction is complete.
    pub(super) fn mark_moved(&self, applied: &Applied, first: usize, rows: &mut Rows) {
        let moved = applied.moves.moved();
        if moved.is_empty() {
            return;
        }
        let data = Causes::one(Cause::Data);
        for number in first..rows.next() {
            let Some(row) = rows.get_mut(number).filter(|row| row.causes == data) else {
                continue;
            };
            let at = moved.partition_point(|&(inode, start, _)| {
                (u64::from(inode), self.state.offset_of(start)) <= (row.inode, row.offset)
            });
            let before = at.checked_sub(1).and_then(|at| moved.get(at));
            if before.is_some_and(|&run| contains(&self.state, run, row)) {
                row.causes = Causes::one(Cause::Defragmentation);
            }
        }
    }

    fn reused(&mut self, applied: &Applied, rows: &mut Rows) {
        let mut reused = Reused::default();
        let mut freed = BTreeMap::new();
        let bytes = self.state.block_bytes();
        for released in &applied.released {
            let from = released.inode;
            for run in self.state.space.runs(released.start, released.length) {
                let (offset, length) = (run.start * bytes, run.length * bytes);
                match run.used.filter(|used| is_data(used.kind)) {
                    Some(used) if used.inode != from || applied.remade.contains(&from) => {
                        let to = Owner {
                            inode: used.inode.into(),
                            shift: self.state.shift_of(run.start, run.file_block),
                        };
                        reused.add(offset, length, from.into(), to);
                    }
                    None if run.used.is_none() => _ = freed.insert((from, run.start), run.end()),
                    _ => {}
                }
            }
        }
        self.settle_reused(reused, self.first(), rows);
        if self.pending.reuses_at_once && !freed.is_empty() {
            self.wait_again(&freed, rows);
        }
    }

    /// Attributes rows from `first` on to the files that reuse their blocks. A row that was then
    /// overwritten may be that of another file, which was removed meanwhile, and is doubtful.
    fn settle_reused(&mut self, reused: Reused, first: usize, rows: &mut Rows) {
        self.pending.reuses_at_once |= !reused.is_empty();
        let mut settled = reused.settle(first, rows);
        settled.sort_by_cached_key(|&(number, _)| std::cmp::Reverse(rows.age(number)));
        let mut newer = Newer::default();
        for (number, _) in settled {
            self.name(number, self.state.names.epoch, rows);
            if let Some(row) = rows.get_mut(number) {
                let age = newer.add(row.offset, row.offset + row.length, ());
                row.is_doubtful |= age != Age::Newest;
            }
        }
    }

    /// Returns the first row that may belong to a file that only the next transaction names. Fast
    /// commits have named the owners of what was written before them.
    fn first(&self) -> usize {
        self.open.first().max(self.fast_commits.first())
    }

    /// Queues rows in freed blocks that were written while the transaction was open. With
    /// `data=writeback`, they may be those of the file that the next transaction gives the blocks
    /// to, or of one that was removed before the transaction was complete. `freed` has the ends of
    /// the freed runs, by inode and first block.
    fn wait_again(&mut self, freed: &BTreeMap<(u32, u64), u64>, rows: &mut Rows) {
        let bytes = self.state.block_bytes();
        let mut number = self.first();
        while let Some(row) = rows.get_mut(number) {
            let blocks = blocks_of(row, bytes);
            let inode = row.inode as u32;
            let near = freed.range((inode, 0)..(inode, blocks.end)).next_back();
            if row.structure == Structure::FileData
                && near.is_some_and(|(_, &end)| end > blocks.start)
            {
                row.is_doubtful = true;
                self.pending.add_freed(blocks, number, &self.state);
            }
            number += 1;
        }
    }

    fn owe_checkpoint(&mut self, home: u64, what: Explanation, transaction: u32) {
        let before = self.checkpoints.remove(&home).map(|before| before.what);
        if what.structure != Structure::FileData {
            let what = owed(before, what);
            let checkpoint = Checkpoint { what, transaction };
            self.checkpoints.insert(home, checkpoint);
        }
    }

    pub(super) fn take_effect(&mut self, applied: &Applied, rows: &mut Rows) {
        if self.journal.is_none() {
            for released in &applied.released {
                self.pending.release(released, &self.state, rows);
            }
            self.follow_cuts(rows);
            self.state.written(&applied.mappers);
        }
        for &claimed in &applied.claimed {
            self.resolve(claimed, rows);
        }
    }

    /// Attributes rows that wait in newly mapped blocks to their owner.
    pub(super) fn resolve(&mut self, blocks: (u64, u64), rows: &mut Rows) {
        let has_journal = self.journal.is_some();
        let completed = self.pending.resolve(blocks, has_journal, &self.state, rows);
        self.follow_cuts(rows);
        for (number, epoch) in completed {
            self.name(number, epoch, rows);
        }
    }

    /// Names a row of an epoch after its owner.
    pub(super) fn name(&mut self, number: usize, epoch: u32, rows: &mut Rows) {
        let names = &mut self.state.names;
        if self.journal.is_none() {
            self.naming.later(number, epoch, names, rows);
        } else if let Some(inode) = rows.get_mut(number).map(|row| row.inode as u32) {
            let path = names.path(inode, &mut rows.paths);
            if let Some(row) = rows.get_mut(number) {
                row.path = path;
            }
        }
    }

    fn follow_cuts(&mut self, rows: &mut Rows) {
        for (whole, part) in self.pending.cuts() {
            self.naming.cut(whole, part, &self.state.names, rows);
        }
    }

    /// Settles waiting rows and names once all changes are on the disk. Does nothing with a
    /// journal.
    pub(super) fn settle(&mut self, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        if self.journal.is_none() {
            let applied = self.state.settle(disks)?;
            self.take_effect(&applied, rows);
            self.pending.settle();
            self.naming.again(&mut self.state.names, rows);
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        self.settle(disks, rows)?;
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        for (sequence, transaction) in journal.uncommitted() {
            self.transaction(sequence, &transaction, disks, rows)?;
        }
        self.commit(disks, rows)
    }
}

/// Returns whether all of a row lies in a run of blocks of an inode.
fn contains(state: &State, (inode, start, length): (u32, u64, u64), row: &Row) -> bool {
    let (from, to) = (
        state.offset_of(start),
        state.offset_of(start.saturating_add(length)),
    );
    row.inode == u64::from(inode)
        && from <= row.offset
        && row.offset.saturating_add(row.length) <= to
}

/// Returns the explanation of the next home write of a block: all copies since the last home write,
/// if the use of the block has not changed. The journal forgets a freed block
/// (`jbd2_journal_forget`). Its former content is never written home, so its next owner is not
/// charged for it.
fn owed(before: Option<Explanation>, now: Explanation) -> Explanation {
    let form = |what: &Explanation| match what.structure {
        Structure::DirectoryIndex => Structure::Directory,
        other => other,
    };
    let is_table = now.structure == Structure::InodeTable;
    let of_one = |before: &Explanation| {
        form(before) == form(&now) && (is_table || before.inode == now.inode)
    };
    let Some(before) = before.filter(of_one) else {
        return now;
    };
    Explanation {
        causes: before.causes.and(now.causes),
        // Changes to several inodes in one table block belong to no single inode.
        inode: match before.causes.is_empty() || before.inode == now.inode {
            true => now.inode,
            false => 0,
        },
        ..now
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        blocks::{Content, Kind, Use},
        state::{Released, ext2},
    };
    use super::*;

    /// A file frees ten blocks in one transaction, and the next one gives them to another file.
    #[test]
    fn rows_in_freed_blocks_are_of_the_next_file_where_a_transaction_reuses_its_own() {
        for (reuses_at_once, is_written_again, expected) in [
            (false, false, (12, false)),
            (true, false, (13, false)),
            (true, true, (12, true)),
        ] {
            let mut running = Running::new(ext2(), None);
            running.pending.reuses_at_once = reuses_at_once;
            let mut rows = Rows::default();
            let number = rows.push(Row {
                inode: 12,
                ..Row::data(100 << 10, 10 << 10)
            });
            let mut applied = Applied::default();
            applied.released.push(Released {
                start: 100,
                length: 10,
                inode: 12,
                known: Default::default(),
            });
            running.pending.committed();
            running.reused(&applied, &mut rows);
            if is_written_again {
                let again = rows.push(Row::data(100 << 10, 10 << 10));
                running
                    .pending
                    .add(100..110, again, false, None, &running.state);
            }
            let used = Use {
                kind: Kind::Content(Content::Data),
                inode: 13,
                node: 0,
            };
            running.state.space.claim(100, 10, used);
            running.pending.committed();
            running
                .pending
                .resolve((100, 10), true, &running.state, &mut rows);
            let row = rows.get_mut(number).unwrap();
            assert_eq!((row.inode, row.is_doubtful), expected);
        }
    }

    fn what(structure: Structure, cause: Cause, inode: u32) -> Explanation {
        Explanation {
            structure,
            causes: Causes::one(cause),
            inode,
        }
    }

    #[test]
    fn a_block_owes_nothing_for_what_it_was_to_another() {
        let old = what(Structure::Directory, Cause::Accounting, 12);
        let new = what(Structure::Directory, Cause::DirectoryEntries, 13);
        assert_eq!(owed(Some(old), new), new);
        let node = what(Structure::ExtentMap, Cause::SizeOrExtents, 12);
        assert_eq!(owed(Some(node), old), old);
        assert_eq!(owed(None, new), new);
    }

    #[test]
    fn copies_of_one_thing_add_up() {
        let leaf = what(Structure::Directory, Cause::Accounting, 12);
        let root = what(Structure::DirectoryIndex, Cause::DirectoryEntries, 12);
        let causes = leaf.causes.and(root.causes);
        assert_eq!(owed(Some(leaf), root), Explanation { causes, ..root });
        let one = what(Structure::InodeTable, Cause::Atime, 12);
        let other = what(Structure::InodeTable, Cause::Times, 13);
        let both = Explanation {
            causes: one.causes.and(other.causes),
            inode: 0,
            ..other
        };
        assert_eq!(owed(Some(one), other), both);
    }
}
