//! The table of erase blocks: valid units of each block, blocks that may be collected, and choice
//! of the next one.

use super::Collection;
use crate::memory::prefetch;
use fastrand::Rng;
use std::collections::VecDeque;

const NONE: u32 = u32::MAX;

/// A block. It takes 16 bytes, so that invalidating one unit touches one cache line.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Greedy: neighbours in the list of full blocks with the same number of valid units. Other
    /// policies: `next` is the index in `full`.
    previous: u32,
    next: u32,
    valid: u32,
    full: bool,
}

/// A list of full blocks. Removing the oldest and adding after the newest spreads wear over similar
/// blocks.
#[derive(Debug, Clone, Copy)]
struct List {
    oldest: u32,
    newest: u32,
}

/// All blocks of a device.
#[derive(Debug, Clone)]
pub struct Blocks {
    collection: Collection,
    units_per_block: u32,
    table: Vec<Block>,
    /// Greedy: for each number of valid units, the first and last full block with that number, in
    /// order of arrival.
    lists: Vec<List>,
    /// Greedy: lower bound of the valid units of full blocks.
    fewest: u32,
    /// FIFO: full blocks, oldest first. Random and d-choices: full blocks in any order.
    full: VecDeque<u32>,
}

impl Blocks {
    pub fn new(collection: Collection, blocks: u32, units_per_block: u32) -> Blocks {
        let empty = Block {
            previous: NONE,
            next: NONE,
            valid: 0,
            full: false,
        };
        let (oldest, newest) = (NONE, NONE);
        let empty_list = List { oldest, newest };
        let lists = if collection == Collection::Greedy {
            units_per_block as usize + 1
        } else {
            0
        };
        Blocks {
            collection,
            units_per_block,
            table: vec![empty; blocks as usize],
            lists: vec![empty_list; lists],
            fewest: units_per_block,
            full: VecDeque::new(),
        }
    }

    pub fn valid(&self, block: u32) -> u32 {
        self.table[block as usize].valid
    }

    #[inline]
    pub fn add_valid(&mut self, block: u32, units: u32) {
        self.table[block as usize].valid += units;
    }

    /// Invalidates `units` of a block.
    #[inline]
    pub fn remove_valid(&mut self, block: u32, units: u32) {
        let entry = &mut self.table[block as usize];
        if entry.full && self.collection == Collection::Greedy {
            let valid = entry.valid - units;
            self.unlink(block);
            self.table[block as usize].valid = valid;
            self.link(block);
        } else {
            entry.valid -= units;
        }
    }

    /// Marks a block as full: it has no empty unit left and may be collected.
    pub fn fill(&mut self, block: u32) {
        self.table[block as usize].full = true;
        match self.collection {
            Collection::Greedy => self.link(block),
            Collection::Fifo => self.full.push_back(block),
            Collection::Random | Collection::Choices(_) => {
                self.table[block as usize].next = self.full.len() as u32;
                self.full.push_back(block);
            }
        }
    }

    /// Removes and returns the next block to collect. `None` if no block is full.
    pub fn take_victim(&mut self, rng: &mut Rng) -> Option<u32> {
        let victim = match self.collection {
            Collection::Greedy => self.fewest_valid()?,
            Collection::Fifo => *self.full.front()?,
            Collection::Random => self.any_full(rng)?,
            Collection::Choices(choices) => (0..choices.max(1))
                .filter_map(|_| self.any_full(rng))
                .min_by_key(|&block| self.table[block as usize].valid)?,
        };
        self.take(victim);
        Some(victim)
    }

    /// Removes a block from the full ones.
    pub fn take(&mut self, block: u32) {
        self.table[block as usize].full = false;
        match self.collection {
            Collection::Greedy => self.unlink(block),
            Collection::Fifo => {
                if self.full.front() == Some(&block) {
                    self.full.pop_front();
                } else {
                    self.full.retain(|&other| other != block);
                }
            }
            Collection::Random | Collection::Choices(_) => {
                let at = self.table[block as usize].next as usize;
                self.full.swap_remove_back(at);
                if let Some(&moved) = self.full.get(at) {
                    self.table[moved as usize].next = at as u32;
                }
            }
        }
    }

    /// Returns the full blocks with the fewest erases of all blocks, if the most erased block has
    /// `gap` more.
    pub fn least_worn(&self, erases: &[u32], gap: u32) -> Vec<u32> {
        let least = erases.iter().copied().min().unwrap_or(0);
        let most = erases.iter().copied().max().unwrap_or(0);
        if most - least < gap.max(1) {
            return Vec::new();
        }
        let blocks = (0..).zip(self.table.iter().zip(erases));
        let least_worn = blocks.filter(|(_, (block, count))| block.full && **count == least);
        least_worn.map(|(number, _)| number).collect()
    }

    /// True if a block is full and may be collected.
    pub fn is_full(&self, block: u32) -> bool {
        self.table[block as usize].full
    }

    /// Prefetches the entry of a block.
    #[inline]
    pub fn prefetch(&self, block: u32) {
        prefetch(&self.table, block as usize);
    }

    fn any_full(&self, rng: &mut Rng) -> Option<u32> {
        (!self.full.is_empty()).then(|| self.full[rng.usize(..self.full.len())])
    }

    fn fewest_valid(&mut self) -> Option<u32> {
        while self.fewest <= self.units_per_block {
            let oldest = self.lists[self.fewest as usize].oldest;
            if oldest != NONE {
                return Some(oldest);
            }
            self.fewest += 1;
        }
        self.fewest = self.units_per_block;
        None
    }

    #[inline]
    fn link(&mut self, block: u32) {
        let valid = self.table[block as usize].valid;
        let list = &mut self.lists[valid as usize];
        let newest = std::mem::replace(&mut list.newest, block);
        if newest == NONE {
            list.oldest = block;
        } else {
            self.table[newest as usize].next = block;
        }
        let entry = &mut self.table[block as usize];
        (entry.previous, entry.next) = (newest, NONE);
        self.fewest = self.fewest.min(valid);
    }

    #[inline]
    fn unlink(&mut self, block: u32) {
        let entry = self.table[block as usize];
        let (previous, next) = (entry.previous, entry.next);
        let list = &mut self.lists[entry.valid as usize];
        if previous == NONE {
            list.oldest = next;
        } else {
            self.table[previous as usize].next = next;
        }
        if next == NONE {
            list.newest = previous;
        } else {
            self.table[next as usize].previous = previous;
        }
    }
}
