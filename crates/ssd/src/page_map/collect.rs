//! Garbage collection and static wear levelling.

use super::{AHEAD, Frontier, PageMap, Separation};
use crate::Charge;
use crate::memory::prefetch;

/// Blocks that wear levelling will move next.
#[derive(Debug, Clone, Default)]
pub struct Levelling {
    waiting: Vec<u32>,
    /// Number of erases at which the table is scanned again. A scan visits all blocks.
    next_look: u64,
    /// Number of erases at which the next block may be moved.
    next_move: u64,
}

/// Minimum erases between two wear-levelling moves. A move puts cold data into the block that was
/// erased last. If moves followed each other directly, that would be the block of the previous
/// move, and no worn block would ever rest.
const ERASES_BETWEEN_MOVES: u64 = 8;

impl<C: Charge> PageMap<C> {
    /// Returns the number of empty units, at least one, of a frontier that the host writes to.
    /// Collects garbage if necessary.
    #[inline]
    pub(super) fn room(&mut self, frontier: usize) -> u32 {
        let Frontier { next, end, .. } = self.frontiers[frontier];
        if next < end {
            end - next
        } else {
            self.make_room(frontier)
        }
    }

    #[cold]
    fn make_room(&mut self, frontier: usize) -> u32 {
        loop {
            let Frontier { next, end, .. } = self.frontiers[frontier];
            if next < end {
                return end - next;
            }
            if self.nand.free_blocks() > self.options.reserved_blocks as usize {
                self.open(frontier);
            } else {
                self.collect();
            }
        }
    }

    fn open(&mut self, frontier: usize) {
        let block = self.nand.take();
        let next = block * self.nand.geometry.units_per_block;
        self.frontiers[frontier] = Frontier {
            block,
            next,
            end: next + self.nand.geometry.units_per_block,
        };
        self.stream[block as usize] = (frontier % usize::from(self.options.streams)) as u8;
    }

    /// Frees one block.
    fn collect(&mut self) {
        if let Some(worn) = self.least_worn() {
            self.blocks.take(worn);
            let copies = self.move_out(worn);
            self.nand.counters.levelled_units += u64::from(copies);
            self.nand.charges.caused(copies, std::iter::empty());
            debug_assert_eq!(self.blocks.valid(worn), 0);
            self.nand.erase(worn);
            return;
        }
        let Some(victim) = self.blocks.take_victim(&mut self.rng) else {
            return;
        };
        let units = self.nand.geometry.units_per_block;
        let copies = self.blocks.valid(victim);
        let invalid = self.valid.runs(victim * units, units, false);
        self.nand.charges.caused(copies, invalid);
        self.move_out(victim);
        debug_assert_eq!(self.blocks.valid(victim), 0);
        self.nand.erase(victim);
    }

    /// Copies the valid units of a block to the frontier of its stream. Returns the number of
    /// copies.
    fn move_out(&mut self, victim: u32) -> u32 {
        let stream = usize::from(self.stream[victim as usize]);
        let frontier = match self.options.separation {
            Separation::Mixed => stream,
            Separation::Collected => stream + usize::from(self.options.streams),
        };
        let units = self.nand.geometry.units_per_block;
        let begin = victim * units;
        let copies = self.blocks.valid(victim);
        let mut runs = std::mem::take(&mut self.moving);
        runs.clear();
        runs.extend(self.valid.runs(begin, units, true));
        self.valid.clear_range(begin, units);
        self.blocks.remove_valid(victim, copies);
        let mut ahead = runs.iter().flat_map(|&(first, count)| first..first + count);
        for place in ahead.by_ref().take(AHEAD) {
            prefetch(&self.map, self.reverse[place as usize] as usize);
        }
        for &(mut from, mut left) in &runs {
            while left > 0 {
                if self.frontiers[frontier].next == self.frontiers[frontier].end {
                    self.open(frontier);
                }
                let Frontier { next, end, .. } = self.frontiers[frontier];
                let count = left.min(end - next);
                self.copy_run(from, next, count, &mut ahead);
                self.settle(frontier, count);
                from += count;
                left -= count;
            }
        }
        self.moving = runs;
        self.nand.counters.copied_units += u64::from(copies);
        copies
    }

    /// Copies consecutive units and remaps them to their copies. `ahead` yields the places that
    /// will be copied a while later.
    #[inline]
    fn copy_run(&mut self, from: u32, to: u32, count: u32, ahead: &mut impl Iterator<Item = u32>) {
        let (source, target) = (from as usize, to as usize);
        for at in 0..count as usize {
            if let Some(later) = ahead.next() {
                prefetch(&self.map, self.reverse[later as usize] as usize);
            }
            let logical = self.reverse[source + at];
            self.reverse[target + at] = logical;
            self.map[logical as usize] = to + at as u32;
        }
        self.nand.charges.moved(from, to, count);
    }

    /// Returns a block that static wear levelling should move now.
    fn least_worn(&mut self) -> Option<u32> {
        let gap = self.options.levelling_gap?;
        let erases = self.nand.counters.erases;
        if erases < self.levelling.next_move {
            return None;
        }
        if erases >= self.levelling.next_look {
            self.levelling.next_look = erases + u64::from(self.nand.geometry.blocks);
            self.levelling.waiting = self.blocks.least_worn(&self.nand.erases, gap);
        }
        while let Some(block) = self.levelling.waiting.pop() {
            if self.blocks.is_full(block) {
                self.levelling.next_move = erases + ERASES_BETWEEN_MOVES;
                return Some(block);
            }
        }
        None
    }
}
