//! Which names each inode has, and had last.

use crate::hash::{HashMap, HashSet};

use super::{directory::Entry, inode::ROOT};
use crate::escape::escaped;
use crate::{PathId, Paths};

/// No path is made longer than this: PATH_MAX.
const MAX_BYTES: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    parent: u32,
    name: Box<[u8]>,
    /// How many blocks hold it: two while one is split, none once it is gone.
    count: u32,
    /// The epoch in which it came.
    since: u32,
}

impl Name {
    fn is(&self, parent: u32, entry: &Entry<'_>) -> bool {
        self.parent == parent && *self.name == *entry.name
    }
}

#[derive(Debug, Default)]
struct Called {
    /// In the order in which the inode got them; after the last is gone, it stays as what the inode
    /// was called.
    names: Vec<Name>,
    alive: bool,
    /// The inode is free; a name may be lost without that, while it moves to a block that is not
    /// known yet.
    removed: bool,
    life: Life,
    generation: u32,
    is_linked: bool,
}

/// What fast commits say of an inode.
#[derive(Debug)]
struct Told {
    generation: u32,
    /// The directory and the name; none yet of an inode that is another file than in its table.
    name: Option<(u32, Box<[u8]>)>,
}

/// Which of the files that an inode's number had one after the other.
pub type Life = u32;

/// The names of all inodes.
#[derive(Debug, Default)]
pub struct Names {
    inodes: HashMap<u32, Called>,
    known: HashMap<u32, PathId>,
    /// Without a journal: how many flushes came before what is written now.
    pub epoch: u32,
    /// New inodes whose name has not come: what is known is their number's last owner's.
    awaited: HashSet<u32>,
    /// What fast commits since the last transaction say of inodes.
    told: HashMap<u32, Told>,
    /// Inodes that hold the value of an attribute: the inode that has it.
    values: HashMap<u32, u32>,
}

impl Names {
    /// `value` holds that of an attribute of `inode`, and is called as this is. Of several that
    /// share it, as the last that came.
    pub fn value(&mut self, value: u32, inode: u32) {
        self.values.insert(value, inode);
    }

    /// It holds no value, or no more.
    pub fn not_a_value(&mut self, inode: u32) {
        self.values.remove(&inode);
    }

    /// A fast commit says that a directory has gained a name.
    pub fn told(&mut self, parent: u32, entry: &Entry<'_>) {
        let generation = self.generation(entry.inode);
        let name = None;
        let told = self.told.entry(entry.inode);
        told.or_insert(Told { generation, name }).name = Some((parent, entry.name.into()));
        self.known.remove(&entry.inode);
    }

    /// A fast commit says which file an inode is.
    pub fn told_generation(&mut self, inode: u32, generation: u32) {
        if self.generation(inode) != generation {
            let name = None;
            self.told.insert(inode, Told { generation, name });
            self.known.remove(&inode);
        }
    }

    fn generation(&self, inode: u32) -> u32 {
        let in_table = || self.inodes.get(&inode).map_or(0, |of| of.generation);
        let told = self.told.get(&inode);
        told.map_or_else(in_table, |told| told.generation)
    }

    /// An inode as it is in its table: its generation, and whether any name holds it.
    pub fn inode_is(&mut self, inode: u32, generation: u32, is_linked: bool) {
        let of = self.inodes.entry(inode).or_default();
        (of.generation, of.is_linked) = (generation, is_linked);
    }

    /// Whether an inode has no name, as its table says.
    pub fn is_nameless(&self, inode: u32) -> bool {
        self.inodes.get(&inode).is_some_and(|of| !of.is_linked)
    }

    /// A directory has gained a name.
    pub fn add(&mut self, parent: u32, entry: &Entry<'_>) {
        let of = self.inodes.entry(entry.inode).or_default();
        let is_first = of.names.is_empty();
        let was_awaited = self.awaited.remove(&entry.inode);
        if !of.alive {
            of.names.clear();
            if of.removed && !was_awaited {
                of.life = of.life.wrapping_add(1);
            }
        }
        of.alive = true;
        of.removed = false;
        match of.names.iter_mut().find(|n| n.is(parent, entry)) {
            Some(known) => known.count = known.count.saturating_add(1),
            None => of.names.push(Name {
                parent,
                name: entry.name.into(),
                count: 1,
                since: self.epoch,
            }),
        }
        self.forget_paths(entry, !is_first);
    }

    /// A directory has lost a name.
    pub fn remove(&mut self, parent: u32, entry: &Entry<'_>) {
        let Some(of) = self.inodes.get_mut(&entry.inode) else {
            return;
        };
        let found = of.names.iter().position(|n| n.is(parent, entry));
        if let Some(known) = found.and_then(|number| of.names.get_mut(number))
            && known.count > 1
        {
            known.count -= 1;
            return;
        }
        match found {
            Some(_) if of.names.len() == 1 => {
                of.names[0].count = 0;
                of.alive = false;
            }
            Some(number) => {
                of.names.remove(number);
                self.forget_paths(entry, true);
            }
            None => {}
        }
    }

