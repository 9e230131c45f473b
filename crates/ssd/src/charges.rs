//! Who pays for a program: the tag whose data it holds, and the tag that made a copy necessary.

use crate::memory::{prefetch, table};

/// The tag of copies that nobody's writes made necessary (static wear levelling).
pub const UNATTRIBUTED: u16 = u16::MAX;

/// Programs charged to one tag, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charges {
    /// Programs of the tag's own writes.
    pub written_units: u64,
    /// Padding that the tag's flushes left.
    pub padded_units: u64,
    /// Copies of the tag's data.
    pub moved_units: u64,
    /// Copies, of whatever data, that the tag made necessary: it had overwritten or trimmed their
    /// neighbours.
    pub caused_units: u64,
}

impl std::ops::Sub for Charges {
    type Output = Charges;

    /// What was charged between two readings.
    fn sub(self, earlier: Charges) -> Charges {
        Charges {
            written_units: self.written_units - earlier.written_units,
            padded_units: self.padded_units - earlier.padded_units,
            moved_units: self.moved_units - earlier.moved_units,
            caused_units: self.caused_units - earlier.caused_units,
        }
    }
}

/// What a mapping tells of each unit that it programs, moves or gives up. Physical addresses name a
/// place.
pub trait Charge {
    /// The units from `physical` on now hold data of `tag`, which the host wrote.
    fn written(&mut self, physical: u32, units: u32, tag: u16);
    /// The units from `physical` on were left empty by a flush of `tag`.
    fn padded(&mut self, physical: u32, units: u32, tag: u16);
    /// The data of the units from `physical` on was overwritten or trimmed by `tag`.
    fn invalidated(&mut self, physical: u32, units: u32, tag: u16);
    /// The content of the units from `from` on was copied to those from `to` on.
    fn moved(&mut self, from: u32, to: u32, units: u32);
    /// `copies` units were copied because those at `invalid`, physical addresses, were given up.
    fn caused(&mut self, copies: u32, invalid: impl Iterator<Item = u32>);
    /// The units from `physical` on were erased.
    fn erased(&mut self, _physical: u32, _units: u32) {}
    /// Begins to fetch what [`invalidated`](Charge::invalidated) of this place will need.
    fn prefetch(&self, _physical: u32) {}
    /// What each tag was charged so far, by tag; empty where nothing is kept.
    fn totals(&self) -> Vec<Charges> {
        Vec::new()
    }
}

/// No charges: nothing is kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCharges;

impl Charge for NoCharges {
    fn written(&mut self, _: u32, _: u32, _: u16) {}
    fn padded(&mut self, _: u32, _: u32, _: u16) {}
    fn invalidated(&mut self, _: u32, _: u32, _: u16) {}
    fn moved(&mut self, _: u32, _: u32, _: u32) {}
    fn caused(&mut self, _: u32, _: impl Iterator<Item = u32>) {}
}

/// Charges by tag, exactly: the sums over tags equal the counters of the device.
#[derive(Debug, Clone)]
pub struct ChargesByTag {
    // While a unit is valid, the tag of its data; afterwards, the tag that gave it up.
    tags: Vec<u16>,
    by_tag: Vec<Charges>,
    invalid: Vec<u16>,
    phase: u32,
}

/// 2³² ÷ the golden ratio: its multiples modulo 2³² are spread evenly.
const GOLDEN_RATIO: u32 = 0x9E37_79B9;

impl ChargesByTag {
    /// Charges of a device with this many physical units.
    #[must_use]
    pub fn new(physical_units: u64) -> ChargesByTag {
        ChargesByTag {
            tags: table(UNATTRIBUTED, physical_units as usize),
            by_tag: Vec::new(),
            invalid: Vec::new(),
            phase: 0,
        }
    }

    /// What `tag` was charged so far.
    #[must_use]
    pub fn of(&self, tag: u16) -> Charges {
        self.by_tag
            .get(usize::from(tag))
            .copied()
            .unwrap_or_default()
    }

    /// Every tag that was charged, with its charges.
    pub fn all(&self) -> impl Iterator<Item = (u16, Charges)> + '_ {
        self.by_tag
            .iter()
            .enumerate()
            .filter(|(_, charges)| **charges != Charges::default())
            .map(|(tag, charges)| (tag as u16, *charges))
    }

    fn charge(&mut self, tag: u16) -> &mut Charges {
        let at = usize::from(tag);
        if at >= self.by_tag.len() {
            self.by_tag.resize(at + 1, Charges::default());
        }
        &mut self.by_tag[at]
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
        self.charge(tag).written_units += u64::from(units);
    }

    fn padded(&mut self, physical: u32, units: u32, tag: u16) {
        self.fill(physical, units, tag);
        self.charge(tag).padded_units += u64::from(units);
    }

    #[inline]
    fn invalidated(&mut self, physical: u32, units: u32, tag: u16) {
        self.fill(physical, units, tag);
    }

    #[inline]
    fn moved(&mut self, from: u32, to: u32, units: u32) {
        for at in 0..units {
            let tag = self.tags[(from + at) as usize];
            self.tags[(to + at) as usize] = tag;
            self.charge(tag).moved_units += 1;
        }
    }

    /// Each culprit is due `copies` ÷ culprits, rounded so that each copy is charged exactly once.
    /// The rounding starts
    /// elsewhere in each collection, so that no place in a block pays more than another in the long
    /// run.
    fn caused(&mut self, copies: u32, invalid: impl Iterator<Item = u32>) {
        if copies == 0 {
            return;
        }
        let mut found = std::mem::take(&mut self.invalid);
        found.clear();
        found.extend(invalid.map(|physical| self.tags[physical as usize]));
        if found.is_empty() {
            self.charge(UNATTRIBUTED).caused_units += u64::from(copies);
        } else {
            let (culprits, copies) = (found.len() as u64, u64::from(copies));
            self.phase = self.phase.wrapping_add(GOLDEN_RATIO);
            let mut due = (u64::from(self.phase) * culprits) >> 32;
            for &tag in &found {
                due += copies;
                self.charge(tag).caused_units += due / culprits;
                due %= culprits;
            }
        }
        self.invalid = found;
    }

    #[inline]
    fn prefetch(&self, physical: u32) {
        prefetch(&self.tags, physical as usize);
    }

    fn totals(&self) -> Vec<Charges> {
        self.by_tag.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_copy_is_charged_once_and_evenly() {
        let mut charges = ChargesByTag::new(8);
        for (place, tag) in [(0, 1), (1, 2), (2, 1), (3, 3)] {
            charges.invalidated(place, 1, tag);
        }
        for collections in 1..=1000 {
            charges.caused(6, 0..4);
            let caused = [1, 2, 3].map(|tag| charges.of(tag).caused_units);
            assert_eq!(caused.iter().sum::<u64>(), 6 * collections);
        }
        for (tag, due) in [(1, 3000), (2, 1500), (3, 1500)] {
            assert!(
                charges.of(tag).caused_units.abs_diff(due) <= 3,
                "{:?}",
                charges.of(tag)
            );
        }
        charges.caused(2, 0..0);
        assert_eq!(charges.of(UNATTRIBUTED).caused_units, 2);
    }
}
