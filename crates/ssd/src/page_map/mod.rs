//! Page mapping: any logical unit can be stored at any physical location. Writes go to open blocks
//! (*frontiers*). When free blocks run short, garbage collection copies the valid units of a victim
//! to a frontier and erases the victim.

mod blocks;
mod collect;
mod valid;

use crate::memory::{prefetch, table};
use crate::nand::Nand;
use crate::{Charge, Error, Geometry, Translation, Write, geometry::positive};
use blocks::Blocks;
use fastrand::Rng;
pub(crate) use valid::Valid;

const NOWHERE: u32 = u32::MAX;

/// Number of writes to look ahead when prefetching.
const AHEAD: usize = 32;

/// Policy by which garbage collection chooses its victim among the full blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collection {
    /// Block with the fewest valid units.
    Greedy,
    /// Block that was filled first.
    Fifo,
    /// Any block, with equal probability.
    Random,
    /// Block with the fewest valid units among this many random blocks.
    Choices(u32),
}

/// Assignment of data to open blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separation {
    /// Host writes of a stream and copies of its data go to the same open block.
    Mixed,
    /// Copies have an open block of their own, because data that survived a collection is colder
    /// than data just written.
    Collected,
}

/// Options of a [`PageMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageMapOptions {
    /// Policy that chooses victims.
    pub collection: Collection,
    /// Assignment of data to open blocks.
    pub separation: Separation,
    /// Number of streams that the host distinguishes, each with its own open blocks
    /// ([`Write::stream`]).
    pub streams: u8,
    /// Number of free blocks at or below which collection starts. At least 1, because a copy needs
    /// a destination.
    pub reserved_blocks: u32,
    /// Static wear levelling: difference in erases between the most and the least erased blocks at
    /// which the latter are moved.
    pub levelling_gap: Option<u32>,
    /// Seed for all random choices.
    pub seed: u64,
}

impl PageMapOptions {
    /// Returns the number of simultaneously open blocks.
    pub(crate) fn frontiers(&self) -> u32 {
        let streams = u32::from(self.streams);
        match self.separation {
            Separation::Mixed => streams,
            Separation::Collected => 2 * streams,
        }
    }
}

impl Default for PageMapOptions {
    fn default() -> PageMapOptions {
        PageMapOptions {
            collection: Collection::Greedy,
            separation: Separation::Mixed,
            streams: 1,
            reserved_blocks: 1,
            levelling_gap: None,
            seed: 0,
        }
    }
}

/// An open block; units below `next` are programmed.
#[derive(Debug, Clone, Copy, Default)]
struct Frontier {
    block: u32,
    next: u32,
    end: u32,
}

/// Divisor that is often a power of two, for which a shift takes a tenth of the time.
#[derive(Debug, Clone, Copy)]
struct Divisor {
    value: u32,
    /// Exponent, if `value` is a power of two.
    shift: Option<u32>,
}

impl Divisor {
    fn new(value: u32) -> Divisor {
        let shift = value.is_power_of_two().then(|| value.trailing_zeros());
        Divisor { value, shift }
    }

    #[inline]
    fn divide(self, number: u32) -> u32 {
        match self.shift {
            Some(shift) => number >> shift,
            None => number / self.value,
        }
    }
}

/// A page-mapped device. Its memory is 4 bytes per logical unit, and 4 bytes and one bit per
/// physical unit.
#[derive(Debug, Clone)]
pub struct PageMap<C> {
    nand: Nand<C>,
    options: PageMapOptions,
    map: Vec<u32>,
    reverse: Vec<u32>,
    valid: Valid,
    blocks: Blocks,
    frontiers: Vec<Frontier>,
    units_per_block: Divisor,
    /// Stream of each block's data.
    stream: Vec<u8>,
    levelling: collect::Levelling,
    /// Runs that a collection moves: first place and length. The allocation is reused.
    moving: Vec<(u32, u32)>,
    rng: Rng,
}