    /// The inode is removed: what it is called next is another.
    pub fn inode_removed(&mut self, inode: u32) {
        if let Some(of) = self.inodes.get_mut(&inode) {
            of.alive = false;
            of.removed = true;
        }
    }

    /// The inode is a new file's, whose name may have come or not.
    pub fn inode_new(&mut self, inode: u32) {
        let of = self.inodes.entry(inode).or_default();
        of.life = of.life.wrapping_add(1);
        of.removed = false;
        // Without a journal its name may have been written first, before the same flush.
        let is_with_it = |name: &Name| name.count > 0 && name.since == self.epoch;
        if !of.alive && self.epoch > 0 && of.names.iter().any(is_with_it) {
            of.names.retain(is_with_it);
            of.alive = true;
            self.known.remove(&inode);
        }
        if !of.alive && inode != ROOT {
            self.awaited.insert(inode);
            self.known.remove(&inode);
        }
    }

    /// The inode is a new file's that has no name: an open one that was unlinked, or never had any.
    pub fn inode_nameless(&mut self, inode: u32) {
        let of = self.inodes.entry(inode).or_default();
        of.names.clear();
        (of.alive, of.removed) = (false, true);
        self.awaited.remove(&inode);
        self.known.remove(&inode);
    }

    /// Which file the inode is by now.
    pub fn life(&self, inode: u32) -> Life {
        self.inodes.get(&inode).map_or(0, |of| of.life)
    }

    /// All names are on the disk: a new inode that got none since it came had it before, or has
    /// none at all.
    pub fn settle(&mut self) {
        self.told.clear();
        if self.awaited.is_empty() {
            return;
        }
        for inode in self.awaited.drain() {
            if let Some(of) = self.inodes.get_mut(&inode) {
                of.names.retain(|name| name.count > 0);
                of.names.iter_mut().for_each(|name| name.since = self.epoch);
                of.alive = !of.removed && !of.names.is_empty();
            }
        }
    }

    /// Below a directory that had a name, paths may be known.
    fn forget_paths(&mut self, entry: &Entry<'_>, had_name: bool) {
        if entry.is_directory && had_name {
            self.known.clear();
        } else {
            self.known.remove(&entry.inode);
        }
    }

    /// The inode's path: by the oldest of its names that are not removed, or by the last that it
    /// had.
    pub fn path(&mut self, inode: u32, paths: &mut Paths) -> Option<PathId> {
        let inode = self.values.get(&inode).copied().unwrap_or(inode);
        if let Some(&known) = self.known.get(&inode) {
            return Some(known);
        }
        if self.awaited.contains(&inode) {
            return None;
        }
        let path = paths.intern(&self.text(inode, u32::MAX)?);
        if self.told.is_empty() {
            self.known.insert(inode, path);
        }
        Some(path)
    }

    /// The path that an inode had at the end of an epoch, if all its names are still those of then.
    pub fn path_in(&mut self, inode: u32, epoch: u32, paths: &mut Paths) -> Option<PathId> {
        if epoch >= self.epoch {
            return self.path(inode, paths);
        }
        let inode = self.values.get(&inode).copied().unwrap_or(inode);
        if self.awaited.contains(&inode) {
            return None;
        }
        Some(paths.intern(&self.text(inode, epoch)?))
    }

