//! Paths below renamed directories, in file systems that write each directory by itself: the name
//! of a file may reach the disk while the new name of a directory above it does not. The path was
//! then never the file's, or only until the directory was renamed.

use super::Files;
use crate::track::names::Entry;
use crate::{NO_INODE, Rows, Structure};
use std::collections::HashMap;

/// Maximum number of rows that may turn out to be of a renamed directory.
const MOST: usize = 1 << 16;
/// Maximum number of directories in a path. In untrusted content, they may contain each other.
const DEEPEST: usize = 256;

/// Name of an inode, as it was last seen on the disk.
#[derive(Debug)]
struct Seen {
    directory: u64,
    name: Box<[u8]>,
    /// Event that wrote the name first.
    since: u64,
    /// Last event that wrote it.
    last: u64,
}

/// Row with a path whose directories may have had other names by then.
#[derive(Debug, Clone, Copy)]
struct Below {
    row: usize,
    inode: u64,
    /// Event that named the row's file.
    since: u64,
}

/// Names of directories, and rows whose path depends on names not seen since.
#[derive(Debug, Default)]
pub(super) struct Renamed {
    seen: HashMap<u64, Seen>,
    /// Rows by the directory of their file.
    rows: HashMap<u64, Vec<Below>>,
    count: usize,
    /// Rows whose path is doubtful.
    doubtful: Vec<Below>,
}

impl Renamed {
    /// Iterates over a directory and those above it.
    fn above(&self, directory: u64) -> impl Iterator<Item = (u64, &Seen)> {
        let seen = |inode: u64| self.seen.get(&inode).map(|seen| (inode, seen));
        std::iter::successors(seen(directory), move |(_, below)| seen(below.directory))
            .take(DEEPEST)
    }

    /// Returns whether the names above a file were all seen since the file was named.
    fn is_certain(&self, directory: u64, since: u64) -> bool {
        self.above(directory).all(|(_, seen)| seen.last >= since)
    }

    /// Forgets an inode that was freed.
    pub fn forget(&mut self, inode: u64) {
        self.seen.remove(&inode);
    }

    /// Keeps a row with the path of this inode, if a directory above may have another name.
    pub fn keep(&mut self, row: usize, inode: u64) {
        let Some(&Seen {
            directory, since, ..
        }) = self.seen.get(&inode)
        else {
            return;
        };
        if self.count < MOST && !self.is_certain(directory, since) {
            let below = Below { row, inode, since };
            self.rows.entry(directory).or_default().push(below);
            self.count += 1;
        }
    }

    /// Drops the rows whose paths are certain by now.
    pub fn prune(&mut self) {
        let mut kept = std::mem::take(&mut self.rows);
        kept.retain(|&directory, rows| {
            rows.retain(|below| !self.is_certain(directory, below.since));
            !rows.is_empty()
        });
        self.count = kept.values().map(Vec::len).sum();
        self.rows = kept;
    }

    /// Takes the rows below a directory whose files were named after this event.
    fn take(&mut self, renamed: u64, after: u64) -> Vec<Below> {
        let mut kept = std::mem::take(&mut self.rows);
        let mut taken = Vec::new();
        for (&directory, rows) in &mut kept {
            if self.above(directory).any(|(inode, _)| inode == renamed) {
                taken.extend(rows.extract_if(.., |below| below.since > after));
            }
        }
        self.count -= taken.len();
        self.rows = kept;
        taken
    }
}

impl Files {
    /// Records that the names of a directory are on the disk; `is_writing`: the current write wrote
    /// them. Rows below a directory that has a new name are doubtful if their file was named after
    /// the old name was last written.
    pub(super) fn see(&mut self, directory: u64, entries: &[Entry<'_>], is_writing: bool) {
        if !self.is_doubting_names {
            return;
        }
        for &(name, inode) in entries {
            if matches!(name, b"." | b"..") || inode == NO_INODE || inode == directory {
                continue;
            }
            let event = self.event;
            if let Some(seen) = self.renamed.seen.get_mut(&inode)
                && seen.directory == directory
                && *seen.name == *name
            {
                if is_writing {
                    seen.last = event;
                }
                continue;
            }
            let new = Seen {
                directory,
                name: name.into(),
                since: event,
                last: event,
            };
            if let Some(old) = self.renamed.seen.get(&inode)
                && self.renamed.count > 0
            {
                let doubtful = self.renamed.take(inode, old.last);
                self.renamed.doubtful.extend(doubtful);
            }
            self.renamed.seen.insert(inode, new);
        }
    }

    /// Marks the rows whose path turned out to be doubtful.
    pub(super) fn doubt_renamed(&mut self, rows: &mut Rows) {
        for below in std::mem::take(&mut self.renamed.doubtful) {
            if let Some(row) = rows.get_mut(below.row)
                && row.inode == below.inode
            {
                row.is_doubtful |= row.structure == Structure::FileData;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Owner, Part};
    use super::*;
    use crate::{Cause, Write};

    /// Names the directory 10 `/a`, and writes `new` and its data below it. Then the directory is
    /// `/b`. Returns whether the path of the data is doubtful.
    fn is_doubtful(is_seen_again: bool) -> bool {
        let (mut files, mut rows) = (
            Files::doubting_names(2, Structure::FileData),
            Rows::default(),
        );
        let write = |event| Write {
            event,
            time_ns: 0,
            disk: 0,
            offset: 0,
            length: 4,
            content: &[1; 4],
            formatting: false,
        };
        files.begin(&write(1), &mut rows);
        files.rename((1, 2), 2, &[], &[(b"a", 10)]);
        files.begin(&write(2), &mut rows);
        let part = Part::new(Structure::FileData, Cause::Data);
        let row = files.add_waiting(&write(2), part, &mut rows);
        files.begin(&write(3), &mut rows);
        files.rename((1, 10), 10, &[], &[(b"new", 20)]);
        let owner = Owner {
            inode: 20,
            structure: Structure::FileData,
        };
        files.own(0, 4, owner, &mut rows);
        files.flush(&mut rows);
        if is_seen_again {
            files.begin(&write(4), &mut rows);
            files.rename((1, 2), 2, &[(b"a", 10)], &[(b"a", 10)]);
        }
        // Reading the old name does not show that it still holds.
        files.begin(&write(5), &mut rows);
        files.name_again((1, 2), 2, &[(b"a", 10)]);
        files.rename((1, 2), 2, &[(b"a", 10)], &[(b"b", 10)]);
        files.flush(&mut rows);
        let row = rows.to_vec()[row];
        assert_eq!(row.path.map(|path| rows.paths.text(path)), Some("/a/new"));
        row.is_doubtful
    }

    #[test]
    fn a_path_below_a_directory_that_may_have_been_renamed_before_is_doubtful() {
        assert!(is_doubtful(false));
        assert!(!is_doubtful(true));
    }
}
