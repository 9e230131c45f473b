//! Hybrid mapping: data blocks are block-mapped, and a few *log blocks* take writes in any order.
//! When they run short,
//! a merge copies each concerned logical block together again. BAST gives each log block to one
//! logical block; in FAST
//! all of them share the log blocks, which are merged in the order in which they were filled.

use crate::page_map::Valid;
use crate::{Charge, Counters, Error, Geometry, Translation, Write};
use std::collections::VecDeque;

const NOWHERE: u32 = u32::MAX;

/// Free blocks, used in turn, and the erase count of every block.
#[derive(Debug, Clone)]
pub struct Pool {
    free: VecDeque<u32>,
    erases: Vec<u32>,
}

impl Pool {
    pub fn new(blocks: u32) -> Pool {
        Pool {
            free: (0..blocks).collect(),
            erases: vec![0; blocks as usize],
        }
    }

    pub fn take(&mut self) -> u32 {
        // A mapping's `new` has checked that there are more blocks than it can hold at a time.
        self.free.pop_front().unwrap_or_default()
    }

    pub fn erase(&mut self, block: u32) {
        self.erases[block as usize] += 1;
        self.free.push_back(block);
    }

    pub fn erases(&self) -> &[u32] {
        &self.erases
    }
}

/// Which logical blocks share a log block.
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
    /// Which logical blocks share a log block.
    pub association: Association,
    /// Log blocks.
    pub log_blocks: u32,
}

/// One log block.
#[derive(Debug, Clone)]
struct Log {
    physical: u32,
    /// BAST: the logical block that it belongs to.
    logical: u32,
    /// Logical unit by place.
    units: Vec<u32>,
    /// Each unit is at its own place of its block, so that the log block can become the data block.
    in_place: bool,
}

/// A device with log blocks.
#[derive(Debug, Clone)]
pub struct LogBlockMap<C> {
    geometry: Geometry,
    options: LogBlocks,
    data: Vec<Option<u32>>,
    /// Where a logical unit's newest content is, in a log or data block.
    map: Vec<u32>,
    holds: Valid,
    /// BAST: the most recently used one is last. FAST: the newest one is last.
    logs: VecDeque<Log>,
    pool: Pool,
    counters: Counters,
    charges: C,
}

impl<C: Charge> LogBlockMap<C> {
    /// A device that nothing was ever written to.
    pub fn new(
        geometry: Geometry,
        options: LogBlocks,
        charges: C,
    ) -> Result<LogBlockMap<C>, Error> {
        if options.log_blocks == 0 {
            return Err(Error::Field {
                field: "log_blocks",
                value: 0,
                rule: "at least 1",
            });
        }
        geometry.check(options.log_blocks + 1)?;
        Ok(LogBlockMap {
            geometry,
            options,
            data: vec![None; geometry.logical_units.div_ceil(geometry.units_per_block) as usize],
            map: vec![NOWHERE; geometry.logical_units as usize],
            holds: Valid::new(u64::from(geometry.logical_units)),
            logs: VecDeque::new(),
            pool: Pool::new(geometry.blocks),
            counters: Counters::default(),
            charges,
        })
    }

    fn write_unit(&mut self, unit: u32, tag: u16) {
        let at = self.log_for(unit / self.geometry.units_per_block);
        let log = &mut self.logs[at];
        let place = log.units.len() as u32;
        log.in_place &= place == unit % self.geometry.units_per_block
            && log.logical == unit / self.geometry.units_per_block;
        log.units.push(unit);
        let physical = log.physical * self.geometry.units_per_block + place;
        let before = std::mem::replace(&mut self.map[unit as usize], physical);
        if before != NOWHERE {
            self.charges.invalidated(before, 1, tag);
        }
        self.charges.written(physical, 1, tag);
        self.holds.set_range(unit, 1);
        self.counters.written_units += 1;
    }

