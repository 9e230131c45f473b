//! Names that directories gain and lose.

use super::{
    directory::{self, Entry},
    state::{Name, State},
};

impl State {
    /// Queues the names that a directory gained or lost, and returns whether there are any. The
    /// changes take effect once all inodes are known, removals last: a name that moves to another
    /// block stays the oldest of its inode.
    pub(super) fn rename(&mut self, directory: u32, old: &[Entry<'_>], new: &[Entry<'_>]) -> bool {
        let removed = old.iter().filter(|e| new.binary_search(e).is_err());
        let added = new.iter().filter(|e| old.binary_search(e).is_err());
        if self.names.epoch > 0 {
            let directories = new.iter().filter(|e| e.is_directory);
            let kept = directories.filter(|e| old.binary_search(e).is_ok());
            kept.for_each(|entry| self.names.see(directory, entry));
        }
        let queued = self.gone.len() + self.come.len();
        let name = |entry| Name::new(directory, entry);
        self.gone.extend(removed.map(name));
        self.come.extend(added.map(name));
        self.gone.len() + self.come.len() > queued
    }

    /// Confirms the names that a directory block has had before and is written with again: they are
    /// those of the files that have these inodes by now.
    pub(super) fn keep_names(&mut self, directory: u32, old: &[Entry<'_>], new: &[Entry<'_>]) {
        let kept = |e: &&Entry<'_>| self.names.awaits(e.inode) && old.binary_search(e).is_ok();
        for entry in new.iter().filter(kept).copied().collect::<Vec<_>>() {
            self.names.confirm(directory, &entry);
        }
    }

    /// Records the parent that `..` names, if the content is the first block of this directory.
    pub(super) fn see_parent(&mut self, directory: u32, content: &[u8]) {
        if let Some(parent) = directory::parent(content) {
            self.names.see_parent(directory, parent);
        }
    }

    pub(super) fn name(&mut self) {
        for come in std::mem::take(&mut self.come) {
            self.names.add(come.directory, &come.entry());
            self.names.see(come.directory, &come.entry());
        }
        for gone in std::mem::take(&mut self.gone) {
            self.names.remove(gone.directory, &gone.entry());
        }
    }

    pub(super) fn entries<'b>(&self, block: &'b [u8]) -> Option<Vec<Entry<'b>>> {
        directory::entries(block, self.superblock.has_file_types())
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::ext2;
    use super::*;

    #[test]
    fn names_come_once_all_inodes_are_known() {
        let mut state = ext2();
        let entry = Entry {
            inode: 100,
            name: b"a",
            is_directory: false,
        };
        // The names of a small directory are stored in its inode, which may precede the inode that
        // they name.
        state.rename(2, &[], &[entry]);
        state.names.inode_removed(100);
        state.names.inode_new(100);
        state.name();
        assert!(state.names.path(100, &mut Default::default()).is_some());
    }
}
