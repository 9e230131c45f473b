//! Nodes of the tree: the owners of the blocks that leaves point to, and the names in leaves.

use super::*;

impl Reiserfs {
    /// Reads a node of the tree and, for a leaf, the blocks and names in it. Returns None if the
    /// block cannot be a node.
    pub(super) fn node(&mut self, block: u64, content: &[u8], rows: &mut Rows) -> Option<Causes> {
        let level = le16(content, 0);
        if !(LEAF..=DEEPEST).contains(&level) || !leaf::is_node(content) {
            return None;
        }
        let bytes = self.geometry.block_bytes;
        let tree = Owner {
            inode: NO_INODE,
            structure: Structure::FsTree,
        };
        if block < self.geometry.blocks {
            self.files.own(block * bytes, bytes, tree, rows);
        }
        if level != LEAF {
            return Some(Causes::one(Cause::Accounting));
        }
        self.learn(block, content, rows);
        for item in leaf::items(content) {
            let inode = item.inode();
            // The owner is a file: a symlink's target is stored whole in an item
            // (`reiserfs_symlink`).
            let structure = Structure::FileData;
            for (first, count) in runs(item.blocks()) {
                let to = first.saturating_add(count).min(self.geometry.blocks);
                let from = first.min(to);
                let owner = Owner { inode, structure };
                self.files
                    .own(from * bytes, (to - from) * bytes, owner, rows);
            }
        }
        Some(self.leaves.causes(block, content))
    }

    /// Reads the inodes and names of a leaf. A name that moves to another leaf does so within one
    /// transaction.
    pub(super) fn learn(&mut self, block: u64, content: &[u8], rows: &Rows) {
        let mut names: BTreeMap<u64, Vec<Entry<'_>>> = BTreeMap::new();
        let mut inodes = Vec::new();
        for item in leaf::items(content) {
            let inode = item.inode();
            if let Some(generation) = item.generation() {
                let before = self.inodes.insert(inode, (generation, block));
                if before.is_some_and(|(before, _)| before != generation) {
                    self.files.forget(inode, rows);
                }
                self.gone.remove(&inode);
                inodes.push(inode);
            }
            if item.kind == leaf::Kind::Directory {
                names.entry(inode).or_default().extend(item.names());
            }
        }
        let before = self.leaf_inodes.insert(block, inodes).unwrap_or_default();
        let kept = self.leaf_inodes.get(&block).map_or(&[][..], |kept| kept);
        let kept: HashSet<_> = kept.iter().collect();
        for inode in before.iter().filter(|inode| !kept.contains(inode)) {
            if self.inodes.get(inode).is_some_and(|&(_, at)| at == block) {
                self.gone.insert(*inode);
            }
        }
        let own = |(&directory, entries): (&u64, &Vec<Entry<'_>>)| {
            let entries = entries.iter();
            let entries = entries.map(|&(name, child)| (name.into(), child));
            (directory, entries.collect())
        };
        let before = self.known.insert(block, names.iter().map(own).collect());
        let mut before = before.unwrap_or_default();
        for directory in names.keys() {
            before.entry(*directory).or_default();
        }
        for (directory, before) in &before {
            let before: Vec<_> = before
                .iter()
                .map(|(name, child)| (&**name, *child))
                .collect();
            let after = names.get(directory).map_or(&[][..], |names| names);
            let place = (block, *directory);
            self.files.rename(place, *directory, &before, after);
        }
    }
}
