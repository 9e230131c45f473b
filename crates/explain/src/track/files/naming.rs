//! Path of each row: the name that was known when the row was written, or the first one that
//! appears later.

use super::{Files, MAX_WAITING};
use crate::track::names::{Entry, Place};
use crate::{NO_INODE, PathId, Rows, Structure};
use std::collections::{BTreeMap, BTreeSet};

/// Place of names whose location is unknown.
const NOWHERE: Place = (u64::MAX, u64::MAX);

/// A row that waits for its path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unnamed {
    pub row: usize,
    pub inode: u64,
    /// True if the row belongs to the file that has the inode at the next settling.
    pub is_new: bool,
}

impl Files {
    /// Returns the known path of an inode. If related metadata is not written together, a removed
    /// name does not count, because it may belong to a previous file.
    pub(super) fn known_path(&mut self, inode: u64, rows: &mut Rows) -> Option<PathId> {
        match (inode, self.is_doubting) {
            (NO_INODE, _) => None,
            (_, true) if self.forgotten.contains(&inode) => None,
            (_, true) => self.names.live_path(inode, &mut rows.paths),
            (_, false) => self.names.path(inode, &mut rows.paths),
        }
    }

    /// Adds names to a directory, which may have others.
    pub fn name(&mut self, directory: u64, entries: &[Entry<'_>]) {
        self.names.rewrite(NOWHERE, directory, &[], entries);
    }

    /// Replaces the names `before` of a directory at a place with `after`.
    pub fn rename(
        &mut self,
        place: Place,
        directory: u64,
        before: &[Entry<'_>],
        after: &[Entry<'_>],
    ) {
        self.see(directory, after, true);
        self.names.rewrite(place, directory, before, after);
    }

    /// Adds names that were read at a place, and were written there before.
    pub fn name_again(&mut self, place: Place, directory: u64, entries: &[Entry<'_>]) {
        self.see(directory, entries, false);
        self.names.rewrite(place, directory, &[], entries);
    }

    /// Sets the names of a directory that a place holds, and removes all its previous names.
    pub fn name_at(&mut self, place: Place, directory: u64, entries: &[Entry<'_>]) {
        let held = entries.iter().map(|&(name, inode)| (name.into(), inode));
        let before = match entries.is_empty() {
            true => self.places.remove(&place),
            false => self.places.insert(place, (directory, held.collect())),
        };
        let (of, before) = before.unwrap_or_default();
        let before: Vec<_> = (before.iter())
            .map(|(name, inode)| (&**name, *inode))
            .collect();
        if of != directory {
            self.rename(place, of, &before, &[]);
            return self.rename(place, directory, &[], entries);
        }
        self.rename(place, directory, &before, entries);
    }

    /// Sets the names that a block holds, by directory, and removes all its previous names.
    pub fn name_block(&mut self, block: u64, names: &BTreeMap<u64, Vec<Entry<'_>>>) {
        let before = self.places.range((block, 0)..=(block, u64::MAX));
        let mut directories: BTreeSet<u64> = before.map(|(&(_, directory), _)| directory).collect();
        directories.extend(names.keys());
        for directory in directories {
            let entries = names.get(&directory).map_or(&[][..], |names| names);
            self.name_at((block, directory), directory, entries);
        }
    }

    /// Removes a name from a directory. If that was the inode's only name, the inode is free. Rows
    /// of before may have the name, unless a removed file may have left them.
    pub fn unname(&mut self, directory: u64, (name, inode): Entry<'_>, rows: &mut Rows) {
        if !self.is_doubting {
            self.settle(rows);
            self.name_late(inode, rows);
        }
        self.names
            .rewrite((0, directory), directory, &[(name, inode)], &[]);
        if !self.names.has_another(directory, (name, inode)) {
            self.end(inode, rows);
        }
    }

    /// Gives rows of an inode that have no path the name that was found.
    pub fn name_late(&mut self, inode: u64, rows: &mut Rows) {
        let Some(path) = self.known_path(inode, rows) else {
            return;
        };
        for (number, _) in self.nameless.remove(&inode).unwrap_or_default() {
            self.set_late_path(number, inode, path, rows);
        }
    }

    /// Sets the path of a row that has none, unless it has another owner by now.
    fn set_late_path(&mut self, number: usize, inode: u64, path: PathId, rows: &mut Rows) {
        if let Some(row) = rows.get_mut(number)
            && row.inode == inode
        {
            let is_late = self.is_doubting_names && self.flushed.0.is_after(number, row);
            row.path = Some(path);
            row.is_doubtful |= is_late && row.structure == Structure::FileData;
            self.renamed.keep(number, inode);
        }
    }

    /// Marks the inode as free or reused, so that rows of the old file and of the new file never
    /// share names. Names added before the next settling belong to the new file.
    pub fn forget(&mut self, inode: u64, rows: &mut Rows) {
        // The inode itself shows it, so the names so far belong to the previous file.
        if self.is_doubting {
            self.settle(rows);
        }
        self.renamed.forget(inode);
        self.end(inode, rows);
    }

    fn end(&mut self, inode: u64, rows: &Rows) {
        self.names.forget(inode);
        self.forgotten.insert(inode);
        self.renewed.insert(inode, self.now(rows));
    }

    /// Applies new names, and gives rows without a path theirs. The path is the one that was known
    /// when the row was written, or else the first one that appears later.
    pub fn settle(&mut self, rows: &mut Rows) {
        self.names.settle(|_| true);
        self.doubt_renamed(rows);
        let forgotten = std::mem::take(&mut self.forgotten);
        for inode in &forgotten {
            self.nameless.remove(inode);
        }
        for unnamed in std::mem::take(&mut self.unnamed) {
            let Unnamed { row, inode, is_new } = unnamed;
            let after = self.known_path(inode, rows);
            let is_another = forgotten.contains(&inode);
            let Some(found) = rows.get_mut(row).filter(|found| found.inode == inode) else {
                continue;
            };
            let renewed = self.renewed.get(&inode);
            let is_before = renewed.is_some_and(|at| at.is_after(row, found));
            // The row belongs to the previous file or to the next one.
            let is_either = is_before && !is_new && !self.is_logged;
            let is_data = found.structure == Structure::FileData;
            // Directories written since then did not name it.
            let is_late = self.is_doubting_names
                && self.flushed.0.is_after(row, found)
                && found.path.is_none();
            found.path = match (is_another, is_before) {
                _ if is_either => None,
                _ if is_before && !is_new => found.path,
                (true, _) => after,
                (false, _) => found.path.or(after),
            };
            let is_doubtful = is_either && is_another || is_late && !is_either && after.is_some();
            found.is_doubtful |= is_doubtful && is_data;
            if found.path.is_some() {
                self.given.keep(row, inode);
                self.renamed.keep(row, inode);
            }
            if found.path.is_none() && !is_either && self.nameless.len() < MAX_WAITING {
                self.nameless.entry(inode).or_default().push((row, 0));
                self.still_nameless.insert(inode);
            }
        }
    }

    /// Settles names after a flush has completed.
    pub fn flush(&mut self, rows: &mut Rows) {
        self.settle(rows);
        // Names may have been settled before those of these inodes were written.
        for inode in std::mem::take(&mut self.still_nameless) {
            self.name_late(inode, rows);
        }
        self.flushed = (self.now(rows), self.flushed.0);
    }

    /// Settles names once all earlier metadata is on the disk. Rows that have waited for `patience`
    /// such commits have no other owner.
    pub fn commit(&mut self, patience: u32, rows: &mut Rows) {
        self.settle(rows);
        self.revise_given(rows);
        self.renamed.prune();
        self.waiting.commit(patience);
        let (names, paths, is_doubting) = (&mut self.names, &mut rows.paths, self.is_doubting);
        let mut named = Vec::new();
        self.nameless.retain(|&inode, waiting| {
            let path = match is_doubting {
                true => names.live_path(inode, paths),
                false => names.path(inode, paths),
            };
            if let Some(path) = path {
                named.extend(waiting.drain(..).map(|(number, _)| (number, inode, path)));
            }
            waiting.iter_mut().for_each(|(_, look_ups)| *look_ups += 1);
            waiting.retain(|&(_, look_ups)| look_ups < patience);
            !waiting.is_empty()
        });
        for (number, inode, path) in named {
            self.set_late_path(number, inode, path, rows);
        }
    }

    /// Queues a row for a name lookup at the next settling. Its name may not be written yet, and
    /// the known name may belong to another file with this inode number.
    pub(super) fn look_up_later(&mut self, row: usize, inode: u64, is_new: bool) {
        if inode != NO_INODE && self.unnamed.len() < MAX_WAITING {
            self.unnamed.push(Unnamed { row, inode, is_new });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Owner, Part};
    use super::*;
    use crate::{Cause, Write};

    fn write(content: &[u8]) -> Write<'_> {
        Write {
            event: 1,
            time_ns: 0,
            disk: 0,
            offset: 0,
            length: content.len() as u64,
            content,
            formatting: false,
        }
    }

    fn add(files: &mut Files, rows: &mut Rows, inode: u64) -> usize {
        let part = Part {
            inode,
            ..Part::new(Structure::FileData, Cause::Data)
        };
        files.add(&write(&[1; 4]), part, rows)
    }

    fn path(rows: &Rows, number: usize) -> Option<String> {
        let row = rows.to_vec()[number];
        row.path.map(|path| rows.paths.text(path).to_owned())
    }

    #[test]
    fn paths_are_numbered_in_the_order_of_inodes() {
        let (mut files, mut rows) = (Files::new(2, Structure::Unknown), Rows::default());
        files.begin(&write(&[1; 4]), &mut rows);
        for inode in 10..42 {
            add(&mut files, &mut rows, inode);
        }
        files.commit(2, &mut rows);
        for inode in (10..42).rev() {
            files.name(2, &[(format!("file-{inode}").as_bytes(), inode)]);
        }
        files.commit(2, &mut rows);
        let texts: Vec<_> = rows.paths.texts().map(str::to_owned).collect();
        let expected: Vec<_> = (10..42).map(|inode| format!("/file-{inode}")).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn what_was_written_of_a_removed_file_has_no_name_of_the_next_with_its_inode() {
        let (mut files, mut rows) = (Files::new(2, Structure::Unknown), Rows::default());
        files.begin(&write(&[1; 4]), &mut rows);
        let nameless = add(&mut files, &mut rows, 5);
        files.commit(1, &mut rows);
        files.name(2, &[(b"old", 6)]);
        files.commit(1, &mut rows);
        let named = add(&mut files, &mut rows, 6);
        files.commit(1, &mut rows);
        let either = add(&mut files, &mut rows, 6);
        for inode in [5, 6] {
            files.forget(inode, &mut rows);
        }
        let entries: [Entry<'_>; 2] = [(b"new", 5), (b"newer", 6)];
        files.rename((0, 2), 2, &[(b"old", 6)], &entries);
        files.commit(1, &mut rows);
        let next = [add(&mut files, &mut rows, 5), add(&mut files, &mut rows, 6)];
        files.commit(1, &mut rows);
        let doubtful: Vec<_> = rows.to_vec().iter().map(|row| row.is_doubtful).collect();
        assert_eq!([nameless, either].map(|row| path(&rows, row)), [None, None]);
        assert_eq!(path(&rows, named).as_deref(), Some("/old"));
        assert_eq!(path(&rows, next[0]).as_deref(), Some("/new"));
        assert_eq!(path(&rows, next[1]).as_deref(), Some("/newer"));
        assert_eq!(doubtful, [false, false, true, false, false]);
    }

    #[test]
    fn a_row_has_the_name_that_was_known_when_it_was_written() {
        let (mut files, mut rows) = (Files::new(2, Structure::Unknown), Rows::default());
        files.name(2, &[(b"old", 6)]);
        files.commit(1, &mut rows);
        let before = add(&mut files, &mut rows, 6);
        files.rename((0, 2), 2, &[(b"old", 6)], &[(b"new", 6)]);
        files.commit(1, &mut rows);
        let after = add(&mut files, &mut rows, 6);
        files.commit(1, &mut rows);
        assert_eq!(path(&rows, before).as_deref(), Some("/old"));
        assert_eq!(path(&rows, after).as_deref(), Some("/new"));
    }

    #[test]
    fn what_is_left_of_an_older_write_is_not_newer_than_a_later_one() {
        let (mut files, mut rows) = (Files::doubting(2, Structure::FileData), Rows::default());
        for (event, offset) in [(1, 0), (2, 4)] {
            let content = [1; 8];
            let write = Write {
                event,
                offset,
                ..write(&content[offset as usize..])
            };
            files.begin(&write, &mut rows);
            files.add_owned(&write, &mut rows);
        }
        for (offset, inode) in [(0, 5), (4, 6)] {
            let structure = Structure::FileData;
            files.own(offset, 4, Owner { inode, structure }, &mut rows);
        }
        let found = rows.to_vec().into_iter();
        let found: Vec<_> = found
            .map(|row| (row.event, row.inode, row.is_doubtful))
            .collect();
        assert_eq!(found, [(1, 5, false), (2, 6, false), (1, 6, true)]);
    }

    #[test]
    fn without_metadata_that_says_so_an_owner_is_doubtful() {
        let (mut files, mut rows) = (Files::doubting(2, Structure::FileData), Rows::default());
        let owner = |inode| Owner {
            inode,
            structure: Structure::FileData,
        };
        files.own(0, 4, owner(5), &mut rows);
        files.begin(&write(&[1; 4]), &mut rows);
        for _ in 0..2 {
            files.add_owned(&write(&[1; 4]), &mut rows);
        }
        files.own(0, 4, owner(5), &mut rows);
        for _ in 0..2 {
            files.add_owned(&write(&[1; 4]), &mut rows);
        }
        files.own(0, 4, owner(6), &mut rows);
        files.add_owned(&write(&[1; 4]), &mut rows);
        let found = rows.to_vec().into_iter();
        let found: Vec<_> = found.map(|row| (row.inode, row.is_doubtful)).collect();
        let expected = [(5, false), (5, false), (5, true), (6, false), (6, true)];
        assert_eq!(found, expected);
    }

    /// Writes data, and then makes `inode` its owner, as metadata without a log does. Returns the
    /// number of the row.
    fn data_of(files: &mut Files, rows: &mut Rows, inode: u64) -> usize {
        let number = rows.next();
        files.add_owned(&write(&[1; 4]), rows);
        let structure = Structure::FileData;
        files.own(0, 4, Owner { inode, structure }, rows);
        number
    }

    #[test]
    fn without_a_log_files_of_one_inode_between_two_flushes_keep_their_names_apart() {
        let (mut files, mut rows) = (Files::doubting(2, Structure::FileData), Rows::default());
        files.begin(&write(&[1; 4]), &mut rows);
        let mut found = Vec::new();
        let mut before: Vec<Entry<'_>> = Vec::new();
        for after in [None, Some(b"one"), Some(b"two"), None, Some(b"six")] {
            let after: Vec<Entry<'_>> = after.iter().map(|name| (&name[..], 5)).collect();
            files.forget(5, &mut rows);
            files.rename((5, 2), 2, &before, &after);
            found.push(data_of(&mut files, &mut rows, 5));
            before = after;
        }
        files.flush(&mut rows);
        let paths: Vec<_> = found.iter().map(|&row| path(&rows, row)).collect();
        let expected = [None, Some("/one"), Some("/two"), None, Some("/six")];
        assert_eq!(paths, expected.map(|path| path.map(str::to_owned)));
    }

    #[test]
    fn data_written_after_its_inode_was_reused_has_no_name_of_before() {
        let (mut files, mut rows) = (Files::doubting(2, Structure::FileData), Rows::default());
        files.rename((5, 2), 2, &[], &[(b"old", 5)]);
        data_of(&mut files, &mut rows, 5);
        files.flush(&mut rows);
        files.forget(5, &mut rows);
        files.rename((5, 2), 2, &[(b"old", 5)], &[(b"new", 5)]);
        let row = rows.next();
        files.add_owned(&write(&[1; 4]), &mut rows);
        // Names are settled when another inode is freed.
        files.forget(7, &mut rows);
        let structure = Structure::FileData;
        files.own(
            0,
            4,
            Owner {
                inode: 5,
                structure,
            },
            &mut rows,
        );
        files.flush(&mut rows);
        assert_eq!(path(&rows, row).as_deref(), Some("/new"));
    }

    #[test]
    fn a_name_that_comes_and_goes_between_two_flushes_is_that_of_the_data_before() {
        let new = || Files::doubting_names(2, Structure::FileData);
        let (mut files, mut rows) = (new(), Rows::default());
        files.begin(&write(&[1; 4]), &mut rows);
        let gone = add(&mut files, &mut rows, 5);
        files.rename((0, 2), 2, &[], &[(b"gone", 5)]);
        let next = add(&mut files, &mut rows, 6);
        files.unname(2, (b"gone", 5), &mut rows);
        files.rename((0, 2), 2, &[], &[(b"next", 6)]);
        let late = add(&mut files, &mut rows, 7);
        files.flush(&mut rows);
        files.rename((0, 2), 2, &[], &[(b"late", 7)]);
        files.commit(1, &mut rows);
        let found: Vec<_> = [gone, next, late]
            .map(|row| (path(&rows, row), rows.to_vec()[row].is_doubtful))
            .into();
        let of = |name: &str, is_doubtful| (Some(name.to_owned()), is_doubtful);
        let expected = [of("/gone", false), of("/next", false), of("/late", true)];
        assert_eq!(found, expected);
    }
}
