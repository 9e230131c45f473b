//! Digests of the disks after a cut: equal digests, equal images.
//!
//! A digest is the sum of a digest for each sector that is not zero, so that a choice of pending
//! units costs as much as the units, not as much as the disks. Two sets of sectors with equal sums
//! can be constructed (Wagner, CRYPTO 2002), but they cannot come about by chance.

use crate::{
    Cut,
    base::{After, Base},
    choose::Kept,
    digest::short,
};
use fscost_recording::{Location, Op, Recording, Result, SECTOR_BYTES};
use std::{
    collections::{HashMap, HashSet},
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
    pub(crate) fn added(&self, at: Sector, location: Location) -> u128 {
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
pub(crate) struct Sector {
    pub(crate) disk: u16,
    pub(crate) number: u64,
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

impl Identities {
    /// Prepares the digests of a cut.
    pub fn new(contents: &Contents, cut: &Cut<'_>) -> Identities {
        Identities::after(&mut Base::default(), contents, cut)
    }

    /// Prepares the digests of a cut, from the base of an earlier one of the same requests, which
    /// it moves on.
    pub(crate) fn after(base: &mut Base, contents: &Contents, cut: &Cut<'_>) -> Identities {
        base.advance(contents, cut);
        let after = After::new(contents, base, cut);
        let mut alone = vec![0u128; cut.pending.len()];
        let mut cells: HashMap<Vec<u32>, Cell> = HashMap::new();
        for (sector, changes) in &after.pending {
            let none = after.without(*sector);
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
                *sum = sum.wrapping_add(*added).wrapping_sub(none);
            }
        }
        Identities {
            none: after.sum(),
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
