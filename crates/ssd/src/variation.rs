//! What a real workload does not repeat exactly: at which addresses of a file or a database it
//! writes. Each pass moves the addresses of a *class* by a random distance, so that the model does
//! not rewrite the same units in the same order, which would free whole blocks.
//!
//! A class is a set of units that a real workload could have exchanged: they lie in a region that
//! was written with equal density, and were written about equally often, or not at all. Extents
//! that fill an erase block, and units that the workload trims, stay in place.
//!
//! Outside of such regions, a file system may write each time where it wrote before, or roam over
//! the disk. If it *roams*, all units that were written once, or never, are one more class, of
//! which empty ones take part while the drive holds less than its fill.

mod regions;

use crate::{Error, Geometry, Step, Workload, holds::Holds};
use fastrand::Rng;
use regions::{Region, Seen};
use std::sync::atomic::AtomicBool;

const FIXED: u32 = u32::MAX;
/// Standard deviations that counts of a class may exceed their mean by.
const DEVIATIONS: f64 = 4.0;
/// Counts above the mean that are allowed in addition, for means below one.
const MARGIN: f64 = 2.0;

/// Units that are exchanged with each other: a range of [`Variation::order`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Class {
    begin: u32,
    count: u32,
    /// Distances are multiples of this number of units, so that extents keep their alignment.
    slot: u32,
}

/// What happens to units that may roam.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roaming {
    /// They stay in place.
    Never,
    /// They stay in place, and are counted.
    Counted,
    /// They are moved, to empty units as well, until at most `held_units` units of the disk hold
    /// data.
    Varied {
        /// Number of these units.
        held_units: u64,
    },
}

/// The classes of a workload, and how far each is moved in the current pass.
#[derive(Debug, Clone)]
pub struct Variation {
    /// Units of each class, in ascending order.
    order: Vec<u32>,
    /// Index of each unit in `order`, or `FIXED`.
    index: Vec<u32>,
    classes: Vec<Class>,
    distances: Vec<u32>,
    roaming_units: u64,
    rng: Rng,
}

impl Variation {
    /// Finds the classes of a workload's cycle. Another thread can stop it.
    pub fn of(
        workload: &Workload,
        geometry: &Geometry,
        roaming: Roaming,
        seed: u64,
        is_stopped: &AtomicBool,
    ) -> Result<Variation, Error> {
        let (units, block_units) = (geometry.logical_units, geometry.units_per_block);
        let seen = Seen::of(&workload.cycle, units, block_units, is_stopped)?;
        let mut found = Variation {
            order: Vec::new(),
            index: vec![FIXED; units as usize],
            classes: Vec::new(),
            distances: Vec::new(),
            roaming_units: 0,
            rng: Rng::with_seed(seed),
        };
        for region in &seen.regions() {
            found.add(region, &seen);
        }
        if roaming != Roaming::Never {
            let can_roam = |unit: &u32| found.can_roam(*unit, &seen);
            let units: Vec<u32> = (0..found.index.len() as u32).filter(can_roam).collect();
            let is_written = |&&unit: &&u32| seen.count(unit) > 0;
            found.roaming_units = units.iter().filter(is_written).count() as u64;
            if let Roaming::Varied { held_units } = roaming {
                let units = found.within(held_units, units, workload);
                found.add_roaming(&units);
            }
        }
        found.distances = vec![0; found.classes.len()];
        Ok(found)
    }

    /// True if each pass is the same.
    pub fn is_exact(&self) -> bool {
        self.classes.is_empty()
    }

    /// Returns how many written units roam, or would.
    pub fn roaming_units(&self) -> u64 {
        self.roaming_units
    }

    /// Returns the units that can change places, class by class.
    pub fn units(&self) -> &[u32] {
        &self.order
    }

    /// Draws other distances for the next pass.
    pub fn shuffle(&mut self) {
        for (distance, class) in self.distances.iter_mut().zip(&self.classes) {
            *distance = self.rng.u32(0..class.count.div_ceil(class.slot)) * class.slot;
        }
    }

    /// Passes the parts of a write, at their addresses in this pass, to `write`.
    pub fn moved<E>(
        &self,
        step: &Step,
        mut write: impl FnMut(u32, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut first, mut count) = (step.first, 0);
        let mut class = 0;
        for unit in step.first..step.first.saturating_add(step.count) {
            let to = self.destination(unit, &mut class);
            if first.wrapping_add(count) == to {
                count += 1;
                continue;
            }
            if count > 0 {
                write(first, count)?;
            }
            (first, count) = (to, 1);
        }
        write(first, count)
    }

    /// `class` is a guess, and becomes the class of the unit.
    #[inline]
    fn destination(&self, unit: u32, class: &mut usize) -> u32 {
        let Some(&at) = self.index.get(unit as usize).filter(|&&at| at != FIXED) else {
            return unit;
        };
        let guessed = self.classes[*class];
        if at < guessed.begin || at - guessed.begin >= guessed.count {
            *class = self.classes.partition_point(|each| each.begin <= at) - 1;
        }
        let Class { begin, count, .. } = self.classes[*class];
        let moved = u64::from(at - begin) + u64::from(self.distances[*class]);
        self.order[(u64::from(begin) + moved % u64::from(count)) as usize]
    }

    /// Units that are written more often, such as a superblock, stay in place.
    fn can_roam(&self, unit: u32, seen: &Seen) -> bool {
        self.index[unit as usize] == FIXED && seen.count(unit) <= 1 && !seen.is_trimmed(unit)
    }

