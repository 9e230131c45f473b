//! A map from the sectors of a disk to their content in the log: a disk's image as a view of the
//! log.

use crate::format::SECTOR_BYTES;
use std::collections::BTreeMap;

/// The location of content in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// Number of the frame.
    pub frame: u32,
    /// Byte offset in the frame's raw content.
    pub content_offset: u32,
}

impl Location {
    /// Returns the location of the content `bytes` further on.
    pub fn after(self, bytes: u64) -> Location {
        let content_offset = self.content_offset + bytes as u32;
        Location {
            content_offset,
            ..self
        }
    }
}

/// A run of sectors with the same origin, returned by [`ExtentMap::segments`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Byte offset on the disk.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Location of the content; `None` if the sectors read as zeros.
    pub location: Option<Location>,
}

/// A map from sectors to the log. Sectors and lengths are 32-bit, so that an extent takes 16 bytes
/// and a server's memory is bounded by 64 bytes per request.
#[derive(Debug, Clone, Default)]
pub struct ExtentMap {
    extents: BTreeMap<u32, Extent>,
}

#[derive(Debug, Clone, Copy)]
struct Extent {
    sectors: u32,
    location: Location,
}

impl Extent {
    /// Returns the extent without its first `sectors`.
    fn after(self, sectors: u32) -> Extent {
        Extent {
            sectors: self.sectors - sectors,
            location: self.location.after(u64::from(sectors) * SECTOR_BYTES),
        }
    }
}

impl ExtentMap {
    /// Maximum memory of an extent: 16 bytes, and its share of a tree that is at least a quarter
    /// full.
    pub const EXTENT_BYTES: usize = 64;

    /// Returns the number of extents.
    pub fn extents(&self) -> usize {
        self.extents.len()
    }

    /// Records that the content of `length` bytes at `offset` is now at `location`. Both must be
    /// multiples of 512 within the disk.
    pub fn write(&mut self, offset: u64, length: u64, location: Location) {
        // Fast path: most writes overwrite an existing extent, which takes one look-up.
        let start = u32::try_from(offset / SECTOR_BYTES).ok();
        let known = start.and_then(|start| self.extents.get_mut(&start));
        if let Some(extent) = known
            && u64::from(extent.sectors) * SECTOR_BYTES == length
        {
            extent.location = location;
            return;
        }
        let Some((start, end)) = self.clear_range(offset, length) else {
            return;
        };
        let sectors = end - start;
        self.extents.insert(start, Extent { sectors, location });
    }

    /// Records that the range now reads as zeros.
    pub fn clear(&mut self, offset: u64, length: u64) {
        self.clear_range(offset, length);
    }

    fn clear_range(&mut self, offset: u64, length: u64) -> Option<(u32, u32)> {
        let start = u32::try_from(offset / SECTOR_BYTES).ok()?;
        let end = u32::try_from((offset + length) / SECTOR_BYTES).ok()?;
        if start >= end {
            return None;
        }
        if let Some((&first, extent)) = self.extents.range_mut(..start).next_back()
            && first + extent.sectors > start
        {
            let whole = *extent;
            extent.sectors = start - first;
            if first + whole.sectors > end {
                self.extents.insert(end, whole.after(end - first));
            }
        }
        while let Some((&first, &extent)) = self.extents.range(start..end).next() {
            self.extents.remove(&first);
            if first + extent.sectors > end {
                self.extents.insert(end, extent.after(end - first));
            }
        }
        Some((start, end))
    }