impl<C: Charge> PageMap<C> {
    /// Creates an unwritten device.
    pub fn new(
        geometry: Geometry,
        options: PageMapOptions,
        charges: C,
    ) -> Result<PageMap<C>, Error> {
        positive("reserved_blocks", options.reserved_blocks)?;
        positive("streams", u32::from(options.streams))?;
        let reserved_blocks = options.reserved_blocks + options.frontiers() - 1;
        Ok(PageMap {
            nand: Nand::new(geometry, reserved_blocks, charges)?,
            options,
            map: table(NOWHERE, geometry.logical_units as usize),
            reverse: table(NOWHERE, geometry.physical_units() as usize),
            valid: Valid::new(geometry.physical_units()),
            blocks: Blocks::new(
                options.collection,
                geometry.blocks,
                geometry.units_per_block,
            ),
            frontiers: vec![Frontier::default(); options.frontiers() as usize],
            units_per_block: Divisor::new(geometry.units_per_block),
            stream: vec![0; geometry.blocks as usize],
            levelling: collect::Levelling::default(),
            moving: Vec::new(),
            rng: Rng::with_seed(options.seed),
        })
    }

    /// Returns the number of mapped units in each block, for a wear map or a histogram.
    pub fn valid_units(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.nand.geometry.blocks).map(|block| self.blocks.valid(block))
    }

    #[inline]
    fn block_of(&self, physical: u32) -> u32 {
        self.units_per_block.divide(physical)
    }

    fn write(&mut self, write: &Write) {
        let stream = write.stream.min(self.options.streams - 1);
        if write.count == 1 {
            self.write_one(write.first, write.tag, usize::from(stream));
            return;
        }
        let (mut first, end) = (write.first, write.first + write.count);
        self.nand.counters.host_units += u64::from(write.count);
        while first < end {
            let room = self.room(usize::from(stream));
            let count = room.min(end - first);
            self.give_up(first, count, write.tag);
            let physical = self.program(usize::from(stream), first, count);
            self.nand.charges.written(physical, count, write.tag);
            self.nand.counters.written_units += u64::from(count);
            first += count;
        }
    }

    /// Writes a single unit without any loop. Most random writes are single units.
    #[inline]
    fn write_one(&mut self, unit: u32, tag: u16, frontier: usize) {
        self.room(frontier);
        let before = self.map[unit as usize];
        if before != NOWHERE {
            self.valid.clear(before);
            self.blocks.remove_valid(self.block_of(before), 1);
            self.nand.charges.invalidated(before, 1, tag);
        }
        let Frontier { block, next, end } = self.frontiers[frontier];
        self.reverse[next as usize] = unit;
        self.map[unit as usize] = next;
        self.valid.set(next);
        self.blocks.add_valid(block, 1);
        self.nand.charges.written(next, 1, tag);
        self.nand.counters.host_units += 1;
        self.nand.counters.written_units += 1;
        self.frontiers[frontier].next = next + 1;
        if next + 1 == end {
            self.blocks.fill(block);
        }
    }

    /// Unmaps logical units, in runs of consecutive physical places.
    fn give_up(&mut self, first: u32, count: u32, tag: u16) {
        let mut at = first as usize;
        let end = at + count as usize;
        while at < end {
            let physical = self.map[at];
            if physical == NOWHERE {
                at += 1;
                continue;
            }
            let block_end = (self.block_of(physical) + 1) * self.nand.geometry.units_per_block;
            let longest = (end - at).min((block_end - physical) as usize);
            let run = run_length(&self.map[at..at + longest], physical);
            let run_units = run as u32;
            if run_units == 1 {
                self.valid.clear(physical);
            } else {
                self.valid.clear_range(physical, run_units);
            }
            self.blocks.remove_valid(self.block_of(physical), run_units);
            self.nand.charges.invalidated(physical, run_units, tag);
            at += run;
        }
    }

    /// Programs consecutive logical units into a frontier that has room for them. Returns their
    /// first physical unit.
    fn program(&mut self, frontier: usize, first: u32, count: u32) -> u32 {
        let physical = self.frontiers[frontier].next;
        let logical = first..first + count;
        for (place, unit) in (physical as usize..).zip(logical) {
            self.reverse[place] = unit;
        }
        let entries = &mut self.map[first as usize..(first + count) as usize];
        for (entry, place) in entries.iter_mut().zip(physical..) {
            *entry = place;
        }
        self.settle(frontier, count);
        physical
    }

    /// Marks `count` newly programmed units as valid, and advances their frontier.
    fn settle(&mut self, frontier: usize, count: u32) {
        let Frontier { block, next, .. } = self.frontiers[frontier];
        self.valid.set_range(next, count);
        self.blocks.add_valid(block, count);
        self.advance(frontier, count);
    }

    fn advance(&mut self, frontier: usize, count: u32) {
        let Frontier { block, next, end } = &mut self.frontiers[frontier];
        *next += count;
        if next == end {
            self.blocks.fill(*block);
        }
    }

    /// Prefetches the map entry of a later write, and the data needed to invalidate the old place
    /// of a nearer one. Each write causes one chain of cache misses, and the chains of many writes
    /// overlap.
    #[inline]
    fn look_ahead(&self, writes: &[Write], at: usize) {
        if let Some(later) = writes.get(at + 2 * AHEAD) {
            prefetch(&self.map, later.first as usize);
        }
        if let Some(sooner) = writes.get(at + AHEAD)
            && let Some(&place) = self.map.get(sooner.first as usize)
            && place != NOWHERE
        {
            self.valid.prefetch(place);
            self.blocks.prefetch(self.block_of(place));
            self.nand.charges.prefetch(place);
        }
    }
}

