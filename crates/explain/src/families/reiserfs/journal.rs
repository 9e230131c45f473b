//! The journal: a ring of transactions, each with a description, copies of blocks, and an end. The
//! journal's header follows the ring.

use crate::Structure;
use fscost_ondisk::reiserfs::journal::Description;
use std::collections::{HashMap, VecDeque};

/// Maximum number of transactions in flight: their requests complete in any order.
const MOST_OPEN: usize = 8;
/// Maximum number of blocks that may arrive before their description.
const MOST_EARLY: usize = 4096;

/// Structure, transaction and home block of a block of the journal.
type Block = (Structure, Option<u64>, Option<u64>);

/// Transaction with outstanding blocks.
#[derive(Debug)]
struct Transaction {
    /// Block of its description.
    at: u64,
    description: Description,
    /// Number of blocks that have not arrived yet.
    left: u64,
}

/// State of the journal ring, used to explain its next blocks.
#[derive(Debug, Default)]
pub struct Journal {
    block_bytes: u64,
    first: u64,
    /// Number of blocks, including the header.
    blocks: u64,
    /// Transactions whose descriptions arrived last.
    open: VecDeque<Transaction>,
    /// Blocks without a description yet, with their rows.
    early: HashMap<u64, usize>,
}

impl Journal {
    /// Creates the state of a journal of `blocks` blocks, including its header.
    pub fn new(block_bytes: u64, first: u64, blocks: u64) -> Journal {
        Journal {
            block_bytes,
            first,
            blocks,
            ..Journal::default()
        }
    }

    /// Returns whether a block is in the journal.
    pub fn has(&self, block: u64) -> bool {
        (self.first..self.first + self.blocks).contains(&block)
    }

    /// Returns the block's structure, its transaction, and the home block that it copies.
    pub fn block(&mut self, block: u64, content: &[u8]) -> Block {
        let ring = self.blocks - 1;
        if block == self.first + ring {
            return (Structure::JournalSuperblock, None, None);
        }
        // A copy cannot be mistaken for a description: no block of the tree looks like one.
        if let Some(found) = Description::parse(content, self.block_bytes, ring) {
            let id = found.id;
            self.open.truncate(MOST_OPEN - 1);
            self.open.push_front(Transaction {
                at: block,
                left: found.length + 1,
                description: found,
            });
            return (Structure::JournalDescriptor, Some(id), None);
        }
        match self.described(block) {
            Some(known) => known,
            None if content.iter().all(|&byte| byte == 0) => (Structure::JournalFree, None, None),
            None => (Structure::Log, None, None),
        }
    }

    /// Returns the entry for this block in the newest description that contains it.
    fn described(&mut self, block: u64) -> Option<Block> {
        let ring = self.blocks - 1;
        // The description is number 0; the end follows the copies.
        let number = |transaction: &Transaction| (block + ring - transaction.at) % ring;
        let has = |transaction: &Transaction| {
            (1..=transaction.description.length + 1).contains(&number(transaction))
        };
        let place = self.open.iter().position(has)?;
        let transaction = self.open.get_mut(place)?;
        let (id, copy) = (Some(transaction.description.id), number(transaction) - 1);
        let structure = match copy == transaction.description.length {
            true => Structure::JournalCommit,
            false => Structure::JournalCopy,
        };
        let home = transaction.description.homes.get(copy as usize).copied();
        transaction.left = transaction.left.saturating_sub(1);
        if transaction.left == 0 {
            self.open.remove(place);
        }
        Some((structure, id, home))
    }

    /// Keeps the row of a block whose description may still arrive.
    pub fn wait(&mut self, block: u64, row: usize) {
        if self.early.len() < MOST_EARLY {
            self.early.insert(block, row);
        }
    }

    /// Returns the blocks that arrived before their description and are now described, with their
    /// rows and explanations.
    pub fn take_early(&mut self) -> Vec<(u64, usize, Block)> {
        let mut early: Vec<_> = std::mem::take(&mut self.early).into_iter().collect();
        early.sort_unstable();
        let mut known = Vec::new();
        for (block, row) in early {
            match self.described(block) {
                Some(what) => known.push((block, row, what)),
                None => self.wait(block, row),
            }
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(id: u8, homes: &[u8]) -> Vec<u8> {
        let mut content = vec![0; 4096];
        (content[0], content[4]) = (id, homes.len() as u8);
        for (number, &home) in homes.iter().enumerate() {
            content[12 + 4 * number] = home;
        }
        content[4084..4092].copy_from_slice(b"ReIsErLB");
        content
    }

    #[test]
    fn blocks_come_in_any_order() {
        let mut journal = Journal::new(4096, 18, 9);
        let copy = |id, home| (Structure::JournalCopy, Some(id), Some(home));
        let commit = |id| (Structure::JournalCommit, Some(id), None);
        let block = [1; 4096];
        assert_eq!(journal.block(20, &block).0, Structure::Log);
        journal.wait(20, 7);
        journal.block(18, &description(4, &[50, 60]));
        assert_eq!(journal.take_early(), [(20, 7, copy(4, 60))]);
        assert!(journal.take_early().is_empty());
        // The next transaction begins before the previous one has all its blocks. It wraps around
        // the end of the ring.
        journal.block(22, &description(5, &[70, 80, 90]));
        assert_eq!(journal.block(19, &block), copy(4, 50));
        assert_eq!(journal.block(21, &block), commit(4));
        assert_eq!(journal.block(25, &block), copy(5, 90));
        assert_eq!(journal.block(18, &block), commit(5));
        assert_eq!(journal.block(26, &block).0, Structure::JournalSuperblock);
    }
}
