//! Hybrid mapping: data blocks are block-mapped, and a few *log blocks* accept writes in any order.
//! When log blocks run short, a merge gathers each affected logical block in one physical block.
//! BAST assigns each log block to one logical block. In FAST all logical blocks share the log
//! blocks, which are merged in the order in which they were filled.

use crate::nand::Nand;
use crate::page_map::Valid;
use crate::{Charge, Error, Geometry, Translation, Write, geometry::positive};
use std::collections::VecDeque;

const NOWHERE: u32 = u32::MAX;

/// Assignment of log blocks to logical blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Association {
    /// BAST: each log block belongs to one logical block.
    Block,
    /// FAST: any unit goes to the newest log block.
    Full,
}

/// Options of a [`LogBlockMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBlocks {
    /// Assignment of log blocks to logical blocks.
    pub association: Association,
    /// Number of log blocks.
    pub log_blocks: u32,
}

/// One log block.
#[derive(Debug, Clone)]
struct Log {
    physical: u32,
    /// BAST: logical block that the log block belongs to.
    logical: u32,
    /// Logical unit at each position; `NOWHERE` is padding.
    units: Vec<u32>,
    /// True if each unit is at its own position in its block, so that the log block can become the
    /// data block.
    in_place: bool,
}

/// A device with log blocks.
#[derive(Debug, Clone)]
pub struct LogBlockMap<C> {
    nand: Nand<C>,
    /// Data block of each logical block.
    data: Vec<Option<u32>>,
    /// Bitmap of the logical units that hold data.
    holds: Valid,
    options: LogBlocks,
    /// Location of each logical unit's newest content, in a log or data block.
    map: Vec<u32>,
    /// Log blocks. BAST: the most recently used one is last. FAST: the newest one is last.
    logs: VecDeque<Log>,
}

impl<C: Charge> LogBlockMap<C> {
    /// Creates an unwritten device.
    pub fn new(
        geometry: Geometry,
        options: LogBlocks,
        charges: C,
    ) -> Result<LogBlockMap<C>, Error> {
        positive("log_blocks", options.log_blocks)?;
        Ok(LogBlockMap {
            nand: Nand::new(geometry, options.log_blocks + 1, charges)?,
            data: vec![None; geometry.logical_blocks()],
            holds: Valid::new(u64::from(geometry.logical_units)),
            options,
            map: vec![NOWHERE; geometry.logical_units as usize],
            logs: VecDeque::new(),
        })
    }

    fn write_unit(&mut self, unit: u32, tag: u16) {
        let units = self.nand.geometry.units_per_block;
        let at = self.log_for(unit / units);
        let log = &mut self.logs[at];
        let place = log.units.len() as u32;
        log.in_place &= place == unit % units && log.logical == unit / units;
        log.units.push(unit);
        let physical = log.physical * units + place;
        let before = std::mem::replace(&mut self.map[unit as usize], physical);
        if before != NOWHERE {
            self.nand.charges.invalidated(before, 1, tag);
        }
        self.nand.charges.written(physical, 1, tag);
        self.holds.set_range(unit, 1);
        self.nand.counters.written_units += 1;
    }

    /// Returns the index in `logs` of a log block with room for a unit of this logical block.
    fn log_for(&mut self, logical: u32) -> usize {
        let full = self.nand.geometry.units_per_block as usize;
        match self.options.association {
            Association::Block => {
                let found = self.logs.iter().position(|log| log.logical == logical);
                if let Some(log) = found.and_then(|at| self.logs.remove(at)) {
                    if log.units.len() < full {
                        self.logs.push_back(log);
                        return self.logs.len() - 1;
                    }
                    self.merge_log(log);
                }
            }
            Association::Full => {
                if self.logs.back().is_some_and(|log| log.units.len() < full) {
                    return self.logs.len() - 1;
                }
            }
        }
        if self.logs.len() == self.options.log_blocks as usize
            && let Some(oldest) = self.logs.pop_front()
        {
            self.merge_log(oldest);
        }
        let physical = self.nand.take();
        self.logs.push_back(Log {
            physical,
            logical,
            units: Vec::new(),
            in_place: true,
        });
        self.logs.len() - 1
    }