    /// Returns the range as runs with one origin each, in order and without gaps.
    pub fn segments(&self, offset: u64, length: u64) -> impl Iterator<Item = Segment> + '_ {
        // A reader may ask for anything: only the log checks requests.
        let end = offset.saturating_add(length);
        let sector = u32::try_from(offset / SECTOR_BYTES).unwrap_or(u32::MAX);
        let first = self
            .extents
            .range(..=sector)
            .next_back()
            .map_or(sector, |(&first, _)| first);
        let mut extents = self.extents.range(first..).peekable();
        let mut at = offset;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let bytes = |sectors: u32| u64::from(sectors) * SECTOR_BYTES;
            let is_before =
                |&(&start, extent): &(&u32, &Extent)| bytes(start + extent.sectors) <= at;
            while extents.next_if(is_before).is_some() {}
            let (to, location) = match extents.peek() {
                Some(&(&start, _)) if bytes(start) > at => (bytes(start), None),
                Some(&(&start, extent)) => (
                    bytes(start + extent.sectors),
                    Some(extent.location.after(at - bytes(start))),
                ),
                None => (end, None),
            };
            let segment = Segment {
                offset: at,
                length: to.min(end) - at,
                location,
            };
            at += segment.length;
            Some(segment)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECTORS: u64 = 64;

    /// Reference map with one entry per sector.
    fn model_of(map: &ExtentMap) -> Vec<Option<Location>> {
        let mut sectors = Vec::new();
        for segment in map.segments(0, SECTORS * SECTOR_BYTES) {
            for sector in 0..segment.length / SECTOR_BYTES {
                sectors.push(segment.location.map(|l| Location {
                    content_offset: l.content_offset + (sector * SECTOR_BYTES) as u32,
                    ..l
                }));
            }
        }
        sectors
    }

    #[test]
    fn a_range_beyond_every_address_ends_at_the_last_one() {
        let mut map = ExtentMap::default();
        map.write(
            0,
            4096,
            Location {
                frame: 0,
                content_offset: 0,
            },
        );
        let found: Vec<_> = map.segments(u64::MAX - 512, 4096).collect();
        assert_eq!(found.iter().map(|each| each.length).sum::<u64>(), 512);
        assert!(found.iter().all(|each| each.location.is_none()));
    }

    proptest! {
        #[test]
        fn behaves_like_one_entry_a_sector(ops in prop::collection::vec((0..SECTORS, 1..16u64, any::<bool>()), 1..60)) {
            let mut map = ExtentMap::default();
            let mut model = vec![None; SECTORS as usize];
            for (number, (start, count, write)) in ops.into_iter().enumerate() {
                let count = count.min(SECTORS - start);
                let location = Location { frame: number as u32, content_offset: 4096 };
                let (offset, length) = (start * SECTOR_BYTES, count * SECTOR_BYTES);
                if write { map.write(offset, length, location) } else { map.clear(offset, length) }
                for sector in 0..count {
                    let content_offset = 4096 + (sector * SECTOR_BYTES) as u32;
                    model[(start + sector) as usize] = write.then_some(Location { content_offset, ..location });
                }
                prop_assert_eq!(&model_of(&map), &model);
            }
        }
    }

    #[test]
    fn a_part_of_an_extent_is_found_from_its_middle() {
        let mut map = ExtentMap::default();
        map.write(
            4096,
            4096,
            Location {
                frame: 3,
                content_offset: 1024,
            },
        );
        let found: Vec<_> = map.segments(5120, 8192).collect();
        let location = Some(Location {
            frame: 3,
            content_offset: 2048,
        });
        assert_eq!(
            found,
            [
                Segment {
                    offset: 5120,
                    length: 3072,
                    location
                },
                Segment {
                    offset: 8192,
                    length: 5120,
                    location: None
                },
            ]
        );
    }

    #[test]
    fn the_last_sector_of_the_largest_disk_is_usable() {
        let mut map = ExtentMap::default();
        let end = crate::format::MAX_DISK_BYTES;
        map.write(
            end - 512,
            512,
            Location {
                frame: 0,
                content_offset: 0,
            },
        );
        assert_eq!(map.segments(end - 1024, 1024).count(), 2);
    }

    #[test]
    fn an_extent_costs_sixteen_bytes() {
        assert_eq!(size_of::<(u32, Extent)>(), 16);
    }
}
