//! Names that an fsync gives before the directories that hold them reach the disk. A directory may
//! have been renamed meanwhile, which only the next commit shows.

use super::Files;
use crate::track::waiting::MAX_WAITING;
use crate::{PathId, Rows, Structure};
use std::collections::HashMap;

/// A time in seconds and nanoseconds.
pub type Time = (u64, u32);

/// A name that an fsync gave.
#[derive(Debug, Clone, Copy)]
struct Given {
    directory: u64,
    /// The time of the file's last change before the fsync.
    changed: Time,
}

/// Names given since the last commit.
#[derive(Debug, Default)]
pub(super) struct GivenNames {
    files: HashMap<u64, Given>,
    /// Rows that have such a name.
    rows: Vec<(usize, Given)>,
    /// The time of the last known change of each directory.
    changed: HashMap<u64, Time>,
}

impl GivenNames {
    /// Keeps a row that has the path of this inode, if an fsync gave it.
    pub fn keep(&mut self, row: usize, inode: u64) {
        if let Some(&given) = self.files.get(&inode)
            && self.rows.len() < MAX_WAITING
        {
            self.rows.push((row, given));
        }
    }
}

impl Files {
    /// Records the time of a directory's last change.
    pub fn changed(&mut self, directory: u64, time: Time) {
        self.given.changed.insert(directory, time);
    }

    /// Gives waiting rows of an inode the name that an fsync made durable in this directory. The
    /// file last changed at `time`.
    pub fn give(&mut self, inode: u64, directory: u64, time: Time, rows: &mut Rows) {
        let given = Given {
            directory,
            changed: time,
        };
        self.given.files.insert(inode, given);
        self.settle(rows);
    }

    /// Corrects the paths of rows that have a given name. They are doubtful if a directory may have
    /// been renamed after the fsync.
    pub(super) fn revise_given(&mut self, rows: &mut Rows) {
        self.given.files.clear();
        for (number, given) in std::mem::take(&mut self.given.rows) {
            let Some(directory) = self.names.path(given.directory, &mut rows.paths) else {
                continue;
            };
            let row = rows.get_mut(number);
            let Some((before, structure)) = row.and_then(|row| Some((row.path?, row.structure)))
            else {
                continue;
            };
            let (after, is_renamed_later) = self.moved(before, directory, &given, rows);
            if after != before
                && let Some(row) = rows.get_mut(number)
            {
                row.path = Some(after);
                row.is_doubtful |= is_renamed_later && structure == Structure::FileData;
            }
        }
    }

    /// Returns the path with this directory in the place of its own, and whether a directory above
    /// the file may have been renamed after the file was synced.
    fn moved(
        &self,
        path: PathId,
        directory: PathId,
        given: &Given,
        rows: &mut Rows,
    ) -> (PathId, bool) {
        let paths = &mut rows.paths;
        let Some((old, name)) = paths.text(path).rsplit_once('/') else {
            return (path, false);
        };
        let new = paths.text(directory).trim_end_matches('/');
        let (old, now): (Vec<_>, Vec<_>) = (old.split('/').collect(), new.split('/').collect());
        let mut inode = given.directory;
        let mut is_later = false;
        for at in (1..now.len()).rev() {
            let Some(above) = self.names.directory(inode) else {
                is_later = true;
                break;
            };
            if old.len() != now.len() || old[at] != now[at] {
                // A renaming changes the directory and the one above it.
                let times = [inode, above].map(|each| self.given.changed.get(&each));
                let latest = times.into_iter().flatten().min();
                // An fsync may take less than a tick of the kernel's clock.
                is_later |= latest.is_none_or(|latest| *latest >= given.changed);
            }
            inode = above;
        }
        let text = format!("{new}/{name}");
        (paths.intern(&text), is_later)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Owner, Part};
    use super::*;
    use crate::{Cause, Write};

    /// Syncs a file in a directory that was `/a` and is `/b` at the next commit. Returns the path
    /// of its data, and whether it is doubtful.
    fn synced(at: Time, renamed: Time, filled: Time) -> (String, bool) {
        let (mut files, mut rows) = (Files::new(2, Structure::FileData), Rows::default());
        let write = Write {
            event: 1,
            time_ns: 0,
            disk: 0,
            offset: 0,
            length: 4,
            content: &[1; 4],
            formatting: false,
        };
        files.begin(&write, &mut rows);
        files.rename((1, 2), 2, &[], &[(b"a", 10)]);
        files.commit(2, &mut rows);
        let part = Part::new(Structure::FileData, Cause::Data);
        let row = files.add_waiting(&write, part, &mut rows);
        files.rename((0, 0), 10, &[], &[(b"new", 20)]);
        files.give(20, 10, at, &mut rows);
        let owner = Owner {
            inode: 20,
            structure: Structure::FileData,
        };
        files.own(0, 4, owner, &mut rows);
        files.rename((1, 2), 2, &[(b"a", 10)], &[(b"b", 10)]);
        files.changed(2, renamed);
        files.changed(10, filled);
        files.commit(2, &mut rows);
        let row = rows.to_vec()[row];
        let path = row.path.map(|path| rows.paths.text(path).to_owned());
        (path.unwrap_or_default(), row.is_doubtful)
    }

    #[test]
    fn a_synced_file_has_the_name_that_its_directory_got_before() {
        let new = "/b/new".to_owned();
        assert_eq!(synced((5, 0), (4, 9), (4, 9)), (new.clone(), false));
        assert_eq!(synced((5, 0), (4, 9), (7, 0)), (new.clone(), false));
        assert_eq!(synced((5, 0), (5, 0), (7, 0)), (new, true));
    }
}
