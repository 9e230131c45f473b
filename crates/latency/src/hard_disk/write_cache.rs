//! The part of a drive's buffer that holds writes which are not on the medium yet.

use super::arm::{Spot, Target};
use std::collections::BTreeMap;

/// Longest part of an extent that is written to the medium in one go, so that reads need not wait
/// for more.
const LONGEST_DESTAGE_BYTES: u64 = 1 << 20;
/// Extents among which the drive chooses the one that it reaches first.
const CHOICES: usize = 8;

/// A dirty range: its end, and where its first byte is.
#[derive(Debug, Clone, Copy)]
struct Extent {
    end: u64,
    spot: Spot,
}

/// Dirty ranges, merged where they touch.
#[derive(Debug, Clone)]
pub(super) struct WriteCache {
    capacity_bytes: u64,
    dirty_bytes: u64,
    /// Bytes on their way to the medium.
    leaving_bytes: u64,
    /// By the first byte.
    extents: BTreeMap<u64, Extent>,
}

impl WriteCache {
    pub(super) fn new(capacity_bytes: u64) -> WriteCache {
        WriteCache {
            capacity_bytes,
            dirty_bytes: 0,
            leaving_bytes: 0,
            extents: BTreeMap::new(),
        }
    }

    /// True if such a write could be cached, perhaps after others were destaged.
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

    /// Adds a range whose first byte is at `spot`; what it overwrites is replaced.
    pub(super) fn write(&mut self, first: u64, length: u64, spot: Spot) {
        let (mut first, mut end, mut spot) = (first, first + length, spot);
        while let Some((&found, &extent)) = self.extents.range(..=end).next_back() {
            if extent.end < first {
                break;
            }
            self.extents.remove(&found);
            self.dirty_bytes -= extent.end - found;
            if found < first {
                (first, spot) = (found, extent.spot);
            }
            end = end.max(extent.end);
        }
        self.dirty_bytes += end - first;
        self.extents.insert(first, Extent { end, spot });
    }

    /// True if the whole range is in the cache.
    pub(super) fn holds(&self, first: u64, length: u64) -> bool {
        let before = self.extents.range(..=first).next_back();
        before.is_some_and(|(_, extent)| extent.end >= first + length)
    }

    /// Extents to choose from: the next few upwards from a byte, then from the lowest on. Going one
    /// way only, no extent waits for ever.
    pub(super) fn upwards(&self, from: u64) -> impl Iterator<Item = Target> {
        let above = self.extents.range(from..);
        let below = self.extents.range(..from);
        above
            .chain(below)
            .take(CHOICES)
            .map(|(&first, extent)| Target {
                first,
                end: extent.end.min(first + LONGEST_DESTAGE_BYTES),
                is_write: true,
                spot: extent.spot,
            })
    }

    /// Takes the beginning of an extent out, as [`upwards`](WriteCache::upwards) named it. What is
    /// left of it begins at `spot`.
    pub(super) fn take(&mut self, target: &Target, spot: Spot) {
        let (first, end) = (target.first, target.end);
        if let Some(whole) = self.extents.remove(&first) {
            if end < whole.end {
                let rest = Extent { spot, ..whole };
                self.extents.insert(end, rest);
            }
            self.dirty_bytes -= end - first;
            self.leaving_bytes += end - first;
        }
    }

    /// What was taken out is on the medium.
    pub(super) fn settle(&mut self) {
        self.leaving_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A set of bytes says the same.
        #[test]
        fn extents_are_the_bytes_written(
            writes in prop::collection::vec((0u64..200, 1u64..40), 1..60),
            takes in prop::collection::vec(0u64..200, 0..20),
        ) {
            let mut cache = WriteCache::new(1000);
            let mut bytes = std::collections::BTreeSet::new();
            for (first, length) in writes {
                cache.write(first, length, Spot::default());
                bytes.extend(first..first + length);
            }
            for from in takes {
                let found = cache.upwards(from).next();
                if let Some(target) = found {
                    prop_assert!((target.first..target.end).all(|byte| bytes.remove(&byte)));
                    cache.take(&target, Spot::default());
                }
            }
            prop_assert_eq!(cache.dirty_bytes, bytes.len() as u64);
            prop_assert_eq!(cache.is_empty(), bytes.is_empty());
            for byte in 0..240 {
                prop_assert_eq!(cache.holds(byte, 1), bytes.contains(&byte));
            }
        }
    }
}
