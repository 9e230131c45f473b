//! A stream of host requests, compiled to units once and replayed as often as needed.

use crate::{Extent, page_map::Valid};

/// The operation of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Write units.
    Write,
    /// Trim units.
    Trim,
    /// Make everything written durable.
    Flush,
}

/// A part of a request. It takes 12 bytes, so that a hundred million parts fit in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// First logical unit.
    pub first: u32,
    /// Number of units.
    pub count: u32,
    /// Tag to which the step is charged.
    pub tag: u16,
    /// The operation.
    pub kind: Kind,
}

/// Requests of one disk. `setup` is replayed once, `cycle` repeatedly.
#[derive(Debug, Clone, Default)]
pub struct Workload {
    /// Bytes of a mapping unit.
    pub unit_bytes: u32,
    /// Size of the recorded disk in bytes.
    pub disk_bytes: u64,
    /// Part of the device that the disk stands for.
    pub extent: Extent,
    /// Requests before the workload: mkfs, mount, preparation.
    pub setup: Vec<Step>,
    /// Requests of the workload.
    pub cycle: Vec<Step>,
    /// Exact number of bytes that `cycle` writes: of a partially written unit, only the written
    /// part counts.
    pub write_bytes: u64,
    /// Bytes that `cycle` writes, by tag.
    pub write_bytes_by_tag: Vec<u64>,
    /// Bytes that `cycle` trims.
    pub trim_bytes: u64,
    /// Number of flushes in `cycle`.
    pub flushes: u64,
}

/// Part of the requests: the workload itself, or the setup before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Replayed once, first.
    Setup,
    /// Replayed repeatedly.
    Cycle,
}

impl Workload {
    /// Creates a workload without requests.
    #[must_use]
    pub fn new(unit_bytes: u32, disk_bytes: u64) -> Workload {
        Workload {
            unit_bytes: unit_bytes.max(1),
            disk_bytes,
            ..Workload::default()
        }
    }

    /// Adds a write of `parts`, each (bytes, tag), which are contiguous from `offset` on. A unit
    /// that several parts share is written once and charged to the part with most of its bytes (the
    /// first one in a tie).
    pub fn write(&mut self, part: Part, offset: u64, parts: impl IntoIterator<Item = (u64, u16)>) {
        let unit = u64::from(self.unit_bytes);
        let (mut at, limit) = (offset, self.disk_bytes);
        let begin = self.steps(part).len();
        let mut shared: Vec<(u16, u64)> = Vec::new();
        for (bytes, tag) in parts {
            let end = at.saturating_add(bytes).min(limit);
            if part == Part::Cycle {
                self.count(tag, end.saturating_sub(at));
            }
            while at < end {
                let within = at % unit;
                let whole = (end - at) / unit;
                if within == 0 && whole > 0 {
                    self.extend(part, begin, at / unit, whole, tag);
                    at += whole * unit;
                    continue;
                }
                let taken = (unit - within).min(end - at);
                shared.push((tag, taken));
                if within + taken == unit {
                    self.extend(part, begin, at / unit, 1, heaviest(&shared));
                    shared.clear();
                }
                at += taken;
            }
        }
        if !shared.is_empty() {
            let last = at.saturating_sub(1) / unit;
            self.extend(part, begin, last, 1, heaviest(&shared));
        }
    }

    /// Adds a trim. Units that lie only partly in the range are kept, as on real devices.
    pub fn trim(&mut self, part: Part, offset: u64, bytes: u64, tag: u16) {
        let unit = u64::from(self.unit_bytes);
        let end = offset.saturating_add(bytes).min(self.disk_bytes);
        if part == Part::Cycle {
            self.trim_bytes += end.saturating_sub(offset);
        }
        // The last unit of a disk may be smaller than the others: no later bytes could need it.
        let end = if end == self.disk_bytes {
            end.div_ceil(unit)
        } else {
            end / unit
        };
        let first = offset.div_ceil(unit);
        if first < end {
            self.push(part, first, end - first, tag, Kind::Trim);
        }
    }

