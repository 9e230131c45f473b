//! Names of row owners in file systems without a journal, where an inode and its name are written
//! separately.
//!
//! A row gets the name that its file had on the disk when the next flush completed. A file that is
//! named later may have had another name until then. Its data has no path and is marked as
//! doubtful.

use std::collections::BTreeMap;

use super::links::Moved;
use super::names::{Life, Names};
use crate::hash::HashMap;
use crate::track::waiting::MAX_WAITING;
use crate::{Row, Rows, Structure};

/// Rows that wait for a name in a file system without a journal, by row number.
#[derive(Debug, Default)]
pub struct Naming {
    /// Rows written since the last flush.
    waiting: BTreeMap<usize, Owner>,
    /// Rows written before the last flush that have no name. At a mark, all directories are on the
    /// disk.
    unnamed: BTreeMap<usize, Owner>,
    /// Rows since the last mark whose path may turn out to be outdated or missing, by the
    /// directory that holds the name of their file.
    below: HashMap<u32, Vec<Below>>,
    /// Number of these rows.
    below_count: usize,
    /// Last epoch in which the path to each directory was certain, as far as it was looked up in
    /// this epoch.
    certain_until: HashMap<u32, u32>,
}

/// Row of a file below a directory that may have moved.
#[derive(Debug, Clone, Copy)]
struct Below {
    row: usize,
    owner: Owner,
    /// Epoch in which the file's name appeared.
    since: u32,
}

/// File that an inode number belonged to at one time.
#[derive(Debug, Clone, Copy)]
struct Owner {
    inode: u32,
    life: Life,
    /// True if the row is doubtful only because its file has no name.
    is_doubted: bool,
}

impl Naming {
    /// Names a row that has an owner, or queues it until the next flush. `epoch` is the epoch in
    /// which the row was written.
    pub fn later(&mut self, row: usize, epoch: u32, names: &mut Names, rows: &mut Rows) {
        let inode = rows.get_mut(row).map_or(0, |row| row.inode as u32);
        if inode == 0 {
            return;
        }
        let owner = Owner {
            inode,
            life: names.life(inode),
            is_doubted: false,
        };
        if epoch < names.epoch {
            self.waiting.remove(&row);
            name(row, owner, epoch, names, rows);
            self.keep(row, owner, names, rows);
            return;
        }
        if self.waiting.len() >= MAX_WAITING {
            self.flush(names, rows);
        }
        self.waiting.insert(row, owner);
    }

    /// Records that row `part` was split off row `whole`.
    pub fn cut(&mut self, whole: usize, part: usize, names: &Names, rows: &mut Rows) {
        for rows in [&mut self.waiting, &mut self.unnamed] {
            if let Some(&owner) = rows.get(&whole) {
                rows.insert(part, owner);
            }
        }
        let inode = rows.get_mut(part).map_or(0, |row| row.inode as u32);
        let owner = Owner {
            inode,
            life: names.life(inode),
            is_doubted: false,
        };
        self.keep(part, owner, names, rows);
    }

    /// Gives rows from before the flush the names that are on the disk.
    pub fn flush(&mut self, names: &mut Names, rows: &mut Rows) {
        self.follow(names, rows);
        for (row, owner) in std::mem::take(&mut self.waiting) {
            if let Some(unnamed) = name(row, owner, names.epoch, names, rows)
                && self.unnamed.len() < MAX_WAITING
            {
                self.unnamed.insert(row, unnamed);
            }
            self.keep(row, owner, names, rows);
        }
    }

    /// Keeps a row whose path may turn out to be outdated, or has a directory whose name is not
    /// known yet.
    fn keep(&mut self, row: usize, owner: Owner, names: &Names, rows: &mut Rows) {
        let Some((directory, since)) = names.place(owner.inode) else {
            return;
        };
        let is_data = |row: &mut Row| row.structure == Structure::FileData;
        if self.below_count >= MAX_WAITING || !rows.get_mut(row).is_some_and(is_data) {
            return;
        }
        let certain_until = *self
            .certain_until
            .entry(directory)
            .or_insert_with(|| names.certain_until(directory));
        if since > certain_until {
            let below = self.below.entry(directory).or_default();
            below.push(Below { row, owner, since });
            self.below_count += 1;
        }
    }