impl<C: Charge> Translation for PageMap<C> {
    type Charges = C;

    fn nand(&self) -> &Nand<C> {
        &self.nand
    }

    fn physical(&self, logical: u32) -> Option<u32> {
        let place = self.map[logical as usize];
        (place != NOWHERE).then_some(place)
    }

    fn write_all(&mut self, writes: &[Write]) {
        for at in 0..2 * AHEAD.min(writes.len()) {
            if let Some(write) = writes.get(at) {
                prefetch(&self.map, write.first as usize);
            }
        }
        for (at, write) in writes.iter().enumerate() {
            self.look_ahead(writes, at);
            self.write(write);
        }
    }

    fn trim(&mut self, first: u32, count: u32, tag: u16) {
        let range = first as usize..(first + count) as usize;
        let mapped = self.map[range.clone()].iter();
        let mapped = mapped.filter(|&&place| place != NOWHERE).count();
        self.nand.counters.trimmed_units += mapped as u64;
        self.give_up(first, count, tag);
        self.map[range].fill(NOWHERE);
    }

    fn flush(&mut self, tag: u16) {
        for frontier in 0..usize::from(self.options.streams) {
            let Frontier { next, end, .. } = self.frontiers[frontier];
            let padding = next.next_multiple_of(self.nand.geometry.units_per_page) - next;
            if padding == 0 || next == end {
                continue;
            }
            self.nand.charges.padded(next, padding, tag);
            self.nand.counters.padded_units += u64::from(padding);
            self.advance(frontier, padding);
        }
    }
}

/// Returns how many entries count up from `physical`. Compares 16 at a time, which the compiler
/// vectorises.
fn run_length(entries: &[u32], physical: u32) -> usize {
    let counts = |(entry, place): &(&u32, u32)| **entry == *place;
    let chunks = entries.chunks_exact(16).zip((physical..).step_by(16));
    let whole = chunks.take_while(|(chunk, first)| {
        let same = chunk.iter().zip(*first..).filter(counts);
        same.count() == chunk.len()
    });
    let whole = 16 * whole.count();
    let rest = entries[whole..].iter().zip(physical + whole as u32..);
    whole + rest.take_while(counts).count()
}
