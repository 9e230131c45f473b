//! Which of the pending units a power cut keeps.

use crate::{Cut, digest::short};
use std::{
    collections::HashSet,
    hash::{BuildHasherDefault, Hasher},
};

/// Most units whose sets are so few that a bit for each takes less time than a hash: 128 KiB.
const FEW_UNITS: usize = 20;

/// What a device promises beyond flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// Nothing: pending units may reach the medium in any order.
    Reorder,
    /// Pending units reach their disk's medium in the order in which they came. Disks do not wait
    /// for each other.
    InOrder,
}

/// The pending units that a state keeps, by their places in [`Cut::pending`], and why it was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// How it was chosen: `none`, `all`, `prefix`, `all but one`, `only one`, `one disk` or
    /// `random`.
    pub how: &'static str,
    /// Places of the units that reached the medium, in order.
    pub kept: Vec<u32>,
}

/// Returns at most `most` different subsets of the pending units: first the ones that find most
/// (nothing, everything, each prefix, all but one, only one; of disks in order, all of one disk),
/// then random ones of `seed`. Where there are too many, each kind gets an even share.
pub fn choices(cut: &Cut<'_>, model: Model, most: usize, seed: u64) -> Vec<Choice> {
    let mut found = Vec::new();
    each_choice(cut, model, most, seed, |how, kept| {
        found.push(Choice {
            how,
            kept: kept.places(),
        });
        true
    });
    found
}

