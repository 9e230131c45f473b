//! Which logical units hold data.

use crate::{Kind, Step, page_map::Valid};

/// Logical units that hold data, derived from the requests alone.
#[derive(Debug, Clone)]
pub struct Holds {
    bits: Valid,
    units: u32,
    /// Unit below which all units hold data.
    full_below: u32,
}

impl Holds {
    pub fn new(units: u32) -> Holds {
        Holds {
            bits: Valid::new(u64::from(units)),
            units,
            full_below: 0,
        }
    }

    pub fn play(&mut self, steps: &[Step]) {
        for step in steps {
            match step.kind {
                Kind::Write => self.set(step.first, step.count, true),
                Kind::Trim => self.set(step.first, step.count, false),
                Kind::Flush => {}
            }
        }
    }

    pub fn is_set(&self, unit: u32) -> bool {
        self.bits.is_set(unit)
    }

    pub fn set(&mut self, first: u32, count: u32, holds: bool) {
        // The device rejects steps beyond the end.
        let first = first.min(self.units);
        let count = count.min(self.units - first);
        if holds {
            self.bits.set_range(first, count);
        } else {
            self.bits.clear_range(first, count);
            self.full_below = self.full_below.min(first);
        }
    }

    pub fn count(&self) -> u64 {
        self.bits.count()
    }

    /// Returns the first run of empty units, at most `most` units long.
    pub fn next_gap(&mut self, most: u64) -> Option<(u32, u32)> {
        if most == 0 {
            return None;
        }
        let rest = self.units - self.full_below;
        let first = self.bits.places(self.full_below, rest, false).next()?;
        self.full_below = first;
        let rest = self.units - first;
        let end = self.bits.places(first, rest, true).next();
        let count = u64::from(end.unwrap_or(self.units) - first).min(most);
        Some((first, count as u32))
    }
}
