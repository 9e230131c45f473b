//! Sums of bytes by the values of a few columns, in one pass over the rows.

use crate::directories::Directories;
use crate::hash::HashMap;
use crate::{Causes, PathId, Paths, Row, Structure, Table};
use fscost_recording::Result;

/// Column that bytes can be summed by. Each has bits of its own in a row's code; the directory
/// takes the place of the path.
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
    /// Path of the directory that holds the owner, or to which its own blocks belong. The table of
    /// rows has no such column.
    Directory,
    /// Number of the copy.
    Copy,
    /// True if the owner is uncertain.
    Doubtful,
}

impl Key {
    /// All keys, by the name of their column.
    pub const NAMED: [(&str, Key); 10] = [
        ("phase", Key::Phase),
        ("disk", Key::Disk),
        ("structure", Key::Structure),
        ("home_structure", Key::HomeStructure),
        ("cause", Key::Cause),
        ("atime_alone", Key::AtimeAlone),
        ("path", Key::Path),
        ("directory", Key::Directory),
        ("copy", Key::Copy),
        ("doubtful", Key::Doubtful),
    ];

    /// Returns the key of a column, if bytes can be summed by it.
    pub fn of(column: &str) -> Option<Key> {
        let mut named = Key::NAMED.iter();
        named.find(|(name, _)| *name == column).map(|&(_, key)| key)
    }

    /// Returns the first bit of the key's value in a code, and the number of its bits.
    const fn place(self) -> (u32, u32) {
        match self {
            Key::Path | Key::Directory => (0, 32),
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
/// Value of [`Key::Path`] and [`Key::Directory`] for rows without one.
const NO_PATH: u32 = u32::MAX;

/// Sums by one combination of keys.
#[derive(Debug)]
pub struct Sums<'t> {
    mask: u128,
    /// The directories, for sums by directory.
    directories: Option<Directories<'t>>,
    numbers: HashMap<(u64, u64), u32>,
    /// Code and bytes of each group, in the order of the groups' first rows.
    groups: Vec<(u128, u64)>,
    /// Number of the last row's group.
    last: usize,
}

impl<'t> Sums<'t> {
    fn new(keys: &[Key], paths: &'t Paths) -> Sums<'t> {
        let has_directory = keys.contains(&Key::Directory);
        Sums {
            mask: keys.iter().fold(0, |mask, key| mask | key.mask()),
            directories: has_directory.then(|| Directories::of(paths)),
            numbers: HashMap::default(),
            groups: Vec::new(),
            last: 0,
        }
    }

    fn add(&mut self, row: &Row, mut code: u128) {
        if let Some(directories) = &mut self.directories {
            let directory = directories.of_row(row).unwrap_or(NO_PATH);
            code = code & !Key::Directory.mask() | Key::Directory.put(directory);
        }
        code &= self.mask;
        if self
            .groups
            .get(self.last)
            .is_none_or(|group| group.0 != code)
        {
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
            *sum = sum.wrapping_add(row.length);
        }
    }

    /// Returns the texts of the numbers of directories.
    pub fn directories(&self) -> &[&'t str] {
        self.directories.as_ref().map_or(&[], Directories::texts)
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
                Key::Path | Key::Directory if value == NO_PATH => None,
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

impl Table {
    /// Passes the chosen rows and the numbers of their intervals to `visit`.
    fn chosen(&self, chosen: &Chosen, mut visit: impl FnMut(&Row, usize)) -> Result<()> {
        let (mut event, mut phase) = (None, 0);
        for row in self.explained.rows.iter() {
            let row = row?;
            if event != Some(row.event) {
                (event, phase) = (Some(row.event), self.timeline.interval(row.event));
            }
            if chosen.has(row.disk, phase) {
                visit(&row, phase);
            }
        }
        Ok(())
    }
}

/// Sums the bytes of the chosen rows by each of these combinations of keys. None may have both the
/// path and the directory.
pub fn sums<'t>(table: &'t Table, chosen: &Chosen, several: &[Vec<Key>]) -> Result<Vec<Sums<'t>>> {
    let new = |keys: &Vec<Key>| Sums::new(keys, &table.explained.paths);
    let mut found: Vec<Sums> = several.iter().map(new).collect();
    table.chosen(chosen, |row, phase| {
        let code = code(row, phase);
        for sums in &mut found {
            sums.add(row, code);
        }
    })?;
    Ok(found)
}

/// Part of what a transaction or checkpoint wrote: rows that agree in these columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Share {
    /// The transaction, if known.
    pub transaction: Option<u64>,
    /// Kind of the blocks.
    pub structure: Structure,
    /// Kind of the copied blocks.
    pub home: Option<Structure>,
    /// True if access times were the only reason.
    pub is_atime_alone: bool,
}

/// Sums of the rows of a [`Share`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// Number of rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time of the first one.
    pub first_ns: u64,
    /// Time of the last one.
    pub last_ns: u64,
}

/// Block or inode that a log copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Byte offset on the main disk.
    pub offset: u64,
    /// Number of transactions that copied it.
    pub transactions: u64,
    /// Kind of the block.
    pub home: Structure,
}

/// Activity of a log whose items each describe one block or inode.
#[derive(Debug, Default)]
pub struct Logged {
    numbers: HashMap<Share, usize>,
    shares: Vec<(Share, Shared)>,
    last: usize,
    copied: HashMap<u64, Copies>,
}

/// Number of transactions that the kernel may write at once: their items take turns.
const AT_ONCE: usize = 4;

