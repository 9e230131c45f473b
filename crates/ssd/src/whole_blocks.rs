//! Common parts of block mappings: each logical block has one physical data block, and free blocks
//! are used in rotation.

use crate::page_map::Valid;
use crate::{Charge, Counters, Error, Geometry, Translation, Write};
use std::collections::VecDeque;

/// The NAND of a device, and the state of its logical blocks and units.
#[derive(Debug, Clone)]
pub struct Nand<C> {
    pub geometry: Geometry,
    /// Data block of each logical block.
    pub data: Vec<Option<u32>>,
    /// Bitmap of the logical units that hold data.
    pub holds: Valid,
    pub counters: Counters,
    pub charges: C,
    free: VecDeque<u32>,
    erases: Vec<u32>,
}

impl<C: Charge> Nand<C> {
    /// Creates unwritten NAND.
    pub fn new(geometry: Geometry, reserved_blocks: u32, charges: C) -> Result<Nand<C>, Error> {
        geometry.check(reserved_blocks)?;
        let logical_blocks = geometry.logical_units.div_ceil(geometry.units_per_block);
        Ok(Nand {
            geometry,
            data: vec![None; logical_blocks as usize],
            holds: Valid::new(u64::from(geometry.logical_units)),
            counters: Counters::default(),
            charges,
            free: (0..geometry.blocks).collect(),
            erases: vec![0; geometry.blocks as usize],
        })
    }

    /// Takes a free block.
    pub fn take(&mut self) -> u32 {
        // `new` has checked that there are more blocks than a mapping can use at a time.
        self.free.pop_front().unwrap_or_default()
    }

    /// Makes a block the data block of a logical block, and erases the previous one.
    pub fn replace_data(&mut self, logical: u32, block: u32) {
        if let Some(old) = self.data[logical as usize].replace(block) {
            self.erase(old);
        }
    }

    pub fn erase(&mut self, block: u32) {
        let units = self.geometry.units_per_block;
        self.charges.erased(block * units, units);
        self.erases[block as usize] += 1;
        self.free.push_back(block);
        self.counters.erases += 1;
    }
}

/// A block mapping.
pub trait WholeBlocks {
    type Charges: Charge;

    fn nand(&self) -> &Nand<Self::Charges>;
    fn nand_mut(&mut self) -> &mut Nand<Self::Charges>;
    fn reserved_blocks(&self) -> u32;
    fn physical(&self, logical: u32) -> Option<u32>;
    fn write(&mut self, write: &Write);
    fn trim(&mut self, first: u32, count: u32, tag: u16);
}

impl<M: WholeBlocks> Translation for M {
    type Charges = M::Charges;

    fn geometry(&self) -> &Geometry {
        &self.nand().geometry
    }

    fn reserved_blocks(&self) -> u32 {
        WholeBlocks::reserved_blocks(self)
    }

    fn physical(&self, logical: u32) -> Option<u32> {
        WholeBlocks::physical(self, logical)
    }

    fn write_all(&mut self, writes: &[Write]) {
        for write in writes {
            self.nand_mut().counters.host_units += u64::from(write.count);
            self.write(write);
        }
    }

    fn trim(&mut self, first: u32, count: u32, tag: u16) {
        WholeBlocks::trim(self, first, count, tag);
    }

    /// Does nothing: units are programmed as they are written.
    fn flush(&mut self, _: u16) {}

    fn counters(&self) -> Counters {
        self.nand().counters
    }

    fn erases(&self) -> &[u32] {
        &self.nand().erases
    }

    fn charges(&self) -> &M::Charges {
        &self.nand().charges
    }
}
