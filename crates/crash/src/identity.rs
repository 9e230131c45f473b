//! Digests of the disks after a cut: equal digests, equal images.
//!
//! A digest is the sum of a digest for each sector that is not zero, so that a choice of pending
//! units costs as much as the units, not as much as the disks. Two sets of sectors with equal sums
//! can be constructed (Wagner, CRYPTO 2002), but they cannot come about by chance.

use crate::{Cut, image::map};
use fscost_recording::{Location, Op, Recording, Result, SECTOR_BYTES};
use std::collections::{BTreeMap, HashMap};

/// Digests of the contents of all recorded sectors, to compare images without reading them.
#[derive(Debug)]
pub struct Contents {
    /// Digest of each sector that is not zero, by frame and offset of its content.
    sectors: HashMap<(u32, u32), u128>,
}

impl Contents {
    /// Reads the content of all writes once.
    pub fn read(recording: &Recording) -> Result<Contents> {
        let mut sectors = HashMap::new();
        recording.for_each_frame(true, |index, frame| {
            for event in frame.events.iter().filter(|event| event.op == Op::Write) {
                let content = frame.content_of(event);
                for (number, sector) in content.chunks(SECTOR_BYTES as usize).enumerate() {
                    let offset = event.content_offset + number as u32 * SECTOR_BYTES as u32;
                    if sector.iter().any(|&byte| byte != 0) {
                        sectors.insert((index as u32, offset), digest(&[sector]));
                    }
                }
            }
            Ok(true)
        })?;
        Ok(Contents { sectors })
    }

    /// Returns what a sector with this content adds to the digest; 0 if it is zero.
    fn added(&self, at: Sector, location: Location) -> u128 {
        let found = self.sectors.get(&(location.frame, location.content_offset));
        found.map_or(0, |content| {
            let (disk, number) = (at.disk.to_le_bytes(), at.number.to_le_bytes());
            digest(&[&disk, &number, &content.to_le_bytes()])
        })
    }
}

fn digest(parts: &[&[u8]]) -> u128 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    let mut short = [0; 16];
    short.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    u128::from_le_bytes(short)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sector {
    disk: u16,
    number: u64,
}

/// The digests of a cut's choices.
#[derive(Debug)]
pub struct Identities {
    /// Digest of the disks without any pending unit.
    none: u128,
    cells: Vec<Cell>,
}

/// Sectors that the same pending units change, in the order in which they do.
#[derive(Debug)]
struct Cell {
    /// Places in [`Cut::pending`].
    units: Vec<u32>,
    /// What the sectors add without any of these units, and with each as the last one.
    none: u128,
    with: Vec<u128>,
}

/// Units that change a sector, and what it adds to the digest after each.
type Changes = BTreeMap<Sector, Vec<(u32, u128)>>;

impl Identities {
    /// Prepares the digests of a cut.
    pub fn new(recording: &Recording, contents: &Contents, cut: &Cut<'_>) -> Identities {
        let mut without = BTreeMap::new();
        for (number, disk) in recording.header().disks.iter().enumerate() {
            let number = number as u16;
            for segment in map(cut, number, &[]).segments(0, disk.size_bytes) {
                let Some(location) = segment.location else {
                    continue;
                };
                for (sector, after) in sectors(number, segment.offset, segment.length) {
                    let added = contents.added(sector, location.after(after));
                    if added != 0 {
                        without.insert(sector, added);
                    }
                }
            }
        }
        let mut cells: HashMap<Vec<u32>, Cell> = HashMap::new();
        for (sector, changes) in changes(contents, cut, &without) {
            let units: Vec<u32> = changes.iter().map(|change| change.0).collect();
            let cell = cells.entry(units).or_insert_with_key(|units| Cell {
                units: units.clone(),
                none: 0,
                with: vec![0; units.len()],
            });
            let none = without.get(&sector).copied().unwrap_or_default();
            cell.none = cell.none.wrapping_add(none);
            for (sum, (_, added)) in cell.with.iter_mut().zip(changes) {
                *sum = sum.wrapping_add(added);
            }
        }
        Identities {
            none: without
                .values()
                .fold(0, |sum, added| sum.wrapping_add(*added)),
            cells: cells.into_values().collect(),
        }
    }

    /// Returns the digest of the contents of all disks after the cut, which kept these pending
    /// units (places in [`Cut::pending`], in order).
    pub fn of(&self, kept: &[u32]) -> u128 {
        let mut is_kept = vec![false; kept.last().map_or(0, |&last| last as usize + 1)];
        for &place in kept {
            is_kept[place as usize] = true;
        }
        let mut sum = self.none;
        for cell in &self.cells {
            let last = cell
                .units
                .iter()
                .rposition(|&unit| is_kept.get(unit as usize) == Some(&true));
            if let Some(last) = last {
                sum = sum.wrapping_sub(cell.none).wrapping_add(cell.with[last]);
            }
        }
        sum
    }
}

/// Returns the pending units that change each sector after the last change that is kept anyway.
fn changes(contents: &Contents, cut: &Cut<'_>, without: &BTreeMap<Sector, u128>) -> Changes {
    let mut units: HashMap<u32, Vec<(u32, u64, u64)>> = HashMap::new();
    for (place, unit) in cut.pending.iter().enumerate() {
        let found = units.entry(unit.change).or_default();
        found.push((place as u32, unit.offset, unit.length));
    }
    let mut found = Changes::new();
    for (place, change) in cut.requests.changes.iter().enumerate() {
        let event = &change.event;
        let pending = units.get(&(place as u32));
        if cut.is_kept(change, pending.is_some()) {
            let overwritten: Vec<Sector> = within(&found, event.disk, event.offset, event.length);
            for sector in overwritten {
                found.remove(&sector);
            }
            continue;
        }
        for &(unit, offset, length) in pending.into_iter().flatten() {
            if event.op.clears() {
                // Elsewhere, the disk is zero already.
                let mut cleared = within(&found, event.disk, offset, length);
                cleared.extend(within(without, event.disk, offset, length));
                cleared.sort_unstable();
                cleared.dedup();
                for sector in cleared {
                    found.entry(sector).or_default().push((unit, 0));
                }
                continue;
            }
            let content_at = event.content_offset + (offset - event.offset) as u32;
            let location = Location {
                frame: change.frame,
                content_offset: content_at,
            };
            for (sector, after) in sectors(event.disk, offset, length) {
                let added = contents.added(sector, location.after(after));
                found.entry(sector).or_default().push((unit, added));
            }
        }
    }
    found
}

/// Returns the known sectors of a range.
fn within<T>(known: &BTreeMap<Sector, T>, disk: u16, offset: u64, length: u64) -> Vec<Sector> {
    let at = |offset: u64| Sector {
        disk,
        number: offset / SECTOR_BYTES,
    };
    let range = known.range(at(offset)..at(offset + length));
    range.map(|(sector, _)| *sector).collect()
}

/// Yields the sectors of a range, each with its distance from the range's beginning.
fn sectors(disk: u16, offset: u64, length: u64) -> impl Iterator<Item = (Sector, u64)> {
    (0..length / SECTOR_BYTES).map(move |number| {
        let sector = Sector {
            disk,
            number: offset / SECTOR_BYTES + number,
        };
        (sector, number * SECTOR_BYTES)
    })
}
