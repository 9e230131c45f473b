//! Digests of the disks after a cut: equal digests, equal images.
//!
//! A digest is the sum of a digest for each sector that is not zero, so that a choice of pending
//! units costs as much as the units, not as much as the disks. Two sets of sectors with equal sums
//! can be constructed (Wagner, CRYPTO 2002), but they cannot come about by chance.

use crate::{
    Cut,
    base::{After, Base},
    choose::Kept,
    contents::Contents,
    digest::short,
};
use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A value for each digest of an image, or of anything else that is spread evenly.
pub(crate) type ByDigest<T> = HashMap<u128, T, BuildHasherDefault<Low>>;

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
