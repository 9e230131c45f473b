//! Current names of each inode, and the last name of each removed inode.

use crate::hash::{HashMap, HashSet};

use super::{
    directory::Entry,
    inode::ROOT,
    links::{Links, Moved},
};
use crate::escape::escaped;
use crate::{PathId, Paths};

/// Maximum length of a path in bytes: PATH_MAX.
const MAX_BYTES: usize = 4096;
/// Maximum number of directories in a path, each with a name of one byte.
const MAX_DEPTH: usize = MAX_BYTES / 2;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    parent: u32,
    /// Life of the parent in which it has the name.
    of: Life,
    name: Box<[u8]>,
    /// Number of blocks that hold the name: two while a block is split, none once the name is gone.
    count: u32,
    /// Epoch in which the name appeared.
    since: u32,
}

impl Name {
    fn is(&self, parent: u32, entry: &Entry<'_>) -> bool {
        self.parent == parent && *self.name == *entry.name
    }
}

#[derive(Debug, Default)]
struct Called {
    /// Names in the order in which the inode got them. The last name stays after its removal.
    names: Vec<Name>,
    alive: bool,
    /// True if the inode is free. An inode may lose a name without being freed, while the name
    /// moves to a block that is not known yet.
    removed: bool,
    life: Life,
    generation: u32,
    is_linked: bool,
    /// Whether the inode is a directory according to its table, if that is known.
    is_directory: Option<bool>,
}

/// State of an inode according to fast commits.
#[derive(Debug)]
struct Told {
    generation: u32,
    /// Directory and name; `None` if the inode now belongs to another file than its table shows,
    /// and that file has no name yet.
    name: Option<(u32, Box<[u8]>)>,
}

/// Number that tells successive files with the same inode number apart.
pub type Life = u32;

/// The names of all inodes.
#[derive(Debug, Default)]
pub struct Names {
    inodes: HashMap<u32, Called>,
    known: HashMap<u32, PathId>,
    /// Number of flushes before the current writes. Used only without a journal.
    pub epoch: u32,
    /// New inodes whose name is not known yet. A name already known for such a number belongs to
    /// the previous file with it.
    awaited: HashSet<u32>,
    /// States of inodes according to the fast commits since the last transaction.
    told: HashMap<u32, Told>,
    /// Inodes that hold the value of an attribute, each with the inode that has the attribute.
    values: HashMap<u32, u32>,
    /// Newest links to directories. Used only without a journal.
    links: Links,
}

impl Names {
    /// Records that inode `value` holds the value of an attribute of `inode`, and has its name. If
    /// several inodes share the value, the last one recorded counts.
    pub fn value(&mut self, value: u32, inode: u32) {
        self.values.insert(value, inode);
    }

    /// Records that an inode holds no attribute value, or no longer does.
    pub fn not_a_value(&mut self, inode: u32) {
        self.values.remove(&inode);
    }

    /// Records a name that a directory has gained according to a fast commit.
    pub fn told(&mut self, parent: u32, entry: &Entry<'_>) {
        let generation = self.generation(entry.inode);
        let name = None;
        let told = self.told.entry(entry.inode);
        told.or_insert(Told { generation, name }).name = Some((parent, entry.name.into()));
        self.known.remove(&entry.inode);
    }

    /// Records which file an inode is according to a fast commit. Returns whether it is another
    /// file than before.
    pub fn told_generation(&mut self, inode: u32, generation: u32) -> bool {
        let is_another = self.generation(inode) != generation;
        if is_another {
            let name = None;
            self.told.insert(inode, Told { generation, name });
            self.known.remove(&inode);
        }
        is_another
    }

    fn generation(&self, inode: u32) -> u32 {
        let told = self.told.get(&inode);
        told.map_or_else(|| self.in_table(inode), |told| told.generation)
    }

    fn in_table(&self, inode: u32) -> u32 {
        self.inodes.get(&inode).map_or(0, |of| of.generation)
    }

