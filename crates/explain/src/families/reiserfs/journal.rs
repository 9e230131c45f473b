//! The journal: transactions of a description, copies of blocks, and an end, around a ring; its
//! header is behind it.

use crate::Structure;
use crate::bytes::{le32, part};
use std::collections::{HashMap, VecDeque};

/// So many transactions are on their way to the disk at once: their requests complete in any order.
const MOST_OPEN: usize = 8;
/// So many blocks may be there before their description is.
const MOST_EARLY: usize = 4096;

/// Where a block of the journal belongs.
type Block = (Structure, Option<u64>, Option<u64>);

/// A transaction whose blocks are awaited: its number, where its description is, and what it
/// copies.
#[derive(Debug)]
struct Transaction {
    id: u64,
    at: u64,
    length: u64,
    homes: Vec<u64>,
    /// Blocks that are not there yet.
    left: u64,
}

/// What the ring's next blocks are.
#[derive(Debug)]
pub struct Journal {
    block_bytes: u64,
    first: u64,
    /// The header's block included.
    blocks: u64,
    /// The last that were described.
    open: VecDeque<Transaction>,
    /// Blocks without a description yet, and their rows.
    early: HashMap<u64, usize>,
}

impl Journal {
    /// One of so many blocks, its header included.
    pub fn new(block_bytes: u64, first: u64, blocks: u64) -> Journal {
        Journal {
            block_bytes,
            first,
            blocks,
            open: VecDeque::new(),
            early: HashMap::new(),
        }
    }

    /// Whether a block is in it.
    pub fn has(&self, block: u64) -> bool {
        (self.first..self.first + self.blocks).contains(&block)
    }

    /// What a block is, of which transaction, and of which block a copy.
    pub fn block(&mut self, block: u64, content: &[u8]) -> Block {
        let ring = self.blocks - 1;
        if block == self.first + ring {
            return (Structure::JournalSuperblock, None, None);
        }
        let end = content.len().saturating_sub(12);
        // A copy holds no description, so that none is mistaken for one: the tree has none.
        if part(content, end, end + 8) == b"ReIsErLB" && ring > 0 {
            let (id, length) = (u64::from(le32(content, 0)), u64::from(le32(content, 4)));
            // Half of the places of blocks are here, the others at the end (`journal_trans_half`).
            let half = self.block_bytes / 4 - 6;
            let length = length.min(2 * half).min(ring - 1);
            let homes = (0..length.min(half) as usize)
                .map(|number| u64::from(le32(content, 12 + 4 * number)))
                .collect();
            self.open.truncate(MOST_OPEN - 1);
            self.open.push_front(Transaction {
                id,
                at: block,
                length,
                homes,
                left: length + 1,
            });
            return (Structure::JournalDescriptor, Some(id), None);
        }
        match self.described(block) {
            Some(known) => known,
            None if content.iter().all(|&byte| byte == 0) => (Structure::JournalFree, None, None),
            None => (Structure::Log, None, None),
        }
    }

    /// What the newest description that has this block says of it.
    fn described(&mut self, block: u64) -> Option<Block> {
        let ring = self.blocks - 1;
        // The description is 0, the end is behind the copies.
        let number = |transaction: &Transaction| (block + ring - transaction.at) % ring;
        let has =
            |transaction: &Transaction| (1..=transaction.length + 1).contains(&number(transaction));
        let place = self.open.iter().position(has)?;
        let transaction = self.open.get_mut(place)?;
        let (id, copy) = (Some(transaction.id), number(transaction) - 1);
        let what = match copy == transaction.length {
            true => (Structure::JournalCommit, id, None),
            false => {
                let home = transaction.homes.get(copy as usize).copied();
                (Structure::JournalCopy, id, home)
            }
        };
        transaction.left = transaction.left.saturating_sub(1);
        if transaction.left == 0 {
            self.open.remove(place);
        }
        Some(what)
    }

    /// A block's row, whose description may come.
    pub fn wait(&mut self, block: u64, row: usize) {
        if self.early.len() < MOST_EARLY {
            self.early.insert(block, row);
        }
    }

    /// Blocks that were there before the description that has just come, their rows, and what they
    /// are.
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
        // Another one begins before the one before it has all its blocks; it goes around the ring's
        // end.
        journal.block(22, &description(5, &[70, 80, 90]));
        assert_eq!(journal.block(19, &block), copy(4, 50));
        assert_eq!(journal.block(21, &block), commit(4));
        assert_eq!(journal.block(25, &block), copy(5, 90));
        assert_eq!(journal.block(18, &block), commit(5));
        assert_eq!(journal.block(26, &block).0, Structure::JournalSuperblock);
    }
}