    /// Returns the units that hold data, and as many of the empty ones as the drive has data: one
    /// that receives TRIM holds no more, wherever the file system writes.
    fn within(&self, held_units: u64, units: Vec<u32>, workload: &Workload) -> Vec<u32> {
        let mut holds = Holds::new(self.index.len() as u32);
        holds.play(&workload.setup);
        holds.play(&workload.cycle);
        let is_empty = |unit: &&u32| !holds.is_set(**unit);
        let held = holds.count() + self.order.iter().filter(is_empty).count() as u64;
        let mut left = held_units.saturating_sub(held);
        let may_roam = |unit: &u32| {
            let is_empty = !holds.is_set(*unit);
            let may = !is_empty || left > 0;
            left -= u64::from(is_empty && may);
            may
        };
        units.into_iter().filter(may_roam).collect()
    }

    fn add_roaming(&mut self, units: &[u32]) {
        if units.is_empty() {
            return;
        }
        let begin = self.order.len() as u32;
        for (at, &unit) in units.iter().enumerate() {
            self.index[unit as usize] = begin + at as u32;
        }
        self.order.extend_from_slice(units);
        self.classes.push(Class {
            begin,
            count: units.len() as u32,
            slot: 1,
        });
    }

    /// Adds the classes of a region: from the rarest units on, as many as could be written equally
    /// often by chance.
    fn add(&mut self, region: &Region, seen: &Seen) {
        let members = || region.units.clone().filter(|&unit| !seen.is_fixed(unit));
        let mut histogram = Vec::new();
        for unit in members() {
            let count = usize::from(seen.count(unit));
            histogram.resize(histogram.len().max(count + 1), 0);
            histogram[count] += 1;
        }
        // Next index in `order` of the class of each count.
        let mut class_of = vec![0; histogram.len()];
        let mut next = Vec::new();
        let (mut begin, mut least) = (self.order.len() as u32, 0);
        while least < histogram.len() {
            let end = end_of_class(&histogram, least);
            let count: u32 = histogram[least..end].iter().sum();
            class_of[least..end].fill(next.len());
            next.push(begin);
            if count > 0 {
                let slot = region.slot;
                self.classes.push(Class { begin, count, slot });
            }
            (begin, least) = (begin + count, end);
        }
        self.order.resize(begin as usize, 0);
        for unit in members() {
            let at = &mut next[class_of[usize::from(seen.count(unit))]];
            self.index[unit as usize] = *at;
            self.order[*at as usize] = unit;
            *at += 1;
        }
    }
}

/// Returns the end of the class that begins with counts of `least`: the smallest set of counts that
/// do not exceed their mean by more than chance does (a Poisson distribution).
fn end_of_class(histogram: &[u32], least: usize) -> usize {
    let mut end = histogram.len();
    loop {
        let counts = || (least..end).map(|count| (count as f64, f64::from(histogram[count])));
        let units: f64 = counts().map(|(_, units)| units).sum();
        let mean = counts().map(|(count, units)| count * units).sum::<f64>() / units.max(1.0);
        let limit = (mean + DEVIATIONS * mean.sqrt() + MARGIN).floor() as usize + 1;
        let next = limit.clamp(least + 1, end);
        if next == end {
            return end;
        }
        end = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Part;

    const UNITS: u32 = 4096;

    /// Writes of one to four units at random addresses, the first quarter twice as often.
    fn workload() -> Workload {
        let mut rng = Rng::with_seed(1);
        let mut workload = Workload::new(4096, u64::from(UNITS) * 4096);
        for number in 0..2000 {
            let end = if number % 5 < 2 { UNITS / 4 } else { UNITS };
            let (unit, count) = (rng.u32(0..end - 4), rng.u64(1..5));
            workload.write(Part::Cycle, u64::from(unit) * 4096, [(count * 4096, 0)]);
        }
        workload.trim(Part::Cycle, 1000 * 4096, 100 * 4096, 0);
        workload
    }

    #[test]
    fn passes_exchange_units_and_leave_trimmed_ones_in_place() {
        let geometry = Geometry {
            unit_bytes: 4096,
            units_per_page: 1,
            units_per_block: 64,
            blocks: 80,
            logical_units: UNITS,
        };
        let workload = workload();
        let found = Variation::of(
            &workload,
            &geometry,
            Roaming::Never,
            5,
            &AtomicBool::new(false),
        );
        let mut variation = found.unwrap();
        let whole = Step {
            first: 0,
            count: UNITS,
            tag: 0,
            kind: crate::Kind::Write,
        };
        let mut units_of = |_| {
            let mut units = Vec::new();
            let write = |first: u32, count| {
                units.extend(first..first + count);
                Ok::<(), ()>(())
            };
            variation.moved(&whole, write).unwrap();
            variation.shuffle();
            units
        };
        let [recorded, second, third] = [0, 1, 2].map(&mut units_of);
        assert!(recorded.iter().copied().eq(0..UNITS));
        for units in [&second, &third] {
            assert_eq!(units[1000..1100], recorded[1000..1100]);
            let moved = units.iter().zip(&recorded).filter(|(a, b)| a != b);
            assert!(moved.count() > UNITS as usize * 9 / 10);
            let mut sorted = units.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, recorded);
        }
        assert_ne!(second, third);
    }
}
