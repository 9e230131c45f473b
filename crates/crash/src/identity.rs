//! Digests of the disks after a cut: equal digests, equal images.
//!
//! A digest is the sum of a digest for each sector that is not zero, so that a choice of pending
//! units costs as much as the units, not as much as the disks. Two sets of sectors with equal sums
//! can be constructed (Wagner, CRYPTO 2002), but they cannot come about by chance.

use crate::{Cut, choose::Kept, digest::short, image::map};
use fscost_recording::{ExtentMap, Location, Op, Recording, Result, SECTOR_BYTES};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
};

/// Digests of images, or of anything else that is spread evenly.
pub(crate) type Digests = HashSet<u128, BuildHasherDefault<Low>>;

/// Hashes a digest: by its lower half.
#[derive(Debug, Default)]
pub(crate) struct Low(u64);

impl Hasher for Low {
    fn write_u128(&mut self, digest: u128) {
        self.0 = digest as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = short(bytes) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Digests of the contents of all recorded sectors, to compare images without reading them.
#[derive(Debug)]
pub struct Contents {
    /// Of each frame, the digest of each sector of its content; 0 if it is zero.
    frames: Vec<Vec<u128>>,
}

impl Contents {
    /// Reads the content of all writes once.
    pub fn read(recording: &Recording) -> Result<Contents> {
        let mut frames = vec![Vec::new(); recording.frames().len()];
        recording.for_each_frame(true, |index, frame| {
            for event in frame.events.iter().filter(|event| event.op == Op::Write) {
                let content = frame.content_of(event);
                let first = place(event.content_offset);
                for (number, sector) in content.chunks(SECTOR_BYTES as usize).enumerate() {
                    if sector.iter().any(|&byte| byte != 0) {
                        let sectors: &mut Vec<u128> = &mut frames[index];
                        if sectors.len() <= first + number {
                            sectors.resize(first + number + 1, 0);
                        }
                        sectors[first + number] = short(sector);
                    }
                }
            }
            Ok(true)
        })?;
        Ok(Contents { frames })
    }

    /// Returns what a sector with this content adds to the digest; 0 if it is zero.
    fn added(&self, at: Sector, location: Location) -> u128 {
        let frame = self.frames.get(location.frame as usize);
        let content = frame.and_then(|frame| frame.get(place(location.content_offset)));
        match content.copied().unwrap_or_default() {
            0 => 0,
            content => placed(at, content),
        }
    }
}

/// Place of a sector in the content of its frame, which consists of whole sectors.
fn place(content_offset: u32) -> usize {
    (u64::from(content_offset) / SECTOR_BYTES) as usize
}

/// Digest of a content at its place. The content is a digest already, so that two multiplications
/// are enough; the place is mixed first (splitmix64), so that the sums of several do not depend on
/// the sums of their places.
fn placed(at: Sector, content: u128) -> u128 {
    let (low, high) = (content as u64, (content >> 64) as u64);
    let first = mixed(at.number ^ u64::from(at.disk) << 48);
    let second = mixed(first);
    let fold = |one: u64, other: u64| {
        let product = u128::from(one) * u128::from(other);
        product as u64 ^ (product >> 64) as u64
    };
    let (one, other) = (low ^ first, high ^ second);
    let (third, fourth) = (low.rotate_left(32) ^ second, high.rotate_left(32) ^ first);
    u128::from(fold(one, other)) | u128::from(fold(third, fourth)) << 64
}

fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
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
    /// What each pending unit adds in the sectors that no other changes.
    alone: Vec<u128>,
    /// Sectors that several pending units change.
    cells: Vec<Cell>,
}

/// Sectors that the same pending units change, in the order in which they do.
#[derive(Debug)]
struct Cell {
    /// Places in [`Cut::pending`].
    units: Vec<u32>,
    /// What the sectors add with each as the last one, beyond what they add without any.
    with: Vec<u128>,
}

/// Units that change a sector, and what it adds to the digest after each.
type Changes = BTreeMap<Sector, Vec<(u32, u128)>>;

impl Identities {
    /// Prepares the digests of a cut.
    pub fn new(recording: &Recording, contents: &Contents, cut: &Cut<'_>) -> Identities {
        let (mut none, mut without) = (0u128, BTreeMap::new());
        for (number, disk) in recording.header().disks.iter().enumerate() {
            let number = number as u16;
            let map = map(cut, number, &[]);
            for (_, added) in added(contents, &map, number, 0, disk.size_bytes) {
                none = none.wrapping_add(added);
            }
            for unit in cut.pending.iter().filter(|unit| unit.disk == number) {
                without.extend(added(contents, &map, number, unit.offset, unit.length));
            }
        }
        let mut alone = vec![0u128; cut.pending.len()];
        let mut cells: HashMap<Vec<u32>, Cell> = HashMap::new();
        for (sector, changes) in changes(contents, cut, &without) {
            let none = without.get(&sector).copied().unwrap_or_default();
            if let [(unit, added)] = changes[..] {
                let sum = &mut alone[unit as usize];
                *sum = sum.wrapping_add(added).wrapping_sub(none);
                continue;
            }
            let units: Vec<u32> = changes.iter().map(|change| change.0).collect();
            let cell = cells.entry(units).or_insert_with_key(|units| Cell {
                units: units.clone(),
                with: vec![0; units.len()],
            });
            for (sum, (_, added)) in cell.with.iter_mut().zip(changes) {
                *sum = sum.wrapping_add(added).wrapping_sub(none);
            }
        }
        Identities {
            none,
            alone,
            cells: cells.into_values().collect(),
        }
    }

    /// Returns the digest of the contents of all disks after the cut, which kept these pending
    /// units (places in [`Cut::pending`], in order).
    pub fn of(&self, kept: &[u32]) -> u128 {
        self.of_kept(&Kept::of(kept, self.alone.len()))
    }

    pub(crate) fn of_kept(&self, kept: &Kept) -> u128 {
        let alone = kept.iter().map(|unit| self.alone[unit as usize]);
        let last = |cell: &Cell| cell.units.iter().rposition(|&unit| kept.has(unit));
        let shared = self
            .cells
            .iter()
            .filter_map(|cell| last(cell).map(|last| cell.with[last]));
        alone
            .chain(shared)
            .fold(self.none, |sum, added| sum.wrapping_add(added))
    }
}

/// Yields the sectors of a range that are not zero, and what each adds to the digest.
fn added<'a>(
    contents: &'a Contents,
    map: &'a ExtentMap,
    disk: u16,
    offset: u64,
    length: u64,
) -> impl Iterator<Item = (Sector, u128)> + 'a {
    map.segments(offset, length).flat_map(move |segment| {
        let length = segment.location.map_or(0, |_| segment.length);
        sectors(disk, segment.offset, length).filter_map(move |(sector, after)| {
            let added = contents.added(sector, segment.location?.after(after));
            (added != 0).then_some((sector, added))
        })
    })
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
