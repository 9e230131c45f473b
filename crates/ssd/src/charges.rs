//! Attribution of programs: the tag whose data a program writes, and the tag that made a copy
//! necessary.

use crate::memory::{prefetch, table};

/// Tag of copies that no write made necessary (static wear levelling).
pub const UNATTRIBUTED: u16 = u16::MAX;

/// Programs charged to one tag, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charges {
    /// Programs of the tag's own writes.
    pub written_units: u64,
    /// Padding caused by the tag's flushes.
    pub padded_units: u64,
    /// Copies of the tag's data.
    pub moved_units: u64,
    /// Copies of any data that the tag made necessary, because it had overwritten or trimmed
    /// neighbouring units.
    pub caused_units: u64,
}

impl std::ops::Sub for Charges {
    type Output = Charges;

    /// Returns the charges between two readings.
    fn sub(self, earlier: Charges) -> Charges {
        Charges {
            written_units: self.written_units - earlier.written_units,
            padded_units: self.padded_units - earlier.padded_units,
            moved_units: self.moved_units - earlier.moved_units,
            caused_units: self.caused_units - earlier.caused_units,
        }
    }
}

/// Receives each unit that a mapping programs, moves or invalidates. Places are physical addresses.
pub trait Charge {
    /// Records that the host wrote data of `tag` to the units from `physical` on.
    fn written(&mut self, physical: u32, units: u32, tag: u16);
    /// Records that a flush of `tag` left the units from `physical` on empty.
    fn padded(&mut self, physical: u32, units: u32, tag: u16);
    /// Records that `tag` overwrote or trimmed the data of the units from `physical` on.
    fn invalidated(&mut self, physical: u32, units: u32, tag: u16);
    /// Records that the units from `from` on were copied to the units from `to` on.
    fn moved(&mut self, from: u32, to: u32, units: u32);
    /// Records that `copies` units were copied because the units of `invalid` were invalidated.
    /// `invalid` contains runs of physical addresses: first address and length.
    fn caused(&mut self, copies: u32, invalid: impl Iterator<Item = (u32, u32)>);
    /// Records that the units from `physical` on were erased.
    fn erased(&mut self, _physical: u32, _units: u32) {}
    /// Prefetches what a call of [`invalidated`](Charge::invalidated) for this unit will need.
    fn prefetch(&self, _physical: u32) {}
    /// Returns the charges so far, indexed by tag; empty if charges are not kept.
    fn totals(&self) -> Vec<Charges> {
        Vec::new()
    }
}

/// An implementation that keeps no charges.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCharges;

impl Charge for NoCharges {
    fn written(&mut self, _: u32, _: u32, _: u16) {}
    fn padded(&mut self, _: u32, _: u32, _: u16) {}
    fn invalidated(&mut self, _: u32, _: u32, _: u16) {}
    fn moved(&mut self, _: u32, _: u32, _: u32) {}
    fn caused(&mut self, _: u32, _: impl Iterator<Item = (u32, u32)>) {}
}

/// Exact charges by tag: the sums over tags equal the counters of the device.
#[derive(Debug, Clone)]
pub struct ChargesByTag {
    // For a valid unit, the tag of its data; for an invalid unit, the tag that invalidated it.
    tags: Vec<u16>,
    by_tag: Vec<Charges>,
    /// Culprits of a collection: a tag, and the number of units it invalidated. The allocation is
    /// reused.
    culprits: Vec<(u16, u32)>,
    phase: u32,
}

/// 2³² ÷ the golden ratio; its multiples modulo 2³² are evenly spread.
const GOLDEN_RATIO: u32 = 0x9E37_79B9;

impl ChargesByTag {
    /// Creates the charges of a device with this many physical units.
    #[must_use]
    pub fn new(physical_units: u64) -> ChargesByTag {
        ChargesByTag {
            tags: table(UNATTRIBUTED, physical_units as usize),
            by_tag: Vec::new(),
            culprits: Vec::new(),
            phase: 0,
        }
    }

    /// Distributes `copies` over the `culprits` units of `found`, in order. `rest` is the initial
    /// remainder, below `culprits`.
    fn share(&mut self, copies: u32, culprits: u32, mut rest: u32, found: &[(u16, u32)]) {
        let (each, more) = (copies / culprits, copies % culprits);
        for &(tag, count) in found {
            let mut due = u64::from(each) * u64::from(count);
            if count == 1 {
                // Most runs after random writes have one unit, and a division takes longer than
                // everything else here.
                rest += more;
                if rest >= culprits {
                    rest -= culprits;
                    due += 1;
                }
            } else {
                let sum = u64::from(rest) + u64::from(more) * u64::from(count);
                due += sum / u64::from(culprits);
                rest = (sum % u64::from(culprits)) as u32;
            }
            charge(&mut self.by_tag, tag).caused_units += due;
        }
    }

    fn fill(&mut self, physical: u32, units: u32, tag: u16) {
        let begin = physical as usize;
        self.tags[begin..begin + units as usize].fill(tag);
    }
}

