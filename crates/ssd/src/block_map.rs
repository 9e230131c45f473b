//! Block mapping: each logical block is stored in one physical block, with its units in the same
//! order. First-generation SSDs, SD cards and eMMC keep a few blocks open for writing in ascending
//! order. A write that does not continue an open block costs a copy of the rest of its block.

use crate::nand::Nand;
use crate::page_map::Valid;
use crate::{Charge, Error, Geometry, Translation, Write};

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
    /// Data block of each logical block.
    data: Vec<Option<u32>>,
    /// Bitmap of the logical units that hold data.
    holds: Valid,
    open_blocks: usize,
    /// Open blocks; the most recently used one is last.
    open: Vec<Open>,
}

impl<C: Charge> BlockMap<C> {
    /// Creates an unwritten device. With 0 open blocks, each request copies the rest of its block.
    pub fn new(geometry: Geometry, open_blocks: u32, charges: C) -> Result<BlockMap<C>, Error> {
        Ok(BlockMap {
            nand: Nand::new(geometry, open_blocks + 1, charges)?,
            data: vec![None; geometry.logical_blocks()],
            holds: Valid::new(u64::from(geometry.logical_units)),
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
                Open {
                    logical,
                    physical: self.nand.take(),
                    next: 0,
                    written: Vec::new(),
                }
            }
        };
        let copies = self.copy_up_to(&mut open, first);
        let units = self.nand.geometry.units_per_block;
        let (from, to) = (logical * units + first, open.physical * units + first);
        if let Some(old) = self.data[logical as usize] {
            for unit in self.holds.places(from, count, true) {
                let place = old * units + unit % units;
                self.nand.charges.invalidated(place, 1, tag);
            }
        }
        self.nand.charges.written(to, count, tag);
        self.holds.set_range(from, count);
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
        if let Some(old) = self.data[open.logical as usize] {
            let begin = open.logical * units;
            let last = (begin + end).min(self.nand.geometry.logical_units);
            let from = begin + open.next;
            for unit in self.holds.places(from, last.saturating_sub(from), true) {
                let place = unit - begin;
                let (from, to) = (old * units + place, open.physical * units + place);
                self.nand.charges.moved(from, to, 1);
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
        let written = open.written.iter();
        let written = written.map(|&(first, count)| (base + first, count));
        self.nand.charges.caused(copies, written);
    }

    /// Completes an open block and makes it the data block of its logical block.
    fn close(&mut self, mut open: Open) {
        let units = self.nand.geometry.units_per_block;
        let copies = self.copy_up_to(&mut open, units);
        self.charge_copies(&open, copies);
        let data = &mut self.data[open.logical as usize];
        self.nand.replace(data, open.physical);
    }
}

impl<C: Charge> Translation for BlockMap<C> {
    type Charges = C;

    fn nand(&self) -> &Nand<C> {
        &self.nand
    }

    fn physical(&self, logical: u32) -> Option<u32> {
        let units = self.nand.geometry.units_per_block;
        let (block, place) = (logical / units, logical % units);
        let open = self.open.iter().find(|open| open.logical == block);
        let open = open.filter(|open| place < open.next);
        let at = match open {
            Some(open) => open.physical,
            None => self.data[block as usize]?,
        };
        let is_held = self.holds.is_set(logical);
        is_held.then_some(at * units + place)
    }

    fn write_all(&mut self, writes: &[Write]) {
        let units = self.nand.geometry.units_per_block;
        for write in writes {
            self.nand.counters.host_units += u64::from(write.count);
            for (logical, first, count) in in_blocks(write.first, write.count, units) {
                self.write_in_block(logical, first, count, write.tag);
            }
        }
    }

    /// Trimmed units need no further copies. A block without any data left is erased.
    fn trim(&mut self, first: u32, count: u32, _: u16) {
        let geometry = self.nand.geometry;
        let units = geometry.units_per_block;
        for (logical, first, count) in in_blocks(first, count, units) {
            let begin = logical * units;
            let trimmed = self.holds.places(begin + first, count, true).count();
            self.nand.counters.trimmed_units += trimmed as u64;
            self.holds.clear_range(begin + first, count);
            let whole = units.min(geometry.logical_units - begin);
            if self.holds.places(begin, whole, true).next().is_some() {
                continue;
            }
            if let Some(at) = self.open.iter().position(|open| open.logical == logical) {
                let open = self.open.remove(at);
                self.close(open);
            }
            if let Some(old) = self.data[logical as usize].take() {
                self.nand.erase(old);
            }
        }
    }

    /// Does nothing: units are programmed as they are written.
    fn flush(&mut self, _: u16) {}
}

/// Returns the parts of a range in each logical block: the block, the index in it of the part's
/// first unit, and the number of units.
fn in_blocks(
    first: u32,
    count: u32,
    units_per_block: u32,
) -> impl Iterator<Item = (u32, u32, u32)> {
    let (mut at, end) = (first, first + count);
    std::iter::from_fn(move || {
        let within = at % units_per_block;
        let count = (end - at).min(units_per_block - within);
        let part = (count > 0).then_some((at / units_per_block, within, count));
        at += count;
        part
    })
}
