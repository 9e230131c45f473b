//! Links to directories in file systems without a journal.
//!
//! A renamed directory and the names below it lie in blocks that are written at different times, so
//! that the disk may show a path that never was. A link is certain up to the last write that shows
//! it. A directory that moved shows its new parent in `..`, often before that parent names it.

use crate::hash::HashMap;

#[derive(Debug)]
struct Link {
    parent: u32,
    name: Box<[u8]>,
    /// Epoch of the last write that showed the link.
    seen: u32,
    /// True if `..` shows another parent, whose name for the directory is not known yet.
    is_outdated: bool,
}

/// A directory that has another path than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    pub directory: u32,
    /// Last epoch in which it certainly had its old path; `None` if it had none.
    pub until: Option<u32>,
}

/// Newest link to each directory.
#[derive(Debug, Default)]
pub struct Links {
    links: HashMap<u32, Link>,
    moved: Vec<Moved>,
}

impl Links {
    /// Records that a write showed this name of a directory. Returns whether its path changed.
    pub fn see(&mut self, directory: u32, parent: u32, name: &[u8], epoch: u32) -> bool {
        let new = || Link {
            parent,
            name: name.into(),
            seen: epoch,
            is_outdated: false,
        };
        let Some(link) = self.links.get_mut(&directory) else {
            self.links.insert(directory, new());
            return false;
        };
        if !link.is_outdated && link.is(parent, name) {
            link.seen = epoch;
            return false;
        }
        let until = (!link.is_outdated).then_some(link.seen);
        self.moved.push(Moved { directory, until });
        *link = new();
        true
    }

    /// Records that `..` of a directory named this parent. Returns whether its path changed.
    pub fn see_parent(&mut self, directory: u32, parent: u32) -> bool {
        let Some(link) = self.links.get_mut(&directory) else {
            return false;
        };
        let was_outdated = std::mem::replace(&mut link.is_outdated, link.parent != parent);
        let is_changed = was_outdated != link.is_outdated;
        if is_changed {
            let until = link.is_outdated.then_some(link.seen);
            self.moved.push(Moved { directory, until });
        }
        is_changed
    }

    /// Forgets a removed directory.
    pub fn remove(&mut self, directory: u32) {
        self.links.remove(&directory);
    }

    /// Returns whether the newest link to a directory is outdated.
    pub fn is_outdated(&self, directory: u32) -> bool {
        self.links
            .get(&directory)
            .is_some_and(|link| link.is_outdated)
    }

    /// Returns the newest link to a directory, if it is known: parent and name.
    pub fn of(&self, directory: u32) -> Option<(u32, &[u8])> {
        let link = self.links.get(&directory)?;
        Some((link.parent, &link.name))
    }

    /// Returns the last epoch in which the link to a directory was certain. Links that are not
    /// known never changed.
    pub fn seen(&self, directory: u32) -> u32 {
        self.links
            .get(&directory)
            .map_or(u32::MAX, |link| link.seen)
    }

    /// Returns the directories that moved since the last call.
    pub fn moved(&mut self) -> Vec<Moved> {
        std::mem::take(&mut self.moved)
    }
}

impl Link {
    fn is(&self, parent: u32, name: &[u8]) -> bool {
        self.parent == parent && *self.name == *name
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        directory::Entry,
        inode::ROOT,
        naming::Naming,
        state::{State, ext2},
    };
    use crate::{Row, Rows};

    const DIRECTORY: u32 = 20;
    const OTHER: u32 = 30;

