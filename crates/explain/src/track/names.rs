//! Paths of inodes, from the names that directories hold.
//!
//! A name may move between blocks of its directory, and its old place may be seen before or after
//! its new one. Changes therefore wait until everything that belongs together has been seen, and
//! removals are applied first.

use crate::escape::escaped;
use crate::hash::{HashMap, HashSet};
use crate::track::inodes::Inodes;
use crate::{PathId, Paths};

/// A name and its inode.
pub type Entry<'a> = (&'a [u8], u64);

/// Maximum depth of directories. Deeper ones are a loop made by hostile content.
const DEEPEST: usize = 256;
/// Maximum number of names that are distinguished for one inode.
const MOST_NAMES: usize = 64;

#[derive(Debug)]
struct Name {
    directory: u64,
    name: Box<[u8]>,
    live: bool,
    /// Number of times the directory's inode had been forgotten.
    generation: u32,
}

/// Names of an inode; the first one determines its path.
#[derive(Debug)]
struct Known {
    first: Name,
    /// Hard links, in the order in which they were seen.
    more: Vec<Name>,
    path: Option<(u32, PathId)>,
}

/// Place that holds names, for example a block or a record, identified by two numbers.
pub type Place = (u64, u64);

/// A name that was added or removed.
#[derive(Debug)]
struct Change {
    inode: u64,
    directory: u64,
    name: Box<[u8]>,
    /// The place that holds it, if known.
    place: Option<Place>,
    /// Number of names added before the removal, for a removed name.
    came_before: usize,
}

impl Change {
    fn key(&self) -> (Option<Place>, u64, u64, &[u8]) {
        (self.place, self.directory, self.inode, &self.name)
    }
}

/// Names of all inodes. A removed file keeps its last name until its inode is reused.
#[derive(Debug, Default)]
pub struct Names {
    root: u64,
    names: Inodes<Known>,
    directories: HashSet<u64>,
    /// Number of the current epoch: paths of earlier epochs are outdated.
    epoch: u32,
    gone: Vec<Change>,
    came: Vec<Change>,
    /// Inodes that were reused by other files.
    renewed: Vec<u64>,
    /// Inodes that lost all their earlier names; for directories, the number of times this
    /// happened.
    forgotten: Vec<u64>,
    generations: HashMap<u64, u32>,
}

impl Names {
    /// Creates the state of a file system with this root directory.
    pub fn new(root: u64) -> Names {
        Names {
            root,
            ..Names::default()
        }
    }

