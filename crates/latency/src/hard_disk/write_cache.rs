//! The part of a drive's buffer that holds writes not yet on the medium.

use super::{
    arm::{Spot, Target},
    extents::{Extent, Extents, Position},
};

/// Longest part of an extent that is written to the medium in one operation. The limit bounds the
/// time that reads wait.
const LONGEST_DESTAGE_BYTES: u64 = 1 << 20;
/// Number of extents from which the drive chooses the one it reaches first.
const CHOICES: usize = 8;

/// Dirty ranges, merged where they touch.
#[derive(Debug, Clone)]
pub(super) struct WriteCache {
    capacity_bytes: u64,
    dirty_bytes: u64,
    /// Bytes that are being written to the medium.
    leaving_bytes: u64,
    extents: Extents,
}

impl WriteCache {
    pub(super) fn new(capacity_bytes: u64) -> WriteCache {
        WriteCache {
            capacity_bytes,
            dirty_bytes: 0,
            leaving_bytes: 0,
            extents: Extents::new(),
        }
    }

    /// True if a write of this length could be cached, possibly after destaging others.
    pub(super) fn could_take(&self, length: u64) -> bool {
        length <= self.capacity_bytes
    }

    pub(super) fn has_room(&self, length: u64) -> bool {
        self.dirty_bytes + self.leaving_bytes + length <= self.capacity_bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// True if everything is on the medium.
    pub(super) fn is_clean(&self) -> bool {
        self.extents.is_empty() && self.leaving_bytes == 0
    }

    /// Adds a range whose first byte is at `spot`, replacing any data it overwrites.
    pub(super) fn write(&mut self, first: u64, length: u64, spot: Spot) {
        let (mut first, mut end, mut spot) = (first, first + length, spot);
        let mut position = self.extents.after(end);
        while let Some(&found) = self.extents.before(position) {
            if found.end < first {
                break;
            }
            self.extents.remove_before(position);
            self.dirty_bytes -= found.end - found.first;
            if found.first < first {
                (first, spot) = (found.first, found.spot);
            }
            end = end.max(found.end);
            position = self.extents.after(end);
        }
        self.dirty_bytes += end - first;
        self.extents.insert(position, Extent { first, end, spot });
    }

    /// True if the whole range is in the cache.
    pub(super) fn holds(&self, first: u64, length: u64) -> bool {
        let before = self.extents.before(self.extents.after(first));
        before.is_some_and(|extent| extent.end >= first + length)
    }

    /// Passes the candidate extents to `name`: the next few in ascending order from a byte,
    /// wrapping around to the lowest. Because the order is always ascending, no extent starves.
    #[inline]
    pub(super) fn upwards(&self, from: u64, mut name: impl FnMut(Target, Position)) {
        self.extents.upwards(from, CHOICES, |extent, behind| {
            let target = Target {
                first: extent.first,
                end: extent.end.min(extent.first + LONGEST_DESTAGE_BYTES),
                is_write: true,
                spot: extent.spot,
            };
            name(target, behind);
        });
    }

    /// Removes the beginning of an extent, given the target and position from
    /// [`upwards`](WriteCache::upwards). The rest of the extent begins at `spot`.
    pub(super) fn take(
        &mut self,
        target: &Target,
        position: Position,
        spot: impl FnOnce() -> Spot,
    ) {
        let (first, end) = (target.first, target.end);
        if let Some(whole) = self.extents.before_mut(position) {
            if end < whole.end {
                (whole.first, whole.spot) = (end, spot());
            } else {
                self.extents.remove_before(position);
            }
            self.dirty_bytes -= end - first;
            self.leaving_bytes += end - first;
        }
    }

    /// Records that the data taken out is on the medium.
    pub(super) fn settle(&mut self) {
        self.leaving_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a set of bytes.
        #[test]
        fn extents_are_the_bytes_written(
            writes in prop::collection::vec((0u64..4000, 1u64..10), 1..900),
            takes in prop::collection::vec(0u64..4000, 0..300),
        ) {
            let mut cache = WriteCache::new(10_000);
            let mut bytes = std::collections::BTreeSet::new();
            for (first, length) in writes {
                cache.write(first, length, Spot::default());
                bytes.extend(first..first + length);
            }
            for from in takes {
                let mut targets = Vec::new();
                cache.upwards(from, |target, position| targets.push((target, position)));
                let chosen: Vec<_> = targets.iter().map(|(target, _)| target.first).collect();
                let starts = || {
                    let is_start = |byte: &&u64| **byte == 0 || !bytes.contains(&(*byte - 1));
                    bytes.iter().filter(is_start).copied()
                };
                let above = starts().filter(|&at| at >= from);
                let below = starts().filter(|&at| at < from);
                let expected: Vec<_> = above.chain(below).take(CHOICES).collect();
                prop_assert_eq!(chosen, expected);
                if let Some((target, position)) = targets.first() {
                    prop_assert!((target.first..target.end).all(|byte| bytes.remove(&byte)));
                    cache.take(target, *position, Spot::default);
                }
            }
            prop_assert_eq!(cache.dirty_bytes, bytes.len() as u64);
            prop_assert_eq!(cache.is_empty(), bytes.is_empty());
            for byte in 0..4020 {
                prop_assert_eq!(cache.holds(byte, 1), bytes.contains(&byte));
            }
        }
    }
}