    /// Corrects rows of files below directories that moved.
    fn follow(&mut self, names: &mut Names, rows: &mut Rows) {
        let moved = names.moved();
        if moved.is_empty() {
            return;
        }
        self.certain_until.clear();
        for Moved { directory, until } in moved {
            for (&place, kept) in &mut self.below {
                if !names.above(place).any(|above| above == directory) {
                    continue;
                }
                self.below_count -= kept.len();
                kept.retain(|below| !has_moved(below, until, names, rows));
                self.below_count += kept.len();
            }
        }
        self.below.retain(|_, kept| !kept.is_empty());
    }

    /// Begins a new epoch for later writes.
    pub fn begin(&mut self) {
        self.unnamed.clear();
        self.certain_until.clear();
    }

    /// Names rows again once all directories are on the disk. An unchanged directory entry may
    /// belong to a file that was created again under its old name.
    pub fn again(&mut self, names: &mut Names, rows: &mut Rows) {
        self.flush(names, rows);
        names.settle();
        self.below.clear();
        self.below_count = 0;
        for (row, owner) in std::mem::take(&mut self.unnamed) {
            if owner.is_doubted
                && let Some(row) = rows.get_mut(row)
            {
                row.is_doubtful = false;
            }
            name(row, owner, names.epoch, names, rows);
        }
    }
}

/// Names a row that had no path, or doubts the path of one that may have had another by then.
/// Returns whether the row needs no further correction.
fn has_moved(below: &Below, until: Option<u32>, names: &mut Names, rows: &mut Rows) -> bool {
    let Owner { inode, life, .. } = below.owner;
    let is_its = |row: &&mut Row| row.inode == u64::from(inode);
    let Some(row) = rows.get_mut(below.row).filter(is_its) else {
        return true;
    };
    match until {
        Some(until) if row.path.is_some() => {
            let is_older = below.since <= until;
            row.is_doubtful |= !is_older;
            !is_older
        }
        _ if row.path.is_none() && names.life(inode) == life => {
            let path = names.path(inode, &mut rows.paths);
            if let Some(row) = rows.get_mut(below.row) {
                row.path = path;
            }
            path.is_some()
        }
        _ => false,
    }
}

/// Gives a row the path that its owner had in an epoch. Returns the owner if it had no path.
fn name(row: usize, owner: Owner, epoch: u32, names: &mut Names, rows: &mut Rows) -> Option<Owner> {
    let is_its = rows.get_mut(row)?.inode == u64::from(owner.inode);
    if !is_its || names.life(owner.inode) != owner.life {
        return None;
    }
    let path = names.path_in(owner.inode, epoch, &mut rows.paths);
    let is_certain = path.is_some() || names.is_nameless(owner.inode);
    let row = rows.get_mut(row)?;
    row.path = path;
    let is_doubted = !is_certain && row.structure == Structure::FileData && !row.is_doubtful;
    row.is_doubtful |= is_doubted;
    path.is_none().then_some(Owner {
        is_doubted,
        ..owner
    })
}

#[cfg(test)]
mod tests {
    use super::super::{directory::Entry, state};
    use super::*;