    /// By names that came in `epoch` or before.
    fn text(&self, inode: u32, epoch: u32) -> Option<String> {
        let mut parts = Vec::new();
        let (mut at, mut bytes) = (inode, 0);
        while at != ROOT {
            let (parent, name) = match self.told.get(&at) {
                Some(told) => told.name.as_ref().map(|(parent, name)| (*parent, name))?,
                None => {
                    let name = self.inodes.get(&at)?.names.first()?;
                    if name.since > epoch {
                        return None;
                    }
                    (name.parent, &name.name)
                }
            };
            bytes += name.len() + 1;
            parts.push(&**name);
            if bytes > MAX_BYTES {
                return None;
            }
            at = parent;
        }
        let mut text = String::with_capacity(bytes.max(1));
        for name in parts.into_iter().rev() {
            text.push('/');
            text.push_str(&escaped(name));
        }
        if text.is_empty() {
            text.push('/');
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(inode: u32, name: &str) -> Entry<'_> {
        Entry {
            inode,
            name: name.as_bytes(),
            is_directory: inode < 100,
        }
    }

    fn text(names: &mut Names, inode: u32) -> Option<String> {
        let mut paths = Paths::default();
        names.known.clear();
        names
            .path(inode, &mut paths)
            .map(|p| paths.text(p).to_owned())
    }

    #[test]
    fn a_path_follows_renames_and_outlives_removal() {
        let mut names = Names::default();
        names.add(ROOT, &entry(12, "d"));
        names.add(12, &entry(100, "f"));
        assert_eq!(text(&mut names, 100).as_deref(), Some("/d/f"));
        names.add(ROOT, &entry(12, "e"));
        assert_eq!(text(&mut names, 100).as_deref(), Some("/d/f"));
        names.remove(ROOT, &entry(12, "d"));
        assert_eq!(text(&mut names, 100).as_deref(), Some("/e/f"));
        names.remove(12, &entry(100, "f"));
        assert_eq!(text(&mut names, 100).as_deref(), Some("/e/f"));
        names.inode_removed(100);
        names.add(ROOT, &entry(100, "new"));
        assert_eq!(text(&mut names, 100).as_deref(), Some("/new"));
        assert_eq!(text(&mut names, ROOT).as_deref(), Some("/"));
        assert_eq!(text(&mut names, 777), None);
    }

    #[test]
    fn a_new_file_is_not_called_as_the_one_whose_number_it_has() {
        let mut names = Names::default();
        names.inode_new(100);
        names.add(ROOT, &entry(100, "old"));
        let old = names.life(100);
        names.inode_removed(100);
        assert_eq!(text(&mut names, 100).as_deref(), Some("/old"));
        names.inode_new(100);
        assert_eq!(text(&mut names, 100), None);
        let new = names.life(100);
        names.add(ROOT, &entry(100, "new"));
        assert_eq!(text(&mut names, 100).as_deref(), Some("/new"));
        assert_eq!(names.life(100), new);
        assert_ne!(old, new);
        // The old one's entry goes last.
        names.remove(ROOT, &entry(100, "old"));
        assert_eq!(text(&mut names, 100).as_deref(), Some("/new"));
    }

    #[test]
    fn a_file_without_a_name_has_neither_that_of_before_nor_that_of_after() {
        let mut names = Names::default();
        names.inode_new(100);
        names.add(ROOT, &entry(100, "old"));
        names.inode_removed(100);
        names.inode_new(100);
        names.inode_nameless(100);
        let nameless = names.life(100);
        names.remove(ROOT, &entry(100, "old"));
        names.settle();
        assert_eq!(text(&mut names, 100), None);
        names.add(ROOT, &entry(100, "new"));
        assert_ne!(names.life(100), nameless);
    }

    #[test]
    fn a_new_file_that_no_directory_names_has_no_path() {
        let mut names = Names::default();
        names.inode_new(100);
        names.add(ROOT, &entry(100, "old"));
        names.inode_removed(100);
        names.inode_new(100);
        names.remove(ROOT, &entry(100, "old"));
        names.settle();
        assert_eq!(text(&mut names, 100), None);
    }

    #[test]
    fn a_name_may_come_before_its_inode() {
        let mut names = Names::default();
        names.inode_new(100);
        names.add(ROOT, &entry(100, "old"));
        let old = names.life(100);
        names.add(ROOT, &entry(100, "new"));
        names.inode_removed(100);
        names.inode_new(100);
        names.remove(ROOT, &entry(100, "old"));
        assert_eq!(text(&mut names, 100), None);
        names.settle();
        assert_eq!(text(&mut names, 100).as_deref(), Some("/new"));
        assert_ne!(names.life(100), old);
        // A name that moves goes before it comes.
        let before = names.life(100);
        names.remove(ROOT, &entry(100, "new"));
        names.add(ROOT, &entry(100, "new"));
        assert_eq!(names.life(100), before);
        // Removed, and the next one's name is there before its inode.
        names.inode_removed(100);
        names.add(ROOT, &entry(100, "next"));
        assert_ne!(names.life(100), before);
    }

    #[test]
    fn the_oldest_name_counts_while_it_lasts() {
        let mut names = Names::default();
        names.add(ROOT, &entry(100, "first"));
        names.add(ROOT, &entry(100, "second"));
        assert_eq!(text(&mut names, 100).as_deref(), Some("/first"));
        // A block is split: the name is in the new one before it is gone from the old.
        names.add(ROOT, &entry(100, "first"));
        names.remove(ROOT, &entry(100, "first"));
        assert_eq!(text(&mut names, 100).as_deref(), Some("/first"));
        names.remove(ROOT, &entry(100, "first"));
        assert_eq!(text(&mut names, 100).as_deref(), Some("/second"));
    }

    #[test]
    fn a_loop_of_directories_has_no_path() {
        let mut names = Names::default();
        names.add(12, &entry(13, "a"));
        names.add(13, &entry(12, "b"));
        assert_eq!(text(&mut names, 12), None);
    }
}
