//! Sums of bytes by the values of a few columns, in one pass over the rows.

use crate::hash::HashMap;
use crate::{Causes, PathId, Row, Structure, Table};
use fscost_recording::Result;

/// Column that bytes can be summed by. Each has its own bits in the [`code`] of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Name of the interval.
    Phase,
    /// Disk.
    Disk,
    /// Kind of the block.
    Structure,
    /// Kind of the copied block.
    HomeStructure,
    /// Combination of causes.
    Cause,
    /// True if access times were the only reason.
    AtimeAlone,
    /// Path of the owner.
    Path,
    /// Number of the copy.
    Copy,
    /// True if the owner is uncertain.
    Doubtful,
}

impl Key {
    /// All keys, by the name of their column in the table of rows.
    pub const NAMED: [(&str, Key); 9] = [
        ("phase", Key::Phase),
        ("disk", Key::Disk),
        ("structure", Key::Structure),
        ("home_structure", Key::HomeStructure),
        ("cause", Key::Cause),
        ("atime_alone", Key::AtimeAlone),
        ("path", Key::Path),
        ("copy", Key::Copy),
        ("doubtful", Key::Doubtful),
    ];

    /// Returns the key of a column of the table of rows, if bytes can be summed by it.
    pub fn of(column: &str) -> Option<Key> {
        let mut named = Key::NAMED.iter();
        named.find(|(name, _)| *name == column).map(|&(_, key)| key)
    }

    /// Returns the first bit of the key's value in a code, and the number of its bits.
    const fn place(self) -> (u32, u32) {
        match self {
            Key::Path => (0, 32),
            Key::Phase => (32, 32),
            Key::Cause => (64, 22),
            Key::Disk => (86, 16),
            Key::Structure => (102, 8),
            Key::HomeStructure => (110, 8),
            Key::Copy => (118, 8),
            Key::AtimeAlone => (126, 1),
            Key::Doubtful => (127, 1),
        }
    }

    const fn mask(self) -> u128 {
        let (first, bits) = self.place();
        ((1 << bits) - 1) << first
    }

    fn put(self, value: u32) -> u128 {
        u128::from(value) << self.place().0
    }

    /// Returns the value of this key in a code.
    fn value(self, code: u128) -> u32 {
        ((code & self.mask()) >> self.place().0) as u32
    }
}

/// Value of [`Key::HomeStructure`] for rows without one.
const NO_STRUCTURE: u32 = u8::MAX as u32;
/// Value of [`Key::Path`] for rows without one.
const NO_PATH: u32 = u32::MAX;

/// Sums by one combination of keys.
#[derive(Debug)]
pub struct Sums {
    mask: u128,
    numbers: HashMap<(u64, u64), u32>,
    /// Code and bytes of each group, in the order of the groups' first rows.
    groups: Vec<(u128, u64)>,
    /// Number of the last row's group.
    last: usize,
}

impl Sums {
    fn new(keys: &[Key]) -> Sums {
        Sums {
            mask: keys.iter().fold(0, |mask, key| mask | key.mask()),
            numbers: HashMap::default(),
            groups: Vec::new(),
            last: 0,
        }
    }

    fn add(&mut self, code: u128, bytes: u64) {
        let code = code & self.mask;
        if self.groups.get(self.last).is_none_or(|group| group.0 != code) {
            let halves = (code as u64, (code >> 64) as u64);
            let next = self.groups.len();
            // A recording has fewer rows than u32 can count in memory.
            let number = self.numbers.entry(halves).or_insert(next as u32);
            self.last = *number as usize;
            if self.last == next {
                self.groups.push((code, 0));
            }
        }
        if let Some((_, sum)) = self.groups.get_mut(self.last) {
            *sum = sum.wrapping_add(bytes);
        }
    }

    /// Returns the bytes of each group, in the order of the groups' first rows.
    pub fn bytes(&self) -> impl Iterator<Item = u64> {
        self.groups.iter().map(|&(_, bytes)| bytes)
    }

    /// Returns the number of each group's value of a key: an index, or the value itself; `None` for
    /// a missing value.
    pub fn values(&self, key: Key, table: &Table) -> impl Iterator<Item = Option<usize>> {
        self.groups.iter().map(move |&(code, _)| {
            let value = key.value(code);
            match key {
                Key::HomeStructure if value == NO_STRUCTURE => None,
                Key::Path if value == NO_PATH => None,
                Key::Cause => Some(table.cause_set(Causes::from_bits(value))),
                _ => Some(value as usize),
            }
        })
    }
}

