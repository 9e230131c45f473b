//! Regions of a disk that a workload writes with equal density.

use crate::{Error, Kind, Step, page_map::Valid};
use std::{
    collections::VecDeque,
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
};

/// Number of recent writes that a later one can continue, as part of the same extent: file systems
/// write in a few places at a time.
const OPEN_EXTENTS: usize = 16;
/// Units of the smallest region that is examined.
const LEAF_UNITS: u32 = 16;
/// Minimum extents of a region: fewer say too little about the addresses between them.
const FEWEST_EXTENTS: f64 = 32.0;
/// Difference between the halves of a region, in standard deviations, that chance explains.
const DEVIATIONS: f64 = 4.0;
/// Share of the extents in a region that begin at multiples of its slot.
const ALIGNED: f64 = 0.95;
/// Largest slot, as a power of two.
const MOST_ALIGNMENT: u32 = 12;

/// A region. Extents in it begin at multiples of `slot` units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub units: Range<u32>,
    pub slot: u32,
}

/// What a cycle writes.
#[derive(Debug)]
pub struct Seen {
    units: u32,
    block_units: u32,
    /// First unit of each extent.
    starts: Valid,
    trimmed: Valid,
    /// Units of extents that fill an erase block.
    whole: Valid,
    /// Number of writes of each unit.
    counts: Vec<u16>,
}

impl Seen {
    pub fn of(
        cycle: &[Step],
        units: u32,
        block_units: u32,
        is_stopped: &AtomicBool,
    ) -> Result<Seen, Error> {
        let mut seen = Seen {
            units,
            block_units,
            starts: Valid::new(u64::from(units)),
            trimmed: Valid::new(u64::from(units)),
            whole: Valid::new(u64::from(units)),
            counts: vec![0; units as usize],
        };
        let mut open: VecDeque<Range<u32>> = VecDeque::new();
        for step in cycle {
            if is_stopped.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            // The device rejects steps beyond the end.
            let first = step.first.min(units);
            let end = first + step.count.min(units - first);
            match step.kind {
                Kind::Flush => {}
                Kind::Trim => seen.trimmed.set_range(first, end - first),
                Kind::Write => {
                    for count in &mut seen.counts[first as usize..end as usize] {
                        *count = count.saturating_add(1);
                    }
                    if let Some(extent) = open.iter_mut().find(|each| each.end == first) {
                        extent.end = end;
                        continue;
                    }
                    if open.len() == OPEN_EXTENTS
                        && let Some(oldest) = open.pop_front()
                    {
                        seen.close(&oldest);
                    }
                    open.push_back(first..end);
                }
            }
        }
        for extent in open {
            seen.close(&extent);
        }
        Ok(seen)
    }

    /// True if a unit of a region stays in place.
    pub fn is_fixed(&self, unit: u32) -> bool {
        self.is_trimmed(unit) || self.whole.is_set(unit)
    }

    pub fn is_trimmed(&self, unit: u32) -> bool {
        self.trimmed.is_set(unit)
    }

    pub fn count(&self, unit: u32) -> u16 {
        self.counts[unit as usize]
    }

    fn close(&mut self, extent: &Range<u32>) {
        let units = extent.end - extent.start;
        if units >= self.block_units {
            self.whole.set_range(extent.start, units);
        } else if units > 0 {
            self.starts.set_range(extent.start, 1);
        }
    }

    /// Returns the largest regions whose halves, quarters and so on have equally many extents for
    /// their size.
    pub fn regions(&self) -> Vec<Region> {
        let mut found = Vec::new();
        let leaves = self.units.div_ceil(LEAF_UNITS);
        let levels = leaves.max(1).next_power_of_two().trailing_zeros();
        let root = self.node(0, levels, &mut found);
        self.keep(&root, &mut found);
        found
    }

    /// Examines the range of 2^level leaves that begins with leaf `first`. Adds its largest regions
    /// to `found`, unless it is a region itself.
    fn node(&self, first: u32, level: u32, found: &mut Vec<Region>) -> Node {
        let begin = u64::from(first) * u64::from(LEAF_UNITS);
        let begin = begin.min(u64::from(self.units)) as u32;
        if begin == self.units {
            return Node::default();
        }
        if level == 0 {
            let end = begin.saturating_add(LEAF_UNITS).min(self.units);
            return Node::leaf(
                begin..end,
                self.starts.places(begin, end - begin, true).count(),
            );
        }
        let left = self.node(first, level - 1, found);
        let right = self.node(first + (1 << (level - 1)), level - 1, found);
        if left.is_even && right.is_even && left.is_as_dense_as(&right) {
            return left.with(&right);
        }
        self.keep(&left, found);
        self.keep(&right, found);
        Node {
            is_even: false,
            ..left.with(&right)
        }
    }

    fn keep(&self, node: &Node, found: &mut Vec<Region>) {
        if node.is_region() {
            let units = node.units.clone();
            let slot = self.slot(&units);
            found.push(Region { units, slot });
        }
    }

    fn slot(&self, units: &Range<u32>) -> u32 {
        let mut by_alignment = [0u32; MOST_ALIGNMENT as usize + 1];
        for start in self
            .starts
            .places(units.start, units.end - units.start, true)
        {
            by_alignment[start.trailing_zeros().min(MOST_ALIGNMENT) as usize] += 1;
        }
        let all: u32 = by_alignment.iter().sum();
        let aligned = |least: u32| by_alignment[least as usize..].iter().sum::<u32>();
        let is_common = |least: &u32| f64::from(aligned(*least)) >= ALIGNED * f64::from(all);
        1 << (0..=MOST_ALIGNMENT).rev().find(is_common).unwrap_or(0)
    }
}

/// Extents in a range of units.
#[derive(Debug, Clone, Default)]
struct Node {
    units: Range<u32>,
    extents: f64,
    /// Pairs of extents that share a leaf.
    pairs: f64,
    leaves: f64,
    /// True if all parts are equally dense.
    is_even: bool,
}

impl Node {
    fn leaf(units: Range<u32>, extents: usize) -> Node {
        let extents = extents as f64;
        Node {
            units,
            extents,
            pairs: extents * (extents - 1.0),
            leaves: 1.0,
            is_even: true,
        }
    }

    fn with(&self, right: &Node) -> Node {
        if right.leaves == 0.0 {
            return self.clone();
        }
        Node {
            units: self.units.start..right.units.end,
            extents: self.extents + right.extents,
            pairs: self.pairs + right.pairs,
            leaves: self.leaves + right.leaves,
            is_even: self.is_even,
        }
    }

    fn is_as_dense_as(&self, right: &Node) -> bool {
        let (left_share, right_share) = (
            self.leaves / (self.leaves + right.leaves),
            right.leaves / (self.leaves + right.leaves),
        );
        let all = self.extents + right.extents;
        let excess = self.extents - all * left_share;
        excess * excess <= DEVIATIONS * DEVIATIONS * all * left_share * right_share
    }

    /// True if the extents are many, and as scattered as random ones.
    fn is_region(&self) -> bool {
        let expected = self.extents * self.extents / self.leaves.max(1.0);
        let chance = DEVIATIONS * ((2.0 * expected).sqrt() + 1.0);
        self.is_even && self.extents >= FEWEST_EXTENTS && self.pairs <= expected + chance
    }
}