    fn entry(name: &str) -> Entry<'_> {
        Entry {
            inode: 12,
            name: name.as_bytes(),
            is_directory: false,
        }
    }

    fn row(rows: &mut Rows) -> usize {
        rows.push(Row {
            inode: 12,
            ..Row::data(0, 1024)
        })
    }

    /// Adds a row of inode 12 that is written in the current epoch.
    fn write(naming: &mut Naming, names: &mut Names, rows: &mut Rows) -> usize {
        let number = row(rows);
        naming.later(number, names.epoch, names, rows);
        number
    }

    fn begin(naming: &mut Naming, names: &mut Names, epoch: u32) {
        names.epoch = epoch;
        naming.begin();
    }

    fn path(rows: &Rows, number: usize) -> (Option<String>, bool) {
        let row = rows.to_vec()[number];
        let path = row.path.map(|path| rows.paths.text(path).into());
        (path, row.is_doubtful)
    }

    fn certain(path: &str) -> (Option<String>, bool) {
        (Some(path.into()), false)
    }

    #[test]
    fn a_row_is_named_after_the_file_that_it_is_of() {
        let (mut naming, mut names) = (Naming::default(), Names::default());
        let mut rows = Rows::default();
        let mut numbers = Vec::new();
        for (epoch, name) in [(1, "first"), (2, "second")] {
            begin(&mut naming, &mut names, epoch);
            names.inode_is(12, epoch, true, false);
            names.inode_new(12);
            numbers.push(write(&mut naming, &mut names, &mut rows));
            names.add(2, &entry(name));
            naming.flush(&mut names, &mut rows);
            names.inode_removed(12);
        }
        naming.again(&mut names, &mut rows);
        let found: Vec<_> = numbers.iter().map(|&row| path(&rows, row)).collect();
        assert_eq!(found, [certain("/first"), certain("/second")]);
    }

    #[test]
    fn a_name_that_comes_after_the_flush_is_none_of_before_it() {
        let (mut naming, mut names) = (Naming::default(), Names::default());
        let mut rows = Rows::default();
        begin(&mut naming, &mut names, 1);
        names.inode_is(12, 1, true, false);
        names.inode_new(12);
        let before = write(&mut naming, &mut names, &mut rows);
        naming.flush(&mut names, &mut rows);
        begin(&mut naming, &mut names, 2);
        names.add(2, &entry("later"));
        let after = write(&mut naming, &mut names, &mut rows);
        let settled_late = row(&mut rows);
        naming.later(settled_late, 1, &mut names, &mut rows);
        naming.again(&mut names, &mut rows);
        assert_eq!(path(&rows, before), (None, true));
        assert_eq!(path(&rows, settled_late), (None, true));
        assert_eq!(path(&rows, after), certain("/later"));
    }

    #[test]
    fn data_of_a_file_without_links_has_no_path_for_certain() {
        let (mut naming, mut names) = (Naming::default(), Names::default());
        let mut rows = Rows::default();
        begin(&mut naming, &mut names, 1);
        names.inode_is(12, 1, false, false);
        names.inode_nameless(12);
        let number = write(&mut naming, &mut names, &mut rows);
        naming.flush(&mut names, &mut rows);
        assert_eq!(path(&rows, number), (None, false));
    }

    #[test]
    fn a_file_made_anew_under_its_name_has_it_once_all_is_on_the_disk() {
        let (mut naming, mut names) = (Naming::default(), Names::default());
        let mut rows = Rows::default();
        begin(&mut naming, &mut names, 1);
        names.add(2, &entry("same"));
        begin(&mut naming, &mut names, 2);
        names.inode_removed(12);
        names.inode_is(12, 2, true, false);
        names.inode_new(12);
        let number = write(&mut naming, &mut names, &mut rows);
        naming.flush(&mut names, &mut rows);
        let part = row(&mut rows);
        naming.cut(number, part, &names, &mut rows);
        assert_eq!(path(&rows, number), (None, true));
        naming.again(&mut names, &mut rows);
        assert_eq!(path(&rows, number), certain("/same"));
        assert_eq!(path(&rows, part), certain("/same"));
    }

    #[test]
    fn a_file_made_anew_under_its_name_has_it_once_its_directory_is_written_again() {
        let (mut state, mut naming) = (state::ext2(), Naming::default());
        let mut rows = Rows::default();
        begin(&mut naming, &mut state.names, 1);
        let entries = [entry("same")];
        state.rename(2, &[], &entries);
        state.name();
        begin(&mut naming, &mut state.names, 2);
        state.names.inode_removed(12);
        state.names.inode_is(12, 2, true, false);
        state.names.inode_new(12);
        let number = write(&mut naming, &mut state.names, &mut rows);
        state.keep_names(2, &entries, &entries);
        naming.flush(&mut state.names, &mut rows);
        assert_eq!(path(&rows, number), certain("/same"));
    }

    #[test]
    fn a_name_that_was_written_before_its_inode_and_the_same_flush_is_its_own() {
        let (mut naming, mut names) = (Naming::default(), Names::default());
        let mut rows = Rows::default();
        begin(&mut naming, &mut names, 1);
        names.add(2, &entry("old"));
        begin(&mut naming, &mut names, 2);
        names.add(2, &entry("new"));
        names.inode_removed(12);
        names.inode_is(12, 2, true, false);
        names.inode_new(12);
        let number = write(&mut naming, &mut names, &mut rows);
        naming.flush(&mut names, &mut rows);
        assert_eq!(path(&rows, number), certain("/new"));
    }

    #[test]
    fn a_name_that_moves_to_another_block_stays_the_oldest() {
        let (mut state, mut rows) = (state::ext2(), Rows::default());
        let (first, second) = (entry("first"), entry("second"));
        state.rename(2, &[], &[first, second]);
        state.name();
        state.rename(2, &[first, second], &[second]);
        state.rename(2, &[], &[first]);
        state.name();
        let path = state.names.path(12, &mut rows.paths).unwrap();
        assert_eq!(rows.paths.text(path), "/first");
    }
}
