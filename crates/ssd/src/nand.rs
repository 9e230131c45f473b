//! The physical blocks of a device, and what was done to them.

use crate::{Charge, Counters, Error, Geometry};
use std::collections::VecDeque;

/// Erase blocks. Free ones are used in rotation.
#[derive(Debug, Clone)]
pub struct Nand<C> {
    pub geometry: Geometry,
    pub counters: Counters,
    pub charges: C,
    /// Erase count of each block.
    pub erases: Vec<u32>,
    free: VecDeque<u32>,
}

impl<C: Charge> Nand<C> {
    /// Creates unwritten NAND.
    pub fn new(geometry: Geometry, reserved_blocks: u32, charges: C) -> Result<Nand<C>, Error> {
        geometry.check(reserved_blocks)?;
        Ok(Nand {
            geometry,
            counters: Counters::default(),
            charges,
            erases: vec![0; geometry.blocks as usize],
            free: (0..geometry.blocks).collect(),
        })
    }

    pub fn free_blocks(&self) -> usize {
        self.free.len()
    }

    /// Takes a free block.
    pub fn take(&mut self) -> u32 {
        // `new` has checked that there are more blocks than a mapping can use at a time.
        debug_assert!(!self.free.is_empty());
        self.free.pop_front().unwrap_or_default()
    }

    /// Erases a block, and adds it to the end of the free list.
    pub fn erase(&mut self, block: u32) {
        let units = self.geometry.units_per_block;
        self.charges.erased(block * units, units);
        self.erases[block as usize] += 1;
        self.free.push_back(block);
        self.counters.erases += 1;
    }

    /// Makes a block the data block of a logical block, and erases the previous one.
    pub fn replace(&mut self, data: &mut Option<u32>, block: u32) {
        if let Some(old) = data.replace(block) {
            self.erase(old);
        }
    }
}