/// Rows to sum.
#[derive(Debug, Default)]
pub struct Chosen {
    /// Numbers of names of intervals; `None` for all.
    pub phases: Option<Vec<usize>>,
    /// Disks; `None` for all.
    pub disks: Option<Vec<u16>>,
}

impl Chosen {
    fn has(&self, disk: u16, phase: usize) -> bool {
        let is_in_phase = self.phases.as_ref().is_none_or(|all| all.contains(&phase));
        is_in_phase && self.disks.as_ref().is_none_or(|all| all.contains(&disk))
    }
}

/// Sums the bytes of the chosen rows by each of these combinations of keys.
pub fn sums(table: &Table, chosen: &Chosen, several: &[Vec<Key>]) -> Result<Vec<Sums>> {
    let mut found: Vec<Sums> = several.iter().map(|keys| Sums::new(keys)).collect();
    let (mut event, mut phase) = (None, 0);
    for row in table.explained.rows.iter() {
        let row = row?;
        if event != Some(row.event) {
            (event, phase) = (Some(row.event), table.timeline.interval(row.event));
        }
        if !chosen.has(row.disk, phase) {
            continue;
        }
        let code = code(&row, phase);
        for sums in &mut found {
            sums.add(code, row.length);
        }
    }
    Ok(found)
}

/// Returns the values of all keys of a row.
fn code(row: &Row, phase: usize) -> u128 {
    let structure = |structure: Structure| structure as u32;
    Key::Path.put(row.path.map_or(NO_PATH, PathId::index))
        | Key::Phase.put(phase as u32)
        | Key::Cause.put(row.causes.bits())
        | Key::Disk.put(row.disk.into())
        | Key::Structure.put(structure(row.structure))
        | Key::HomeStructure.put(row.home.map_or(NO_STRUCTURE, structure))
        | Key::Copy.put(row.copy.into())
        | Key::AtimeAlone.put(row.causes.is_atime_alone().into())
        | Key::Doubtful.put(row.is_doubtful.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;

    #[test]
    fn no_two_keys_share_a_bit() {
        let all = Key::NAMED.iter().fold(0, |seen: u128, (name, key)| {
            assert_eq!(Key::of(name), Some(*key));
            assert_eq!(seen & key.mask(), 0, "{key:?}");
            seen | key.mask()
        });
        assert_eq!(all.count_ones(), 128);
        assert!(Cause::ALL.len() <= Key::Cause.place().1 as usize);
        assert_eq!(Key::of("inode"), None);
        assert!(Structure::ALL.len() < NO_STRUCTURE as usize);
    }

    #[test]
    fn each_key_has_the_value_of_its_column() {
        let row = Row {
            disk: 3,
            structure: Structure::Log,
            home: Some(Structure::Agf),
            causes: Causes::one(Cause::Atime),
            path: Some(PathId::from_index(70_000)),
            copy: 2,
            is_doubtful: true,
            ..Row::data(0, 1)
        };
        let found = code(&row, 9);
        let values = Key::NAMED.map(|(_, key)| key.value(found));
        let (log, agf) = (Structure::Log as u32, Structure::Agf as u32);
        let causes = row.causes.bits();
        assert_eq!(values, [9, 3, log, agf, causes, 1, 70_000, 2, 1]);
        let none = code(&Row::data(0, 1), 0);
        assert_eq!(Key::Path.value(none), NO_PATH);
        assert_eq!(Key::HomeStructure.value(none), NO_STRUCTURE);
    }

    #[test]
    fn groups_come_in_the_order_of_their_first_rows() {
        let mut sums = Sums::new(&[Key::Disk, Key::Copy]);
        for (disk, copy, path) in [(2, 0, 1), (1, 0, 1), (2, 0, 2), (2, 1, 1), (1, 0, 5)] {
            let row = Row {
                disk,
                copy,
                path: Some(PathId::from_index(path)),
                ..Row::data(0, 1 << path)
            };
            sums.add(code(&row, 0), row.length);
        }
        let disks = sums.groups.iter().map(|(code, _)| Key::Disk.value(*code));
        let disks: Vec<_> = disks.collect();
        assert_eq!(disks, [2, 1, 2]);
        assert!(sums.bytes().eq([2 + 4, 2 + 32, 2]));
    }

    #[test]
    fn only_chosen_rows_count() {
        let chosen = Chosen {
            phases: Some(vec![1, 4]),
            disks: Some(vec![0]),
        };
        assert!(chosen.has(0, 4) && Chosen::default().has(7, 7));
        assert!(!chosen.has(1, 4) && !chosen.has(0, 2));
    }
}