/// Calls `visit` with each of these subsets, until it returns false. None of them is kept.
pub(crate) fn each_choice(
    cut: &Cut<'_>,
    model: Model,
    most: usize,
    seed: u64,
    mut visit: impl FnMut(&'static str, &Kept) -> bool,
) {
    let count = cut.pending.len();
    let mut kept = Kept::new(count);
    let mut seen = Seen::new(count);
    // Each kind, and how many subsets it has.
    let mut kinds = vec![("none", 1), ("all", 1), ("prefix", count.saturating_sub(1))];
    let disks = Disks::of(cut);
    match model {
        Model::Reorder => kinds.extend([("all but one", count), ("only one", count)]),
        Model::InOrder if disks.units.len() > 1 => kinds.push(("one disk", disks.units.len())),
        Model::InOrder => {}
    }
    let share = (most / kinds.len()).max(1);
    for (how, subsets) in kinds {
        for number in 0..subsets.min(share) {
            if seen.count == most {
                return;
            }
            let number = if subsets > share {
                number * subsets / share
            } else {
                number
            };
            kept.set(how, number, &disks);
            if seen.insert(&kept) && !visit(how, &kept) {
                return;
            }
        }
    }
    if model == Model::InOrder && disks.units.len() < 2 {
        return;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    // Few units have few subsets: stop when draws bring nothing new.
    let mut misses = 0;
    while seen.count < most && misses < 64 {
        match model {
            Model::Reorder => {
                let share = random.f64();
                kept.set_each(|_| random.f64() < share);
            }
            Model::InOrder => {
                let first: Vec<_> = disks
                    .units
                    .iter()
                    .map(|&all| random.usize(0..=all))
                    .collect();
                kept.set_each(|place| {
                    let (disk, number) = disks.places[place];
                    number < first[disk]
                });
            }
        }
        misses = if seen.insert(&kept) {
            if !visit("random", &kept) {
                return;
            }
            0
        } else {
            misses + 1
        };
    }
}

/// The disks that have pending units.
struct Disks {
    /// Number of units of each disk.
    units: Vec<usize>,
    /// Place of each unit's disk in `units`, and its number among that disk's units.
    places: Vec<(usize, usize)>,
}

impl Disks {
    fn of(cut: &Cut<'_>) -> Disks {
        let mut known = Vec::new();
        let mut units = Vec::new();
        let places = cut.pending.iter().map(|unit| {
            let place = known.iter().position(|&disk| disk == unit.disk);
            let place = place.unwrap_or_else(|| {
                known.push(unit.disk);
                units.push(0);
                known.len() - 1
            });
            units[place] += 1;
            (place, units[place] - 1)
        });
        let places = places.collect();
        Disks { units, places }
    }
}

/// The sets of places that were there before.
struct Seen {
    count: usize,
    /// A bit for each set of few units.
    bits: Vec<u64>,
    names: HashSet<u128, BuildHasherDefault<Mixed>>,
}

impl Seen {
    /// Begins with no set of as many units.
    fn new(units: usize) -> Seen {
        let bits = match units {
            0..=FEW_UNITS => (1usize << units).div_ceil(64),
            _ => 0,
        };
        Seen {
            count: 0,
            bits: vec![0; bits],
            names: HashSet::default(),
        }
    }

    /// Adds a set, and returns true if it was not there.
    fn insert(&mut self, kept: &Kept) -> bool {
        let name = kept.name();
        let is_new = match self.bits.get_mut((name >> 6) as usize) {
            Some(word) if kept.count <= FEW_UNITS => {
                let bit = 1 << (name & 63);
                let is_new = *word & bit == 0;
                *word |= bit;
                is_new
            }
            _ => self.names.insert(name),
        };
        self.count += usize::from(is_new);
        is_new
    }
}

/// Hashes the name of a set, most of whose bits may be equal to those of others.
#[derive(Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write_u128(&mut self, name: u128) {
        let low = name as u64 ^ 0x9e37_79b9_7f4a_7c15;
        let high = (name >> 64) as u64 ^ 0xbf58_476d_1ce4_e5b9;
        let product = u128::from(low) * u128::from(high);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = short(bytes) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A set of places of pending units: one bit for each.
#[derive(Debug)]
pub(crate) struct Kept {
    bits: Vec<u64>,
    count: usize,
}

impl Kept {
    fn new(count: usize) -> Kept {
        Kept {
            bits: vec![0; count.div_ceil(64)],
            count,
        }
    }

    /// The set of these places, all below `count`.
    pub(crate) fn of(places: &[u32], count: usize) -> Kept {
        let mut kept = Kept::new(count);
        for &place in places {
            kept.flip(place as usize);
        }
        kept
    }

    pub(crate) fn has(&self, place: u32) -> bool {
        let place = place as usize;
        let word = self.bits.get(place / 64);
        word.is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    /// The places, in order.
    pub(crate) fn places(&self) -> Vec<u32> {
        self.iter().collect()
    }

    /// Yields the places, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.bits.iter().enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(at as u32 * 64 + bit)
            })
        })
    }

    /// The set itself, if it has few places, otherwise a digest of it.
    fn name(&self) -> u128 {
        let word = |at: usize| u128::from(self.bits.get(at).copied().unwrap_or_default());
        if self.bits.len() <= 2 {
            return word(0) | word(1) << 64;
        }
        let bytes: Vec<u8> = self
            .bits
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        short(&bytes)
    }

    /// Sets the subset of a kind with this number.
    fn set(&mut self, how: &str, number: usize, disks: &Disks) {
        match how {
            "none" => self.set_first(0),
            "all" => self.set_first(self.count),
            "prefix" => self.set_first(number + 1),
            "one disk" => self.set_each(|place| disks.places[place].0 == number),
            "only one" => {
                self.set_first(0);
                self.flip(number);
            }
            _ => {
                self.set_first(self.count);
                self.flip(number);
            }
        }
    }

    fn set_first(&mut self, count: usize) {
        self.set_each(|place| place < count);
    }

    fn set_each(&mut self, mut is_kept: impl FnMut(usize) -> bool) {
        let count = self.count;
        for (at, word) in self.bits.iter_mut().enumerate() {
            *word = 0;
            for place in at * 64..count.min(at * 64 + 64) {
                *word |= u64::from(is_kept(place)) << (place % 64);
            }
        }
    }

    fn flip(&mut self, place: usize) {
        if let Some(word) = self.bits.get_mut(place / 64) {
            *word ^= 1 << (place % 64);
        }
    }
}