    /// Replaces the names that a place held for one directory with names of the same or another
    /// directory.
    pub fn replace(
        &mut self,
        old_directory: u64,
        before: &[Entry<'_>],
        directory: u64,
        after: &[Entry<'_>],
    ) {
        let is_same =
            |(old, new): &(&Entry<'_>, &Entry<'_>)| old_directory == directory && old == new;
        let same = before.iter().zip(after).take_while(is_same).count();
        let (before, after) = (&before[same..], &after[same..]);
        let ends = before.iter().rev().zip(after.iter().rev());
        let same = ends.take_while(is_same).count();
        for (name, inode) in &before[..before.len() - same] {
            self.change(None, old_directory, (name, *inode), false);
        }
        for (name, inode) in &after[..after.len() - same] {
            self.change(None, directory, (name, *inode), true);
        }
    }

    /// Marks the inode as reused by another file. Removed names do not belong to that file.
    pub fn renew(&mut self, inode: u64) {
        self.renewed.push(inode);
    }

    /// Replaces the names `before` of a directory at a place with `after`. Each name in `after`
    /// certainly exists, whatever was [forgotten](Names::forget).
    pub fn rewrite(
        &mut self,
        place: Place,
        directory: u64,
        before: &[Entry<'_>],
        after: &[Entry<'_>],
    ) {
        let kept: HashSet<&Entry<'_>> = match before.is_empty() {
            true => HashSet::default(),
            false => after.iter().collect(),
        };
        for (name, inode) in before.iter().filter(|entry| !kept.contains(entry)) {
            self.change(Some(place), directory, (name, *inode), false);
        }
        for (name, inode) in after {
            self.change(Some(place), directory, (name, *inode), true);
        }
    }

    /// Marks the inode as free or reused. None of its previous names is its own any more, and if it
    /// was a directory, no name in it counts. Names added before names are settled belong to the
    /// new file.
    pub fn forget(&mut self, inode: u64) {
        self.forgotten.push(inode);
    }

    fn change(
        &mut self,
        place: Option<Place>,
        directory: u64,
        (name, inode): Entry<'_>,
        came: bool,
    ) {
        if name == b".." || inode == directory || inode == self.root {
            return;
        }
        let came_before = self.came.len();
        let list = match came {
            true => &mut self.came,
            false => &mut self.gone,
        };
        list.push(Change {
            inode,
            directory,
            name: name.into(),
            place,
            came_before,
        });
    }

    /// Applies all queued changes. If an inode `may_have_several` names, its path keeps the first
    /// name that still exists. Other inodes have their newest name.
    pub fn settle(&mut self, may_have_several: impl Fn(u64) -> bool) {
        let mut touched = Vec::new();
        let gone = std::mem::take(&mut self.gone);
        for change in &gone {
            if let Some(known) = self.names.get_mut(change.inode)
                && let Some(name) = known.find(change.directory, &change.name)
            {
                name.live = false;
                touched.push(change.inode);
            }
        }
        for inode in self.forgotten.drain(..) {
            self.names.remove(inode);
            if self.directories.remove(&inode) {
                let generation = self.generations.entry(inode).or_default();
                *generation = generation.wrapping_add(1);
                self.epoch = self.epoch.wrapping_add(1);
            }
        }
        self.add(&gone, &mut touched);
        for inode in self.renewed.drain(..) {
            let is_named = |known: &Known| known.first.live || known.more.iter().any(|n| n.live);
            if !self.names.get(inode).is_some_and(is_named) {
                self.names.remove(inode);
            }
        }
        for inode in touched {
            let Some(known) = self.names.get_mut(inode) else {
                continue;
            };
            if !known.choose(may_have_several(inode)) {
                continue;
            }
            known.path = None;
            if self.directories.contains(&inode) {
                // Everything below it has a new path, too.
                self.epoch = self.epoch.wrapping_add(1);
            }
        }
    }

    /// Adds the queued names, except those that are `gone` again. Appends inodes that get a further
    /// name to `touched`.
    fn add(&mut self, gone: &[Change], touched: &mut Vec<u64>) {
        // Only from the same place: the name may be in another place by now.
        let placed = gone.iter().filter(|change| change.place.is_some());
        let until: HashMap<_, _> = placed.map(|c| (c.key(), c.came_before)).collect();
        for (number, change) in self.came.drain(..).enumerate() {
            let until = until.get(&change.key());
            if until.is_some_and(|&until| number < until) {
                continue;
            }
            let directory = change.directory;
            self.directories.insert(directory);
            let generation = self.generations.get(&directory).copied().unwrap_or(0);
            let new = Name {
                directory,
                name: change.name,
                live: true,
                generation,
            };
            let Some(known) = self.names.get_mut(change.inode) else {
                self.names.get_or_insert_with(change.inode, || Known {
                    first: new,
                    more: Vec::new(),
                    path: None,
                });
                continue;
            };
            if let Some(name) = known.find(directory, &new.name) {
                name.live = true;
                name.generation = generation;
            } else {
                known.more.truncate(MOST_NAMES);
                known.more.push(new);
                touched.push(change.inode);
            }
        }
    }

    /// Returns whether the inode has an existing name other than this one.
    pub fn has_another(&self, directory: u64, (name, inode): Entry<'_>) -> bool {
        let Some(known) = self.names.get(inode) else {
            return false;
        };
        let mut all = std::iter::once(&known.first).chain(&known.more);
        all.any(|n| n.live && (n.directory != directory || *n.name != *name))
    }

    /// Returns the directory that holds the name of the inode's path.
    pub fn directory(&self, inode: u64) -> Option<u64> {
        self.names.get(inode).map(|known| known.first.directory)
    }

    /// Returns the inode's [`path`](Self::path), unless it comes from a removed name.
    pub fn live_path(&mut self, inode: u64, paths: &mut Paths) -> Option<PathId> {
        let is_live = inode == self.root || self.names.get(inode).is_some_and(|n| n.first.live);
        is_live.then(|| self.path(inode, paths)).flatten()
    }

    /// Returns the inode's current path, with `/` for the root of the file system.
    pub fn path(&mut self, inode: u64, paths: &mut Paths) -> Option<PathId> {
        if let Some(path) = self.known_path(inode) {
            return Some(path);
        }
        let mut parts = Vec::new();
        let (mut at, mut above) = (inode, None);
        while at != self.root && above.is_none() {
            let first = &self.names.get(at)?.first;
            let generation = self.generations.get(&first.directory).copied();
            let is_now = generation.unwrap_or(0) == first.generation;
            parts.push(escaped(&first.name));
            at = first.directory;
            if parts.len() > DEEPEST || !is_now {
                return None;
            }
            above = self.known_path(at);
        }
        let above = above.map_or("", |above| paths.text(above));
        if parts.len() + above.matches('/').count() > DEEPEST {
            return None;
        }
        let more: usize = parts.iter().map(|part| part.len() + 1).sum();
        let mut text = String::with_capacity(above.len() + more.max(1));
        text.push_str(above);
        for part in parts.iter().rev() {
            text.push('/');
            text.push_str(part);
        }
        if parts.is_empty() {
            text.push('/');
        }
        let id = paths.intern(&text);
        if let Some(known) = self.names.get_mut(inode) {
            known.path = Some((self.epoch, id));
        }
        Some(id)
    }

    /// Returns the path of the inode if it was determined before and still holds.
    fn known_path(&self, inode: u64) -> Option<PathId> {
        let (epoch, path) = self.names.get(inode)?.path?;
        (epoch == self.epoch).then_some(path)
    }
}

impl Known {
    fn find(&mut self, directory: u64, name: &[u8]) -> Option<&mut Name> {
        let mut all = std::iter::once(&mut self.first).chain(&mut self.more);
        all.find(|n| n.directory == directory && *n.name == *name)
    }

    /// Drops removed names, except for the last one. Returns whether the first name has changed.
    fn choose(&mut self, several: bool) -> bool {
        self.more.retain(|name| name.live);
        if !several && let Some(newest) = self.more.pop() {
            self.first = newest;
            self.more.clear();
            return true;
        }
        if self.first.live || self.more.is_empty() {
            return false;
        }
        self.first = self.more.remove(0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(names: &mut Names, inode: u64) -> String {
        let mut paths = Paths::default();
        names.epoch += 1;
        let path = names.path(inode, &mut paths);
        path.map_or(String::new(), |path| paths.text(path).to_owned())
    }

    /// Replaces the names `before` of a directory with `after`.
    fn replace(names: &mut Names, directory: u64, before: &[Entry<'_>], after: &[Entry<'_>]) {
        names.replace(directory, before, directory, after);
    }

    #[test]
    fn a_renamed_directory_renames_what_is_in_it() {
        let mut names = Names::new(128);
        replace(&mut names, 128, &[], &[(b"a", 131)]);
        replace(&mut names, 131, &[], &[(b"f", 132)]);
        names.settle(|_| false);
        assert_eq!(text(&mut names, 132), "/a/f");
        replace(&mut names, 128, &[(b"a", 131)], &[(b"b", 131)]);
        names.settle(|_| false);
        assert_eq!(text(&mut names, 132), "/b/f");
    }

    #[test]
    fn the_first_name_that_is_still_there_is_the_path() {
        let mut names = Names::new(128);
        let (a, b, c): (Entry<'_>, Entry<'_>, Entry<'_>) = ((b"a", 131), (b"b", 131), (b"c", 131));
        replace(&mut names, 128, &[], &[a]);
        replace(&mut names, 128, &[a], &[a, b]);
        replace(&mut names, 128, &[a, b], &[c, a, b]);
        names.settle(|_| true);
        assert_eq!(text(&mut names, 131), "/a");
        replace(&mut names, 128, &[c, a, b], &[c, b]);
        names.settle(|_| true);
        assert_eq!(text(&mut names, 131), "/b");
        replace(&mut names, 128, &[c, b], &[c]);
        names.settle(|_| false);
        assert_eq!(text(&mut names, 131), "/c");
        replace(&mut names, 128, &[c], &[]);
        names.settle(|_| false);
        assert_eq!(text(&mut names, 131), "/c");
    }

    #[test]
    fn a_name_that_moves_between_blocks_is_not_gone() {
        let mut names = Names::new(128);
        replace(&mut names, 128, &[], &[(b"a", 131)]);
        replace(&mut names, 129, &[], &[(b"b", 131)]);
        names.settle(|_| true);
        // Its new place is seen before its old one.
        replace(&mut names, 128, &[], &[(b"a", 131)]);
        replace(&mut names, 128, &[(b"a", 131)], &[]);
        names.settle(|_| true);
        assert_eq!(text(&mut names, 131), "/a");
    }

    #[test]
    fn what_is_forgotten_has_the_names_that_come_with_it_and_those_alone() {
        let mut names = Names::new(128);
        names.rewrite((0, 128), 128, &[], &[(b"d", 131), (b"f", 132)]);
        names.rewrite((0, 131), 131, &[], &[(b"x", 133), (b"y", 134)]);
        names.settle(|_| true);
        // Another directory and another file reuse these numbers; one has its old name again.
        names.forget(131);
        names.forget(132);
        names.rewrite((0, 131), 131, &[], &[(b"z", 134)]);
        let entries: [Entry<'_>; 2] = [(b"f", 132), (b"e", 131)];
        names.rewrite((0, 128), 128, &[(b"d", 131), (b"f", 132)], &entries);
        names.settle(|_| true);
        assert_eq!(text(&mut names, 132), "/f");
        assert_eq!(text(&mut names, 131), "/e");
        assert_eq!(text(&mut names, 133), "");
        names.forget(132);
        names.settle(|_| true);
        assert_eq!(text(&mut names, 132), "");
    }

    #[test]
    fn a_name_that_came_and_went_is_gone_unless_it_is_elsewhere() {
        let mut names = Names::new(128);
        let a: Entry<'_> = (b"a", 131);
        names.rewrite((0, 1), 128, &[], &[a, (b"b", 132)]);
        names.rewrite((0, 2), 128, &[], &[a]);
        names.rewrite((0, 1), 128, &[a, (b"b", 132)], &[]);
        names.settle(|_| true);
        assert_eq!(text(&mut names, 131), "/a");
        assert_eq!(text(&mut names, 132), "");
    }

    #[test]
    fn a_loop_has_no_path() {
        let mut names = Names::new(128);
        replace(&mut names, 131, &[], &[(b"a", 132)]);
        replace(&mut names, 132, &[], &[(b"b", 131)]);
        names.settle(|_| false);
        assert_eq!(names.path(131, &mut Paths::default()), None);
    }
    #[test]
    fn a_path_is_as_deep_as_it_may_be_however_much_of_it_is_known() {
        let deepest = 1 + DEEPEST as u64;
        let (mut names, mut paths) = (Names::new(1), Paths::default());
        for directory in 1..=deepest {
            replace(&mut names, directory, &[], &[(b"d", directory + 1)]);
        }
        names.settle(|_| false);
        for inode in 2..=deepest {
            assert!(names.path(inode, &mut paths).is_some(), "{inode}");
        }
        assert_eq!(names.path(deepest + 1, &mut paths), None);
    }
}
