//! Allocation units that a card keeps open. A write to another unit closes one and copies the data
//! missing from it (Bergmann, "Optimizing Linux with cheap flash drives", LWN 2011).

use super::parameters::Units;
use crate::divisor::Divisor;
use std::collections::{BTreeMap, VecDeque};

/// An open unit.
#[derive(Debug, Clone)]
struct Open {
    unit: u64,
    /// Offset at which the next sequential write begins.
    next_byte: u64,
    /// Ranges written since the unit was opened, which do not touch: the first byte of each, and
    /// its end.
    written: BTreeMap<u64, u64>,
    written_bytes: u64,
}

impl Open {
    /// Counts a write. Bytes that are rewritten count once: those missing are copied all the same.
    fn write(&mut self, mut first: u64, mut end: u64) {
        self.next_byte = end;
        while let Some((&from, &to)) = self.written.range(..=end).next_back()
            && to >= first
        {
            self.written.remove(&from);
            self.written_bytes -= to - from;
            (first, end) = (first.min(from), end.max(to));
        }
        self.written.insert(first, end);
        self.written_bytes += end - first;
    }
}

#[derive(Debug, Clone)]
pub(super) struct OpenUnits {
    model: Units,
    by_unit: Divisor,
    /// Open units; the most recently written one is last.
    open: VecDeque<Open>,
}

impl OpenUnits {
    pub(super) fn new(model: &Units) -> OpenUnits {
        OpenUnits {
            model: model.clone(),
            // A card without units never divides by this.
            by_unit: Divisor::new(model.unit_bytes.max(1)),
            open: VecDeque::new(),
        }
    }

    /// Returns the nanoseconds that a write costs beyond programming it.
    pub(super) fn write_ns(&mut self, offset: u64, length: u64) -> u64 {
        if self.model.open_units == 0 || length == 0 {
            return 0;
        }
        let size = self.model.unit_bytes;
        let (first, end) = (offset, offset + length);
        (self.by_unit.quotient(first)..self.by_unit.div_ceil(end))
            .map(|unit| {
                let part_first = first.max(unit * size);
                self.write_part(unit, part_first, end.min((unit + 1) * size))
            })
            .fold(0, u64::saturating_add)
    }

    fn write_part(&mut self, unit: u64, first: u64, end: u64) -> u64 {
        let mut cost_ns = 0;
        let found = self.open.iter().position(|open| open.unit == unit);
        let mut open = match found.and_then(|at| self.open.remove(at)) {
            Some(open) => {
                if open.next_byte != first {
                    cost_ns += self.model.out_of_order_ns;
                }
                open
            }
            None => {
                if self.open.len() >= self.model.open_units as usize
                    && let Some(oldest) = self.open.pop_front()
                {
                    cost_ns += self.close_ns(&oldest);
                }
                Open {
                    unit,
                    next_byte: first,
                    written: BTreeMap::new(),
                    written_bytes: 0,
                }
            }
        };
        open.write(first, end);
        self.open.push_back(open);
        cost_ns
    }

    /// Returns the time to close a unit: the bytes that were not written are copied.
    fn close_ns(&self, open: &Open) -> u64 {
        let missing = self.model.unit_bytes - open.written_bytes;
        match self.model.close_ns.checked_mul(missing) {
            Some(product) => self.by_unit.quotient(product),
            None => {
                let product = u128::from(self.model.close_ns) * u128::from(missing);
                (product / u128::from(self.model.unit_bytes)) as u64
            }
        }
    }
}
