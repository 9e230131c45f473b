//! Block mapping: a logical block is at one physical block, unit by unit in the same order.
//! First-generation SSDs, SD
//! cards and eMMC keep a few blocks open for writing in ascending order; whatever does not continue
//! an open block costs
//! a copy of the rest of its block.

use crate::log_blocks::Pool;
use crate::page_map::Valid;
use crate::{Charge, Counters, Error, Geometry, Translation, Write};

/// A replacement block that is being written in ascending order.
#[derive(Debug, Clone)]
struct Open {
    logical: u32,
    physical: u32,
    next: u32,
    /// Units that the host wrote since it was opened, by their places in the block.
    written: Vec<u32>,
}

/// A block-mapped device with a fixed number of open blocks (open allocation units of an SD card).
#[derive(Debug, Clone)]
pub struct BlockMap<C> {
    geometry: Geometry,
    open_blocks: usize,
    data: Vec<Option<u32>>,
    holds: Valid,
    /// The most recently used one is last.
    open: Vec<Open>,
    pool: Pool,
    counters: Counters,
    charges: C,
}

impl<C: Charge> BlockMap<C> {
    /// A device that nothing was ever written to. With 0 open blocks, each request copies the rest
    /// of its block.
    pub fn new(geometry: Geometry, open_blocks: u32, charges: C) -> Result<BlockMap<C>, Error> {
        geometry.check(open_blocks + 1)?;
        Ok(BlockMap {
            geometry,
            open_blocks: open_blocks as usize,
            data: vec![None; geometry.logical_units.div_ceil(geometry.units_per_block) as usize],
            holds: Valid::new(u64::from(geometry.logical_units)),
            open: Vec::new(),
            pool: Pool::new(geometry.blocks),
            counters: Counters::default(),
            charges,
        })
    }

    fn write_in_block(&mut self, logical: u32, first: u32, count: u32, tag: u16) {
        let mut open = match self.open.iter().position(|open| open.logical == logical) {
            Some(at) if self.open[at].next <= first => self.open.remove(at),
            found => {
                if let Some(at) = found {
                    let earlier = self.open.remove(at);
                    self.close(earlier);
                }
                let physical = self.pool.take();
                Open {
                    logical,
                    physical,
                    next: 0,
                    written: Vec::new(),
                }
            }
        };
        let copies = self.copy_up_to(&mut open, first);
        let units = self.geometry.units_per_block;
        if let Some(old) = self.data[logical as usize] {
            for unit in self.holds.places(logical * units + first, count, true) {
                self.charges.invalidated(old * units + unit % units, 1, tag);
            }
        }
        self.charges
            .written(open.physical * units + first, count, tag);
        self.holds.set_range(logical * units + first, count);
        self.counters.written_units += u64::from(count);
        open.written.extend(first..first + count);
        self.charge_copies(&open, copies);
        open.next = first + count;
        if open.next == units {
            self.close(open);
        } else {
            self.open.push(open);
            if self.open.len() > self.open_blocks {
                let oldest = self.open.remove(0);
                self.close(oldest);
            }
        }
    }

    /// Copies what the old block holds between the open block's end and `end`. Returns how many
    /// units that was.
    fn copy_up_to(&mut self, open: &mut Open, end: u32) -> u32 {
        let units = self.geometry.units_per_block;
        let mut copies = 0;
        if let Some(old) = self.data[open.logical as usize] {
            let begin = open.logical * units;
            let last = (begin + end).min(self.geometry.logical_units);
            let from = begin + open.next;
            for unit in self.holds.places(from, last.saturating_sub(from), true) {
                self.charges.moved(
                    old * units + unit - begin,
                    open.physical * units + unit - begin,
                    1,
                );
                copies += 1;
            }
        }
        open.next = end;
        self.counters.copied_units += u64::from(copies);
        copies
    }

    /// What the host wrote to an open block made these copies necessary.
    fn charge_copies(&mut self, open: &Open, copies: u32) {
        let base = open.physical * self.geometry.units_per_block;
        self.charges
            .caused(copies, open.written.iter().map(|&unit| base + unit));
    }

    /// Makes an open block the block of its logical one.
    fn close(&mut self, mut open: Open) {
        let units = self.geometry.units_per_block;
        let copies = self.copy_up_to(&mut open, units);
        self.charge_copies(&open, copies);
        if let Some(old) = self.data[open.logical as usize].replace(open.physical) {
            self.erase(old);
        }
    }

    fn erase(&mut self, block: u32) {
        let units = self.geometry.units_per_block;
        self.charges.erased(block * units, units);
        self.pool.erase(block);
        self.counters.erases += 1;
    }
}

impl<C: Charge> Translation for BlockMap<C> {
    type Charges = C;

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn reserved_blocks(&self) -> u32 {
        self.open_blocks as u32 + 1
    }

    fn write_all(&mut self, writes: &[Write]) {
        for write in writes {
            self.counters.host_units += u64::from(write.count);
            for (logical, first, count) in write.in_blocks(self.geometry.units_per_block) {
                self.write_in_block(logical, first, count, write.tag);
            }
        }
    }

    /// Trimmed units need no copy any more; a block of which nothing is left is erased.
    fn trim(&mut self, first: u32, count: u32, tag: u16) {
        let units = self.geometry.units_per_block;
        let trim = Write {
            first,
            count,
            tag,
            stream: 0,
        };
        for (logical, first, count) in trim.in_blocks(units) {
            let begin = logical * units;
            self.counters.trimmed_units +=
                self.holds.places(begin + first, count, true).count() as u64;
            self.holds.clear_range(begin + first, count);
            let whole = units.min(self.geometry.logical_units - begin);
            if self.holds.places(begin, whole, true).next().is_some() {
                continue;
            }
            if let Some(at) = self.open.iter().position(|open| open.logical == logical) {
                let open = self.open.remove(at);
                self.close(open);
            }
            if let Some(old) = self.data[logical as usize].take() {
                self.erase(old);
            }
        }
    }

    /// Units are programmed as they are written: a flush has nothing to do.
    fn flush(&mut self, _: u16) {}

    fn counters(&self) -> Counters {
        self.counters
    }

    fn erases(&self) -> &[u32] {
        self.pool.erases()
    }

    fn charges(&self) -> &C {
        &self.charges
    }
}