    fn entry(inode: u32, name: &str) -> Entry<'_> {
        Entry {
            inode,
            name: name.as_bytes(),
            is_directory: inode < 100,
        }
    }

    /// An ext2 in which each step ends with a flush.
    struct Disk {
        state: State,
        naming: Naming,
        rows: Rows,
    }

    impl Disk {
        fn new() -> Disk {
            let (naming, rows) = Default::default();
            let state = ext2();
            let mut disk = Disk {
                state,
                naming,
                rows,
            };
            disk.begin();
            disk.rename(ROOT, &[], &[entry(DIRECTORY, "old"), entry(OTHER, "other")]);
            disk.write(100, "before");
            disk.flush();
            disk
        }

        fn begin(&mut self) {
            self.state.names.epoch += 1;
            self.naming.begin();
        }

        fn flush(&mut self) {
            self.naming.flush(&mut self.state.names, &mut self.rows);
            self.begin();
        }

        fn rename(&mut self, directory: u32, old: &[Entry<'_>], new: &[Entry<'_>]) {
            self.state.rename(directory, old, new);
            self.state.name();
        }

        /// Writes data of a file and its name in the directory. Returns the row of the data.
        fn write(&mut self, inode: u32, name: &str) -> usize {
            self.state.names.inode_is(inode, 1, true, false);
            self.rename(DIRECTORY, &[], &[entry(inode, name)]);
            self.data(inode)
        }

        fn data(&mut self, inode: u32) -> usize {
            let number = self.rows.push(Row {
                inode: inode.into(),
                ..Row::data(0, 1024)
            });
            let names = &mut self.state.names;
            self.naming
                .later(number, names.epoch, names, &mut self.rows);
            number
        }

        fn found(&self, number: usize) -> (Option<&str>, bool) {
            let row = self.rows.to_vec()[number];
            (
                row.path.map(|path| self.rows.paths.text(path)),
                row.is_doubtful,
            )
        }
    }

    #[test]
    fn a_path_is_doubtful_if_a_directory_was_renamed_since_it_was_certain() {
        for is_seen in [false, true] {
            let mut disk = Disk::new();
            let known = disk.data(100);
            let number = disk.write(101, "new");
            disk.flush();
            let (old, new) = (entry(DIRECTORY, "old"), entry(DIRECTORY, "new"));
            if is_seen {
                disk.rename(ROOT, &[old], &[old]);
                disk.flush();
            }
            disk.rename(ROOT, &[old], &[new]);
            disk.flush();
            assert_eq!(disk.found(known), (Some("/old/before"), false));
            assert_eq!(disk.found(number), (Some("/old/new"), !is_seen));
            let later = disk.write(102, "later");
            disk.flush();
            assert_eq!(disk.found(later), (Some("/new/later"), false));
        }
    }

    #[test]
    fn a_directory_that_names_another_parent_has_no_path_until_that_names_it() {
        let mut disk = Disk::new();
        let early = disk.write(101, "early");
        disk.flush();
        disk.state.names.see_parent(DIRECTORY, OTHER);
        let number = disk.write(102, "new");
        disk.flush();
        assert_eq!(disk.found(early), (Some("/old/early"), true));
        assert_eq!(disk.found(number), (None, true));
        // The old name is removed first.
        disk.rename(ROOT, &[entry(DIRECTORY, "old")], &[]);
        disk.flush();
        assert_eq!(disk.found(number), (None, true));
        disk.rename(OTHER, &[], &[entry(DIRECTORY, "moved")]);
        disk.flush();
        assert_eq!(disk.found(early), (Some("/old/early"), true));
        assert_eq!(disk.found(number), (Some("/other/moved/new"), true));
        let later = disk.write(103, "later");
        disk.flush();
        assert_eq!(disk.found(later), (Some("/other/moved/later"), false));
    }

    #[test]
    fn a_part_of_a_row_is_as_doubtful_as_the_row() {
        let mut disk = Disk::new();
        let whole = disk.write(101, "new");
        disk.flush();
        let path = disk.rows.get_mut(whole).unwrap().path;
        let part = disk.rows.push(Row {
            inode: 101,
            path,
            ..Row::data(1024, 1024)
        });
        disk.naming
            .cut(whole, part, &disk.state.names, &mut disk.rows);
        disk.rename(ROOT, &[entry(DIRECTORY, "old")], &[entry(DIRECTORY, "new")]);
        disk.flush();
        assert_eq!(disk.found(part), (Some("/old/new"), true));
    }

    #[test]
    fn a_removed_directory_has_not_moved() {
        let mut disk = Disk::new();
        let number = disk.write(101, "new");
        disk.flush();
        disk.rename(ROOT, &[entry(DIRECTORY, "old")], &[]);
        disk.state.names.inode_removed(DIRECTORY);
        disk.state.names.inode_new(DIRECTORY);
        disk.flush();
        disk.rename(ROOT, &[], &[entry(DIRECTORY, "next")]);
        disk.flush();
        assert_eq!(disk.found(number), (Some("/old/new"), false));
    }
}