    /// Records an inode's state from its table: its generation, whether any name refers to it, and
    /// whether it is a directory.
    pub fn inode_is(&mut self, inode: u32, generation: u32, is_linked: bool, is_directory: bool) {
        let of = self.inodes.entry(inode).or_default();
        (of.generation, of.is_linked) = (generation, is_linked);
        if of.is_directory.replace(is_directory) == Some(true) && !is_directory {
            self.known.clear(); // some paths may lead through the directory that it was
        }
    }

    /// Returns whether an inode has no name according to its table.
    pub fn is_nameless(&self, inode: u32) -> bool {
        self.inodes.get(&inode).is_some_and(|of| !of.is_linked)
    }

    /// Adds a name to a directory.
    pub fn add(&mut self, parent: u32, entry: &Entry<'_>) {
        let life = self.life(parent);
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
            Some(known) => {
                known.count = known.count.saturating_add(1);
                known.of = life;
            }
            None => of.names.push(Name {
                parent,
                of: life,
                name: entry.name.into(),
                count: 1,
                since: self.epoch,
            }),
        }
        self.forget_paths(entry, !is_first);
    }

    /// Returns whether an inode is new and has no known name yet.
    pub fn awaits(&self, inode: u32) -> bool {
        self.awaited.contains(&inode)
    }

    /// Records that a directory was written again with a name that it has had before. If the inode
    /// is that of a new file, the file was created under the name of the previous file.
    pub fn confirm(&mut self, parent: u32, entry: &Entry<'_>) {
        if let Some(of) = self.inodes.get_mut(&entry.inode)
            && of.names.iter().any(|name| name.is(parent, entry))
            && self.awaited.remove(&entry.inode)
        {
            of.names.retain(|name| name.is(parent, entry));
            (of.alive, of.removed) = (true, false);
            let life = self.life(parent);
            let names = self.inodes.get_mut(&entry.inode).map(|of| &mut of.names);
            for name in names.into_iter().flatten() {
                (name.of, name.since) = (life, self.epoch);
            }
        }
    }

    /// Records that a write showed this name, new or not. Does nothing with a journal.
    pub fn see(&mut self, parent: u32, entry: &Entry<'_>) {
        let is_directory = |of: &Called| of.is_directory != Some(false);
        if self.epoch > 0
            && entry.is_directory
            && self.inodes.get(&entry.inode).is_none_or(is_directory)
            && self.links.see(entry.inode, parent, entry.name, self.epoch)
        {
            self.known.clear();
        }
    }

    /// Records the parent that `..` names. Does nothing with a journal.
    pub fn see_parent(&mut self, directory: u32, parent: u32) {
        if self.epoch > 0 && self.links.see_parent(directory, parent) {
            self.known.clear();
        }
    }

    /// Returns the directories that moved since the last call.
    pub fn moved(&mut self) -> Vec<Moved> {
        self.links.moved()
    }

    /// Returns the directory that holds an inode's name, and the epoch in which the name appeared.
    pub fn place(&self, inode: u32) -> Option<(u32, u32)> {
        let name = self.name_of(inode)?;
        Some((name.parent, name.since))
    }

    /// Returns the directory and those above it.
    pub fn above(&self, directory: u32) -> impl Iterator<Item = u32> {
        let next = |&at: &u32| (at != ROOT).then(|| self.name_of(at).map(|name| name.parent))?;
        std::iter::successors(Some(directory), next).take(MAX_DEPTH)
    }

    /// Returns the last epoch in which all links of the path to a directory were certain.
    pub fn certain_until(&self, directory: u32) -> u32 {
        let seen = self.above(directory).map(|at| self.links.seen(at));
        seen.min().unwrap_or(u32::MAX)
    }

    /// Returns the name that gives an inode its path.
    fn name_of(&self, inode: u32) -> Option<&Name> {
        let names = &self.inodes.get(&inode)?.names;
        let link = self.links.of(inode);
        let newest = link.and_then(|(parent, name)| {
            let is_it = |each: &&Name| each.parent == parent && *each.name == *name;
            names.iter().find(is_it)
        });
        newest.or_else(|| names.first())
    }

    /// Removes a name from a directory.
    pub fn remove(&mut self, parent: u32, entry: &Entry<'_>) {
        let Some(of) = self.inodes.get_mut(&entry.inode) else {
            return;
        };
        let Some(number) = of.names.iter().position(|n| n.is(parent, entry)) else {
            return;
        };
        match &mut of.names[..] {
            names if names[number].count > 1 => names[number].count -= 1,
            [last] => {
                last.count = 0;
                of.alive = false;
            }
            _ => {
                of.names.remove(number);
                self.forget_paths(entry, true);
            }
        }
    }

    /// Marks the inode as removed. Its next name belongs to another file.
    pub fn inode_removed(&mut self, inode: u32) {
        self.links.remove(inode);
        if let Some(of) = self.inodes.get_mut(&inode) {
            of.alive = false;
            of.removed = true;
        }
    }

    /// Marks the inode as that of a new file, whose name may be known already or not.
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

    /// Marks the inode as that of a new file without a name: an open file that was unlinked, or one
    /// that never had a name.
    pub fn inode_nameless(&mut self, inode: u32) {
        let of = self.inodes.entry(inode).or_default();
        of.names.clear();
        (of.alive, of.removed) = (false, true);
        self.awaited.remove(&inode);
        self.known.remove(&inode);
    }

    /// Returns the number of the file that the inode currently is.
    pub fn life(&self, inode: u32) -> Life {
        self.inodes.get(&inode).map_or(0, |of| of.life)
    }

    /// Settles new inodes once all names are on the disk. A new inode that has gained no name since
    /// had its name before, or has none at all.
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

    /// Drops the cached path of an entry. For a directory that had a name, drops all cached paths,
    /// because some may be below it.
    fn forget_paths(&mut self, entry: &Entry<'_>, had_name: bool) {
        if entry.is_directory && had_name {
            self.known.clear();
        } else {
            self.known.remove(&entry.inode);
        }
    }

    /// Returns the inode's path, by its oldest name that is not removed, or else by its last name.
    pub fn path(&mut self, inode: u32, paths: &mut Paths) -> Option<PathId> {
        let inode = self.values.get(&inode).copied().unwrap_or(inode);
        if let Some(&known) = self.known.get(&inode) {
            return Some(known);
        }
        let path = paths.intern(&self.text(inode, u32::MAX)?);
        if self.told.is_empty() {
            self.known.insert(inode, path);
        }
        Some(path)
    }

    /// Returns the path that an inode had at the end of an epoch, if all names in the path still
    /// date from then.
    pub fn path_in(&mut self, inode: u32, epoch: u32, paths: &mut Paths) -> Option<PathId> {
        if epoch >= self.epoch {
            return self.path(inode, paths);
        }
        let inode = self.values.get(&inode).copied().unwrap_or(inode);
        Some(paths.intern(&self.text(inode, epoch)?))
    }

    /// Builds the path from names that appeared in `epoch` or before. There is none if a directory
    /// in it was removed and its number belongs to another file.
    fn text(&self, inode: u32, epoch: u32) -> Option<String> {
        if self.awaited.contains(&inode) {
            return None;
        }
        let mut parts = Vec::new();
        let (mut at, mut bytes) = (inode, 0);
        let (mut is_told, mut life) = (true, None);
        while at != ROOT {
            let told = self.told.get(&at);
            let (parent, name) = match told {
                Some(told) if is_told || told.generation == self.in_table(at) => {
                    told.name.as_ref().map(|(parent, name)| (*parent, name))?
                }
                Some(_) => return None,
                None => {
                    let of = self.inodes.get(&at)?;
                    let name = self.name_of(at)?;
                    if name.since > epoch
                        || life.is_some_and(|life| life != of.life)
                        || self.links.is_outdated(at)
                    {
                        return None;
                    }
                    life = Some(name.of);
                    (name.parent, &name.name)
                }
            };
            if told.is_some() {
                life = None;
            }
            is_told = told.is_some();
            bytes += name.len() + 1;
            parts.push(escaped(name));
            if bytes > MAX_BYTES {
                return None;
            }
            at = parent;
        }
        if parts.is_empty() {
            return Some("/".into());
        }
        let mut text = String::with_capacity(bytes);
        for part in parts.iter().rev() {
            text.push('/');
            text.push_str(part);
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests;