impl Charge for ChargesByTag {
    #[inline]
    fn written(&mut self, physical: u32, units: u32, tag: u16) {
        self.fill(physical, units, tag);
        charge(&mut self.by_tag, tag).written_units += u64::from(units);
    }

    fn padded(&mut self, physical: u32, units: u32, tag: u16) {
        self.fill(physical, units, tag);
        charge(&mut self.by_tag, tag).padded_units += u64::from(units);
    }

    #[inline]
    fn invalidated(&mut self, physical: u32, units: u32, tag: u16) {
        self.fill(physical, units, tag);
    }

    #[inline]
    fn moved(&mut self, from: u32, to: u32, units: u32) {
        let (from, to) = (from as usize, to as usize);
        self.tags.copy_within(from..from + units as usize, to);
        for (tag, count) in runs(&self.tags[to..to + units as usize]) {
            charge(&mut self.by_tag, tag).moved_units += u64::from(count);
        }
    }

    /// Charges `copies` ÷ culprits to each invalidated unit, rounded so that each copy is charged
    /// exactly once. The rounding starts at a different unit in each collection, so that in the
    /// long run no position in a block is charged more than another.
    fn caused(&mut self, copies: u32, invalid: impl Iterator<Item = (u32, u32)>) {
        if copies == 0 {
            return;
        }
        let mut found = std::mem::take(&mut self.culprits);
        found.clear();
        let mut culprits = 0;
        for (physical, units) in invalid {
            culprits += units;
            let range = physical as usize..(physical + units) as usize;
            found.extend(runs(&self.tags[range]));
        }
        if culprits == 0 {
            charge(&mut self.by_tag, UNATTRIBUTED).caused_units += u64::from(copies);
        } else {
            self.phase = self.phase.wrapping_add(GOLDEN_RATIO);
            let first = (u64::from(self.phase) * u64::from(culprits)) >> 32;
            self.share(copies, culprits, first as u32, &found);
        }
        self.culprits = found;
    }

    #[inline]
    fn prefetch(&self, physical: u32) {
        prefetch(&self.tags, physical as usize);
    }

    fn totals(&self) -> Vec<Charges> {
        self.by_tag.clone()
    }
}

#[inline]
fn charge(by_tag: &mut Vec<Charges>, tag: u16) -> &mut Charges {
    let at = usize::from(tag);
    if at >= by_tag.len() {
        by_tag.resize(at + 1, Charges::default());
    }
    &mut by_tag[at]
}

/// Returns the runs of equal tags: tag and length.
#[inline]
fn runs(mut tags: &[u16]) -> impl Iterator<Item = (u16, u32)> {
    std::iter::from_fn(move || {
        let first = *tags.first()?;
        // Compares 32 at a time, which the compiler vectorises.
        let chunks = tags.chunks_exact(32);
        let whole = 32
            * chunks
                .take_while(|chunk| !chunk.iter().any(|&tag| tag != first))
                .count();
        let rest = tags[whole..].iter().take_while(|&&tag| tag == first);
        let length = whole + rest.count();
        tags = &tags[length..];
        Some((first, length as u32))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_copy_is_charged_once_and_evenly() {
        let mut charges = ChargesByTag::new(8);
        for (place, tag) in [(0, 1), (1, 2), (2, 1), (3, 3)] {
            charges.invalidated(place, 1, tag);
        }
        for collections in 1..=1000 {
            charges.caused(6, [(0, 1), (1, 3)].into_iter());
            let caused = [1, 2, 3].map(|tag| charges.by_tag[tag].caused_units);
            assert_eq!(caused.iter().sum::<u64>(), 6 * collections);
        }
        for (tag, due) in [(1, 3000), (2, 1500), (3, 1500)] {
            let found = charges.by_tag[tag];
            assert!(found.caused_units.abs_diff(due) <= 3, "{found:?}");
        }
        charges.caused(2, std::iter::empty());
        let unattributed = charges.by_tag[usize::from(UNATTRIBUTED)];
        assert_eq!(unattributed.caused_units, 2);
    }

    proptest! {
        /// Compares charging by run with charging unit by unit.
        #[test]
        fn runs_are_charged_as_their_units_are(
            tags in prop::collection::vec((0..3u16, 1..70u32), 1..12),
            rounds in prop::collection::vec(1..2000u32, 1..6),
        ) {
            let units: u32 = tags.iter().map(|each| each.1).sum();
            let mut of_runs = ChargesByTag::new(u64::from(units));
            let mut of_units = of_runs.clone();
            let mut at = 0;
            for &(tag, count) in &tags {
                of_runs.invalidated(at, count, tag);
                of_units.invalidated(at, count, tag);
                at += count;
            }
            for copies in rounds {
                of_runs.caused(copies, std::iter::once((0, units)));
                of_units.caused(copies, (0..units).map(|unit| (unit, 1)));
                prop_assert_eq!(&of_runs.by_tag, &of_units.by_tag);
            }
        }
    }
}
