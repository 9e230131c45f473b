//! The journal: transactions of a description, copies of blocks, and an end, around a ring; its header is behind it.

use crate::bytes::{le32, part};
use crate::classify::Structure;
use std::collections::HashMap;

/// Where a block of the journal belongs.
type Block = (Structure, Option<u64>, Option<u64>);

/// What the ring's next blocks are.
#[derive(Debug)]
pub struct Journal {
    block_bytes: u64,
    first: u64,
    /// The header's block included.
    blocks: u64,
    /// By block, as the last description says.
    expected: HashMap<u64, Block>,
}

impl Journal {
    /// One of so many blocks, its header included.
    pub fn new(block_bytes: u64, first: u64, blocks: u64) -> Journal {
        Journal {
            block_bytes,
            first,
            blocks,
            expected: HashMap::new(),
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
            self.expected.clear();
            for number in 0..length {
                let home =
                    (number < half).then(|| u64::from(le32(content, 12 + 4 * number as usize)));
                let at = self.first + (block - self.first + 1 + number) % ring;
                self.expected
                    .insert(at, (Structure::JournalCopy, Some(id), home));
            }
            let at = self.first + (block - self.first + 1 + length) % ring;
            self.expected
                .insert(at, (Structure::JournalCommit, Some(id), None));
            return (Structure::JournalDescriptor, Some(id), None);
        }
        match self.expected.remove(&block) {
            Some(known) => known,
            None if content.iter().all(|&byte| byte == 0) => (Structure::JournalFree, None, None),
            None => (Structure::Log, None, None),
        }
    }
}
