//! Block mapping: each logical block is stored in one physical block, with its units in the same
//! order. First-generation SSDs, SD cards and eMMC keep a few blocks open for writing in ascending
//! order. A write that does not continue an open block costs a copy of the rest of its block.

use crate::whole_blocks::{Nand, WholeBlocks};
use crate::{Charge, Error, Geometry, Write};

/// A replacement block that is being written in ascending order.
#[derive(Debug, Clone)]
struct Open {
    logical: u32,
    physical: u32,
    next: u32,
    /// Runs of units that the host wrote since the block was opened: index in the block and number
    /// of units.
    written: Vec<(u32, u32)>,
}

/// A block-mapped device with a fixed number of open blocks (open allocation units of an SD card).
#[derive(Debug, Clone)]
pub struct BlockMap<C> {
    nand: Nand<C>,
    open_blocks: usize,
    /// Open blocks; the most recently used one is last.
    open: Vec<Open>,
}

impl<C: Charge> BlockMap<C> {
    /// Creates an unwritten device. With 0 open blocks, each request copies the rest of its block.
    pub fn new(geometry: Geometry, open_blocks: u32, charges: C) -> Result<BlockMap<C>, Error> {
        Ok(BlockMap {
            nand: Nand::new(geometry, open_blocks + 1, charges)?,
            open_blocks: open_blocks as usize,
            open: Vec::new(),
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
                let physical = self.nand.take();
                Open {
                    logical,
                    physical,
                    next: 0,
                    written: Vec::new(),
                }
            }
        };
        let copies = self.copy_up_to(&mut open, first);
        let units = self.nand.geometry.units_per_block;
        if let Some(old) = self.nand.data[logical as usize] {
            for unit in self.nand.holds.places(logical * units + first, count, true) {
                self.nand
                    .charges
                    .invalidated(old * units + unit % units, 1, tag);
            }
        }
        self.nand
            .charges
            .written(open.physical * units + first, count, tag);
        self.nand.holds.set_range(logical * units + first, count);
        self.nand.counters.written_units += u64::from(count);
        open.written.push((first, count));
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

    /// Copies the units of the old block between the open block's end and `end`. Returns the number
    /// of units copied.
    fn copy_up_to(&mut self, open: &mut Open, end: u32) -> u32 {
        let units = self.nand.geometry.units_per_block;
        let mut copies = 0;
        if let Some(old) = self.nand.data[open.logical as usize] {
            let begin = open.logical * units;
            let last = (begin + end).min(self.nand.geometry.logical_units);
            let from = begin + open.next;
            for unit in self
                .nand
                .holds
                .places(from, last.saturating_sub(from), true)
            {
                self.nand.charges.moved(
                    old * units + unit - begin,
                    open.physical * units + unit - begin,
                    1,
                );
                copies += 1;
            }
        }
        open.next = end;
        self.nand.counters.copied_units += u64::from(copies);
        copies
    }

    /// Charges copies to the host writes that made them necessary: those to the open block.
    fn charge_copies(&mut self, open: &Open, copies: u32) {
        let base = open.physical * self.nand.geometry.units_per_block;
        self.nand.charges.caused(
            copies,
            open.written
                .iter()
                .map(|&(first, count)| (base + first, count)),
        );
    }

    /// Completes an open block and makes it the data block of its logical block.
    fn close(&mut self, mut open: Open) {
        let units = self.nand.geometry.units_per_block;
        let copies = self.copy_up_to(&mut open, units);
        self.charge_copies(&open, copies);
        self.nand.replace_data(open.logical, open.physical);
    }
}

impl<C: Charge> WholeBlocks for BlockMap<C> {
    type Charges = C;

    fn nand(&self) -> &Nand<C> {
        &self.nand
    }

    fn nand_mut(&mut self) -> &mut Nand<C> {
        &mut self.nand
    }

    fn reserved_blocks(&self) -> u32 {
        self.open_blocks as u32 + 1
    }

    fn physical(&self, logical: u32) -> Option<u32> {
        let units = self.nand.geometry.units_per_block;
        let (block, place) = (logical / units, logical % units);
        let open = self.open.iter().find(|open| open.logical == block);
        let open = open.filter(|open| place < open.next);
        let at = match open {
            Some(open) => open.physical,
            None => self.nand.data[block as usize]?,
        };
        self.nand
            .holds
            .is_set(logical)
            .then_some(at * units + place)
    }

    fn write(&mut self, write: &Write) {
        for (logical, first, count) in write.in_blocks(self.nand.geometry.units_per_block) {
            self.write_in_block(logical, first, count, write.tag);
        }
    }

    /// Trimmed units need no further copies. A block without any data left is erased.
    fn trim(&mut self, first: u32, count: u32, tag: u16) {
        let (units, logical_units) = {
            let geometry = &self.nand.geometry;
            (geometry.units_per_block, geometry.logical_units)
        };
        let trim = Write {
            first,
            count,
            tag,
            stream: 0,
        };
        for (logical, first, count) in trim.in_blocks(units) {
            let begin = logical * units;
            self.nand.counters.trimmed_units +=
                self.nand.holds.places(begin + first, count, true).count() as u64;
            self.nand.holds.clear_range(begin + first, count);
            let whole = units.min(logical_units - begin);
            if self.nand.holds.places(begin, whole, true).next().is_some() {
                continue;
            }
            if let Some(at) = self.open.iter().position(|open| open.logical == logical) {
                let open = self.open.remove(at);
                self.close(open);
            }
            if let Some(old) = self.nand.data[logical as usize].take() {
                self.nand.erase(old);
            }
        }
    }
}