    /// Frees a log block after merging every logical block with newest content in it.
    fn merge_log(&mut self, log: Log) {
        let units = self.nand.geometry.units_per_block;
        let base = log.physical * units;
        let newest = |map: &[u32], place: u32, unit: u32| map[unit as usize] == base + place;
        let all_newest = || {
            let mut places = (0..).zip(&log.units);
            places.all(|(place, &unit)| newest(&self.map, place, unit))
        };
        if log.in_place && !log.units.is_empty() && all_newest() {
            self.complete_in_place(&log);
            return;
        }
        for (place, &unit) in (0..).zip(&log.units) {
            if unit != NOWHERE && newest(&self.map, place, unit) {
                self.merge_block(unit / units);
            }
        }
        self.nand.erase(log.physical);
    }

    /// Performs a switch or partial merge: copies the rest of the logical block to the end of the
    /// log block.
    fn complete_in_place(&mut self, log: &Log) {
        let units = self.nand.geometry.units_per_block;
        let begin = log.logical * units;
        let written = log.units.len() as u32;
        let end = (begin + units).min(self.nand.geometry.logical_units);
        let from = begin + written;
        let rest = self.holds.places(from, end.saturating_sub(from), true);
        let rest: Vec<u32> = rest.collect();
        for &unit in &rest {
            self.move_unit(unit, log.physical * units + unit - begin);
        }
        let programmed = std::iter::once((log.physical * units, written));
        self.nand.charges.caused(rest.len() as u32, programmed);
        let data = &mut self.data[log.logical as usize];
        self.nand.replace(data, log.physical);
    }

    /// Performs a full merge: copies the newest content of a logical block to a new data block.
    fn merge_block(&mut self, logical: u32) {
        let units = self.nand.geometry.units_per_block;
        let (begin, old) = (logical * units, self.data[logical as usize]);
        let target = self.nand.take();
        let end = (begin + units).min(self.nand.geometry.logical_units);
        let held: Vec<u32> = self.holds.places(begin, end - begin, true).collect();
        let places = held.iter().map(|&unit| self.map[unit as usize]);
        let logged = places.filter(|place| old.is_none_or(|old| place / units != old));
        let logged = logged.map(|place| (place, 1));
        self.nand.charges.caused(held.len() as u32, logged);
        for &unit in &held {
            self.move_unit(unit, target * units + unit - begin);
        }
        let data = &mut self.data[logical as usize];
        self.nand.replace(data, target);
    }

    fn move_unit(&mut self, unit: u32, to: u32) {
        let from = std::mem::replace(&mut self.map[unit as usize], to);
        self.nand.charges.moved(from, to, 1);
        self.nand.counters.copied_units += 1;
    }
}

impl<C: Charge> Translation for LogBlockMap<C> {
    type Charges = C;

    fn nand(&self) -> &Nand<C> {
        &self.nand
    }

    fn physical(&self, logical: u32) -> Option<u32> {
        let place = self.map[logical as usize];
        (place != NOWHERE).then_some(place)
    }

    fn write_all(&mut self, writes: &[Write]) {
        for write in writes {
            self.nand.counters.host_units += u64::from(write.count);
            for unit in write.first..write.first + write.count {
                self.write_unit(unit, write.tag);
            }
        }
    }

    /// Trimmed units need no further copies; their blocks are erased when they are merged.
    fn trim(&mut self, first: u32, count: u32, tag: u16) {
        for unit in first..first + count {
            let before = std::mem::replace(&mut self.map[unit as usize], NOWHERE);
            if before != NOWHERE {
                self.nand.charges.invalidated(before, 1, tag);
                self.nand.counters.trimmed_units += 1;
            }
        }
        self.holds.clear_range(first, count);
    }

    /// Pads the open page of each log block. The next unit goes to the next page, and the block can
    /// no longer become a data block.
    fn flush(&mut self, tag: u16) {
        let geometry = self.nand.geometry;
        for log in &mut self.logs {
            let next = log.units.len() as u32;
            let padding = next.next_multiple_of(geometry.units_per_page) - next;
            if padding == 0 {
                continue;
            }
            log.in_place = false;
            log.units
                .extend(std::iter::repeat_n(NOWHERE, padding as usize));
            let place = log.physical * geometry.units_per_block + next;
            self.nand.charges.padded(place, padding, tag);
            self.nand.counters.padded_units += u64::from(padding);
        }
    }
}