/// Transactions that copied one block or inode.
#[derive(Debug)]
struct Copies {
    home: Structure,
    transactions: u64,
    /// The last ones.
    recent: [Option<u64>; AT_ONCE],
}

impl Copies {
    fn add(&mut self, home: Structure, transaction: u64) {
        self.home = self.home.max(home);
        if !self.recent.contains(&Some(transaction)) {
            self.recent[self.transactions as usize % AT_ONCE] = Some(transaction);
            self.transactions += 1;
        }
    }
}

impl Logged {
    fn add(&mut self, row: &Row, time_ns: u64) {
        let share = Share {
            transaction: row.transaction,
            structure: row.structure,
            home: row.home,
            is_atime_alone: row.causes.is_atime_alone(),
        };
        if self
            .shares
            .get(self.last)
            .is_none_or(|(of, _)| *of != share)
        {
            let next = self.shares.len();
            self.last = *self.numbers.entry(share).or_insert(next);
            if self.last == next {
                let none = Shared {
                    rows: 0,
                    bytes: 0,
                    first_ns: time_ns,
                    last_ns: time_ns,
                };
                self.shares.push((share, none));
            }
        }
        if let Some((_, sums)) = self.shares.get_mut(self.last) {
            sums.rows += 1;
            sums.bytes = sums.bytes.wrapping_add(row.length);
            sums.first_ns = sums.first_ns.min(time_ns);
            sums.last_ns = sums.last_ns.max(time_ns);
        }
        if row.structure == Structure::Log
            && let (Some(home), Some(offset)) = (row.home, row.home_offset)
            && let Some(transaction) = row.transaction
        {
            let none = || Copies {
                home,
                transactions: 0,
                recent: [None; AT_ONCE],
            };
            let copies = self.copied.entry(offset).or_insert_with(none);
            copies.add(home, transaction);
        }
    }

    /// Returns the shares of all transactions, in the order of their first rows.
    pub fn shares(&self) -> &[(Share, Shared)] {
        &self.shares
    }

    /// Returns the blocks and inodes that the log copied, by offset.
    pub fn copied(&self) -> Vec<Copied> {
        let copied = self.copied.iter();
        let mut copied: Vec<_> = copied
            .map(|(&offset, copies)| Copied {
                offset,
                transactions: copies.transactions,
                home: copies.home,
            })
            .collect();
        copied.sort_unstable_by_key(|each| each.offset);
        copied
    }
}

/// Sums the chosen rows by transaction, and counts the copies in the log.
pub fn logged(table: &Table, chosen: &Chosen) -> Result<Logged> {
    let mut found = Logged::default();
    table.chosen(chosen, |row, _| {
        found.add(row, table.timeline.time_ns(row.event));
    })?;
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
            assert_eq!(seen & key.mask() == 0, *key != Key::Directory, "{key:?}");
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
        assert_eq!(values, [9, 3, log, agf, causes, 1, 70_000, 70_000, 2, 1]);
        let none = code(&Row::data(0, 1), 0);
        assert_eq!(Key::Path.value(none), NO_PATH);
        assert_eq!(Key::HomeStructure.value(none), NO_STRUCTURE);
    }

    #[test]
    fn groups_come_in_the_order_of_their_first_rows() {
        let paths = Paths::default();
        let mut sums = Sums::new(&[Key::Disk, Key::Copy], &paths);
        for (disk, copy, path) in [(2, 0, 1), (1, 0, 1), (2, 0, 2), (2, 1, 1), (1, 0, 5)] {
            let row = Row {
                disk,
                copy,
                path: Some(PathId::from_index(path)),
                ..Row::data(0, 1 << path)
            };
            sums.add(&row, code(&row, 0));
        }
        let disks = sums.groups.iter().map(|(code, _)| Key::Disk.value(*code));
        let disks: Vec<_> = disks.collect();
        assert_eq!(disks, [2, 1, 2]);
        assert!(sums.bytes().eq([2 + 4, 2 + 32, 2]));
    }

    #[test]
    fn a_block_counts_once_in_each_transaction() {
        let mut logged = Logged::default();
        let item = |transaction, offset, home| Row {
            structure: Structure::Log,
            home: Some(home),
            home_offset: Some(offset),
            transaction: Some(transaction),
            ..Row::data(0, 10)
        };
        let (agf, agi) = (Structure::Agf, Structure::Agi);
        // The transactions take turns.
        let items = [(7, 512, agf), (8, 512, agf), (7, 512, agi), (7, 0, agi)];
        for (number, (transaction, offset, home)) in items.into_iter().enumerate() {
            logged.add(&item(transaction, offset, home), 100 - number as u64);
        }
        logged.add(&Row::data(0, 5), 50);
        let copied = logged.copied().into_iter();
        let copied: Vec<_> = copied.map(|c| (c.offset, c.transactions, c.home)).collect();
        assert_eq!(copied, [(0, 1, agi), (512, 2, agi)]);
        let shares = logged.shares().iter();
        let found = shares.map(|(share, sums)| (share.transaction, share.home, *sums));
        let of = |rows, bytes, first_ns, last_ns| Shared {
            rows,
            bytes,
            first_ns,
            last_ns,
        };
        let expected = [
            (Some(7), Some(agf), of(1, 10, 100, 100)),
            (Some(8), Some(agf), of(1, 10, 99, 99)),
            (Some(7), Some(agi), of(2, 20, 97, 98)),
            (None, None, of(1, 5, 50, 50)),
        ];
        assert!(found.eq(expected));
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