    /// Adds a flush.
    pub fn flush(&mut self, part: Part, tag: u16) {
        self.flushes += u64::from(part == Part::Cycle);
        self.push(part, 0, 0, tag, Kind::Flush);
    }

    /// Returns the same requests on a device that consists only of the units that the cycle writes,
    /// packed together in order. Runs of `together` units stay whole
    /// ([`Spec::units_together`](crate::Spec::units_together)).
    #[must_use]
    pub fn footprint(&self, together: u32) -> Workload {
        let end = u32::try_from(self.units()).unwrap_or(u32::MAX);
        let together = together.max(1);
        let mut written = Valid::new(u64::from(end));
        for step in self.cycle.iter().filter(|s| s.kind == Kind::Write) {
            let first = step.first.min(end) / together * together;
            let last = step.first.saturating_add(step.count).min(end);
            let last = last.checked_next_multiple_of(together).unwrap_or(end);
            written.set_range(first, last.min(end) - first);
        }
        let ranks = written.ranks();
        let rank = |unit: u32| written.rank(&ranks, unit.min(end));
        // Written units stay contiguous; other ranges keep only their remaining units.
        let moved = |step: &Step| {
            let first = rank(step.first);
            let count = rank(step.first.saturating_add(step.count)) - first;
            let is_left = count > 0 || step.kind == Kind::Flush;
            is_left.then_some(Step {
                first,
                count,
                ..*step
            })
        };
        Workload {
            disk_bytes: written.count() * u64::from(self.unit_bytes),
            extent: Extent::Whole,
            setup: self.setup.iter().filter_map(moved).collect(),
            cycle: self.cycle.iter().filter_map(moved).collect(),
            ..self.clone()
        }
    }

    /// Returns the number of units of the disk.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.disk_bytes.div_ceil(u64::from(self.unit_bytes))
    }

    /// Returns the number of units that one pass of the cycle writes. A unit that is written twice
    /// counts twice.
    #[must_use]
    pub fn cycle_units(&self) -> u64 {
        let writes = self.cycle.iter().filter(|step| step.kind == Kind::Write);
        writes.map(|step| u64::from(step.count)).sum()
    }

    fn steps(&mut self, part: Part) -> &mut Vec<Step> {
        match part {
            Part::Setup => &mut self.setup,
            Part::Cycle => &mut self.cycle,
        }
    }

    fn count(&mut self, tag: u16, bytes: u64) {
        let at = usize::from(tag);
        if at >= self.write_bytes_by_tag.len() {
            self.write_bytes_by_tag.resize(at + 1, 0);
        }
        self.write_bytes_by_tag[at] += bytes;
        self.write_bytes += bytes;
    }

    /// Adds units to the request that began with step `begin`. Extends its last step if the units
    /// continue it.
    fn extend(&mut self, part: Part, begin: usize, first: u64, count: u64, tag: u16) {
        if self.steps(part).len() > begin
            && let Some(last) = self.steps(part).last_mut()
            && last.tag == tag
            && u64::from(last.first) + u64::from(last.count) == first
            && u64::from(last.count) + count <= u64::from(u32::MAX)
        {
            last.count += count as u32;
            return;
        }
        self.push(part, first, count, tag, Kind::Write);
    }

    fn push(&mut self, part: Part, first: u64, count: u64, tag: u16, kind: Kind) {
        // `Spec::scaled` rejects disks with more units than 32 bits can number; these are never
        // replayed.
        let step = Step {
            first: u32::try_from(first).unwrap_or(u32::MAX),
            count: u32::try_from(count).unwrap_or(u32::MAX),
            tag,
            kind,
        };
        self.steps(part).push(step);
    }
}

