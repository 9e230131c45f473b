//! The write buffer: a unit rewritten while it waits here is programmed once.

use crate::Write;
use std::collections::{HashMap, VecDeque};

/// Units waiting to be programmed, oldest first. A flush drains them.
#[derive(Debug, Clone)]
pub struct Buffer {
    capacity_units: usize,
    /// Writes in order of arrival. A trimmed or rewritten unit leaves behind an entry with an
    /// outdated number; at most as many of them stay as the buffer has units.
    order: VecDeque<(u64, Write)>,
    /// Number of the current entry of each unit.
    waiting: HashMap<u32, u64>,
    number: u64,
}

impl Buffer {
    pub fn new(capacity_units: u32) -> Buffer {
        Buffer {
            capacity_units: capacity_units as usize,
            order: VecDeque::new(),
            waiting: HashMap::new(),
            number: 0,
        }
    }

    pub fn holds_nothing_ever(&self) -> bool {
        self.capacity_units == 0
    }

    /// Buffers a write, and moves units that no longer fit to `out`. Returns how many waiting units
    /// the write replaced.
    pub fn write(&mut self, write: Write, out: &mut Vec<Write>) -> u64 {
        let mut replaced = 0;
        for unit in write.first..write.first + write.count {
            self.number += 1;
            if self.waiting.insert(unit, self.number).is_some() {
                replaced += 1;
            }
            self.order.push_back((
                self.number,
                Write {
                    first: unit,
                    count: 1,
                    ..write
                },
            ));
            while self.waiting.len() > self.capacity_units {
                self.drain_oldest(out);
            }
            // A workload that rewrites a few units never drains the outdated ones.
            if self.order.len() > 2 * self.capacity_units {
                self.drop_outdated();
            }
        }
        replaced
    }

    /// Drops units. Returns how many of them were waiting.
    pub fn trim(&mut self, first: u32, count: u32) -> u64 {
        if self.waiting.is_empty() {
            return 0;
        }
        (first..first + count)
            .filter(|unit| self.waiting.remove(unit).is_some())
            .count() as u64
    }

    /// Moves all units to `out`, in order of arrival.
    pub fn drain(&mut self, out: &mut Vec<Write>) {
        while !self.waiting.is_empty() {
            self.drain_oldest(out);
        }
        self.order.clear();
    }

    fn drop_outdated(&mut self) {
        let is_current =
            |(number, write): &(u64, Write)| self.waiting.get(&write.first) == Some(number);
        self.order.retain(is_current);
    }

    fn drain_oldest(&mut self, out: &mut Vec<Write>) {
        while let Some((number, write)) = self.order.pop_front() {
            if self.waiting.get(&write.first) == Some(&number) {
                self.waiting.remove(&write.first);
                match out.last_mut() {
                    Some(last) if continues(last, &write) => last.count += 1,
                    _ => out.push(write),
                }
                return;
            }
        }
    }
}

fn continues(last: &Write, write: &Write) -> bool {
    last.first + last.count == write.first && last.tag == write.tag && last.stream == write.stream
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units_of(writes: &[Write]) -> Vec<u32> {
        let ranges = writes
            .iter()
            .map(|each| each.first..each.first + each.count);
        ranges.flatten().collect()
    }

    #[test]
    fn rewrites_of_waiting_units_need_bounded_memory_and_keep_the_order() {
        let mut buffer = Buffer::new(4);
        let mut out = Vec::new();
        buffer.write(Write::new(7, 1, 0), &mut out);
        for _ in 0..1000 {
            buffer.write(Write::new(0, 2, 0), &mut out);
            assert!(buffer.order.len() <= 2 * buffer.capacity_units);
        }
        buffer.write(Write::new(7, 1, 0), &mut out);
        assert!(out.is_empty());
        buffer.drain(&mut out);
        assert_eq!(units_of(&out), [0, 1, 7]);
    }
}
