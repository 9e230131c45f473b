//! Explanation of writes to the journal, and of home writes of journaled blocks.

use std::{collections::BTreeMap, ops::Range};

use super::{
    pieces::{BlockWrite, push_merged},
    running::{Checkpoint, Running},
};
use crate::{Cause, Causes, Disks, Row, Rows, Structure, Write};
use fscost_recording::Result;

impl Running {
    /// Remembers a row of a transaction's own blocks. Its causes are known once those of the
    /// transaction's copies are.
    pub(super) fn keep_own(&mut self, number: usize, rows: &mut Rows) {
        let row = rows.get_mut(number);
        if let Some(row) =
            row.filter(|r| r.structure != Structure::JournalCopy && r.structure.is_journal())
            && let Some(sequence) = row.transaction
        {
            self.own.entry(sequence as u32).or_default().push(number);
        }
    }

    /// Explains the home write of a block that the journal has copies of. Returns `None` if it has
    /// none, so that this write is the first to show the content.
    pub(super) fn checkpoint(&mut self, block: u64, content: &[u8]) -> Option<Checkpoint> {
        // The superblock is also written without the journal (`ext4_commit_super`).
        if block == self.state.superblock.primary_block() {
            return None;
        }
        let left = self.checkpoints.get_mut(&block)?;
        let known = *left;
        // This may be an older version than the last committed one, which is then still to be
        // written.
        if self.state.is_newest(block, content) {
            left.what.causes = Causes::NONE;
            if left.what.structure == Structure::InodeTable {
                left.what.inode = 0;
            }
        }
        let mut what = known.what;
        if what.causes.is_empty() {
            what.causes = Causes::one(Cause::Unchanged);
        }
        let home = self.written_home.entry(known.transaction).or_default();
        *home = home.and(what.causes);
        Some(Checkpoint { what, ..known })
    }

    fn journal_block(&mut self, block: u64, content: &[u8], row: Row) -> Option<Row> {
        let log = Row {
            structure: Structure::JournalFree,
            causes: Causes::one(Cause::Log),
            ..row
        };
        let position = self.journal.as_ref().and_then(|j| j.position(block));
        let Some((journal, position)) = self.journal.as_mut().zip(position) else {
            return Some(log);
        };
        let mut row = journal.write(position, content, log)?;
        let complete = journal.complete();
        if row.structure == Structure::JournalSuperblock {
            let later = match journal.tail() {
                Some(tail) => self.written_home.split_off(&tail),
                None => BTreeMap::new(),
            };
            let home = std::mem::replace(&mut self.written_home, later);
            row.causes = for_log(home.into_values().fold(Causes::NONE, Causes::and));
        } else if row.structure == Structure::JournalFastCommit {
            self.fast_commits
                .read(position, content, complete, &mut self.state);
        }
        Some(row)
    }

    pub(super) fn journal_blocks(
        &mut self,
        write: &mut BlockWrite<'_>,
        blocks: Range<u64>,
        disks: &mut Disks<'_>,
    ) -> Result<()> {
        // No transaction is written as zeros.
        if write.content.is_empty() {
            write.add(blocks, Structure::JournalFree, Cause::Log);
            return Ok(());
        }
        for block in blocks {
            let content = write.content_of(block, disks)?;
            let row = self.journal_block(block, &content, write.part(block..block + 1));
            write.found.extend(row);
        }
        Ok(())
    }

    /// Explains a write to the external journal's disk.
    pub(super) fn journal_disk(
        &mut self,
        write: &Write<'_>,
        disks: &mut Disks<'_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let mut write = BlockWrite::new(write, self.state.block_bytes());
        let (own, blocks) = (self.state.superblock.primary_block(), write.blocks());
        write.add(0..own, Structure::Unused, Cause::Accounting);
        write.add(own..own + 1, Structure::Superblock, Cause::Accounting);
        let log = blocks.start.max(own + 1)..blocks.end;
        self.journal_blocks(&mut write, log, disks)?;
        for number in push_merged(write.found, rows) {
            self.keep_own(number, rows);
        }
        self.commit(disks, rows)
    }
}

/// Returns the causes of the log's own blocks, given the causes of the blocks that they serve.
/// Access times are named, so that their cost can be added up.
pub(super) fn for_log(served: Causes) -> Causes {
    let log = Causes::one(Cause::Log);
    if served.is_atime_alone() {
        log.with(Cause::Atime)
    } else {
        log
    }
}