    /// The place in `logs` of a log block with room for a unit of this logical block.
    fn log_for(&mut self, logical: u32) -> usize {
        let full = self.geometry.units_per_block as usize;
        match self.options.association {
            Association::Block => {
                if let Some(at) = self.logs.iter().position(|log| log.logical == logical) {
                    // `position` found it, so there is one to remove.
                    if let Some(log) = self.logs.remove(at) {
                        if log.units.len() < full {
                            self.logs.push_back(log);
                            return self.logs.len() - 1;
                        }
                        self.merge_log(log);
                    }
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
        let physical = self.pool.take();
        self.logs.push_back(Log {
            physical,
            logical,
            units: Vec::new(),
            in_place: true,
        });
        self.logs.len() - 1
    }

    /// Gives a log block back, with every logical block that has its newest content in it made
    /// whole.
    fn merge_log(&mut self, log: Log) {
        let units = self.geometry.units_per_block;
        let base = log.physical * units;
        let newest = |map: &[u32], place: u32, unit: u32| map[unit as usize] == base + place;
        let all_newest = (0..)
            .zip(&log.units)
            .all(|(place, &unit)| newest(&self.map, place, unit));
        if log.in_place && all_newest && !log.units.is_empty() {
            self.complete_in_place(&log);
            return;
        }
        for (place, &unit) in (0..).zip(&log.units) {
            if newest(&self.map, place, unit) {
                self.merge_block(unit / units);
            }
        }
        self.erase(log.physical);
    }

    /// Switch or partial merge: the rest of the logical block is copied behind what the log block
    /// holds.
    fn complete_in_place(&mut self, log: &Log) {
        let units = self.geometry.units_per_block;
        let begin = log.logical * units;
        let written = log.units.len() as u32;
        let end = (begin + units).min(self.geometry.logical_units);
        let rest: Vec<u32> = self
            .holds
            .places(begin + written, end.saturating_sub(begin + written), true)
            .collect();
        for &unit in &rest {
            self.move_unit(unit, log.physical * units + unit - begin);
        }
        let places = (0..written).map(|place| log.physical * units + place);
        self.charges.caused(rest.len() as u32, places);
        if let Some(old) = self.data[log.logical as usize].replace(log.physical) {
            self.erase(old);
        }
    }

    /// Full merge: the newest content of a logical block goes to a new data block.
    fn merge_block(&mut self, logical: u32) {
        let units = self.geometry.units_per_block;
        let (begin, old) = (logical * units, self.data[logical as usize]);
        let target = self.pool.take();
        let end = (begin + units).min(self.geometry.logical_units);
        let held: Vec<u32> = self.holds.places(begin, end - begin, true).collect();
        let outside = |place: u32| old.is_none_or(|old| place / units != old);
        let logged: Vec<u32> = held
            .iter()
            .map(|&unit| self.map[unit as usize])
            .filter(|&place| outside(place))
            .collect();
        self.charges.caused(held.len() as u32, logged.into_iter());
        for &unit in &held {
            self.move_unit(unit, target * units + unit - begin);
        }
        self.data[logical as usize] = Some(target);
        if let Some(old) = old {
            self.erase(old);
        }
    }

    fn move_unit(&mut self, unit: u32, to: u32) {
        let from = std::mem::replace(&mut self.map[unit as usize], to);
        self.charges.moved(from, to, 1);
        self.counters.copied_units += 1;
    }

    fn erase(&mut self, block: u32) {
        let units = self.geometry.units_per_block;
        self.charges.erased(block * units, units);
        self.pool.erase(block);
        self.counters.erases += 1;
    }
}

impl<C: Charge> Translation for LogBlockMap<C> {
    type Charges = C;

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn reserved_blocks(&self) -> u32 {
        self.options.log_blocks + 1
    }

    fn write_all(&mut self, writes: &[Write]) {
        for write in writes {
            self.counters.host_units += u64::from(write.count);
            for unit in write.first..write.first + write.count {
                self.write_unit(unit, write.tag);
            }
        }
    }

    /// Trimmed units need no copy any more; their blocks are erased when they are merged.
    fn trim(&mut self, first: u32, count: u32, tag: u16) {
        for unit in first..first + count {
            let before = std::mem::replace(&mut self.map[unit as usize], NOWHERE);
            if before != NOWHERE {
                self.charges.invalidated(before, 1, tag);
                self.counters.trimmed_units += 1;
            }
        }
        self.holds.clear_range(first, count);
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