/// Returns the tag with the most bytes; in a tie, the one that came first.
fn heaviest(shared: &[(u16, u64)]) -> u16 {
    let bytes_of = |tag: u16| -> u64 {
        let of_tag = shared.iter().filter(|(other, _)| *other == tag);
        of_tag.map(|(_, bytes)| bytes).sum()
    };
    // Of equal ones, `max_by_key` returns the last.
    let tags = shared.iter().rev().map(|&(tag, _)| tag);
    tags.max_by_key(|&tag| bytes_of(tag)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(workload: &Workload) -> Vec<(u32, u32, u16)> {
        let writes = workload.cycle.iter().filter(|s| s.kind == Kind::Write);
        writes.map(|s| (s.first, s.count, s.tag)).collect()
    }

    #[test]
    fn a_unit_of_several_parts_is_written_once_and_charged_to_the_largest() {
        let mut workload = Workload::new(4096, 1 << 20);
        let parts = [(512, 1), (3072, 2), (512, 1), (8192, 2), (1024, 3)];
        workload.write(Part::Cycle, 4096, parts);
        assert_eq!(written(&workload), [(1, 3, 2), (4, 1, 3)]);
        assert_eq!(workload.write_bytes_by_tag, [0, 1024, 11264, 1024]);
        assert_eq!(workload.write_bytes, 13312);
    }

    #[test]
    fn a_write_in_the_middle_of_units_touches_them_whole() {
        let mut workload = Workload::new(16384, 1 << 20);
        workload.write(Part::Cycle, 16384 - 512, [(1024, 7)]);
        assert_eq!(written(&workload), [(0, 2, 7)]);
        // Two requests stay separate, although the second continues the first.
        workload.write(Part::Cycle, 32768, [(16384, 7)]);
        assert_eq!(written(&workload), [(0, 2, 7), (2, 1, 7)]);
    }

    #[test]
    fn a_footprint_has_what_the_cycle_writes_and_nothing_else() {
        let mut workload = Workload::new(4096, 1 << 20);
        let unit = |number: u64| number * 4096;
        workload.write(Part::Setup, 0, [(unit(100), 1)]);
        workload.write(Part::Cycle, unit(10), [(unit(5), 2)]);
        workload.write(Part::Cycle, unit(90), [(unit(2), 3)]);
        workload.trim(Part::Cycle, unit(12), unit(79), 4);
        let found = workload.footprint(1);
        assert_eq!(found.disk_bytes, unit(7));
        assert_eq!(written(&found), [(0, 5, 2), (5, 2, 3)]);
        assert_eq!((found.setup[0].first, found.setup[0].count), (0, 7));
        let trim = found.cycle[2];
        assert_eq!((trim.first, trim.count, trim.kind), (2, 4, Kind::Trim));
        assert_eq!(found.write_bytes, workload.write_bytes);
    }

    /// A card copies a block for each of two units in blocks of their own.
    #[test]
    fn a_footprint_keeps_whole_blocks() {
        let mut workload = Workload::new(4096, 100 * 4096);
        let unit = |number: u64| number * 4096;
        workload.write(Part::Cycle, unit(17), [(unit(1), 2)]);
        workload.write(Part::Cycle, unit(47), [(unit(2), 2)]);
        workload.write(Part::Cycle, unit(99), [(unit(1), 2)]);
        let found = workload.footprint(16);
        assert_eq!(written(&found), [(1, 1, 2), (31, 2, 2), (51, 1, 2)]);
        assert_eq!(found.disk_bytes, unit(52), "the last block is cut");
    }

    #[test]
    fn trims_leave_units_that_they_cover_in_part() {
        let mut workload = Workload::new(4096, 10 * 4096 + 512);
        workload.trim(Part::Cycle, 100, 4096, 0);
        assert!(workload.cycle.is_empty());
        workload.trim(Part::Cycle, 100, 3 * 4096, 0);
        workload.trim(Part::Setup, 4096, u64::MAX, 0);
        assert_eq!((workload.cycle[0].first, workload.cycle[0].count), (1, 2));
        assert_eq!((workload.setup[0].first, workload.setup[0].count), (1, 10));
    }
}
