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
        if block < self.geometry.blocks {
            let tree = Owner::no_inode(Structure::FsTree);
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
    pub(super) fn learn(&mut self, block: u64, content: &[u8], rows: &mut Rows) {
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
        let kept: HashSet<u64> = inodes.iter().copied().collect();
        let before = self.leaf_inodes.insert(block, inodes).unwrap_or_default();
        for inode in before.iter().filter(|inode| !kept.contains(inode)) {
            if self.inodes.get(inode).is_some_and(|&(_, at)| at == block) {
                self.gone.insert(*inode);
            }
        }
        self.files.name_block(block, &names);
    }

    /// Reads a block of the bitmap: a set bit is a block in use (fs/reiserfs/bitmap.c). A leaf that
    /// is freed is not written again, so nothing else shows that its names are gone.
    pub(super) fn bitmap(&mut self, home: u64, content: &[u8]) {
        // A block of the bitmap maps the range that it is in.
        let per_bitmap = self.geometry.block_bytes * 8;
        let mapped = home / per_bitmap * per_bitmap;
        let before = self.bitmaps.insert(home, content.to_vec());
        let before = before.unwrap_or_else(|| vec![u8::MAX; content.len()]);
        let changed = (mapped..).step_by(8).zip(before.iter().zip(content));
        for (first, (before, after)) in changed.filter(|(_, (before, after))| before != after) {
            let is_freed = |bit: &u64| before & !after & 1 << bit != 0;
            let freed = (0..8).filter(is_freed).map(|bit| first + bit);
            let leaves = &self.leaf_inodes;
            self.freed
                .extend(freed.filter(|block| leaves.contains_key(block)));
        }
    }

    /// Removes what the freed leaves held and no other leaf has taken over.
    pub(super) fn forget_freed(&mut self, rows: &mut Rows) {
        for block in std::mem::take(&mut self.freed) {
            self.learn(block, &[], rows);
            self.leaf_inodes.remove(&block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reiserfs() -> Reiserfs {
        let geometry = Geometry {
            block_bytes: 4096,
            blocks: 1000,
            journal_at: 18,
            journal_blocks: 10,
            journal_magic: 0,
        };
        Reiserfs::new(0, Some(0), geometry)
    }

    /// Builds a leaf with one directory that holds these names of one letter.
    fn leaf(directory: u8, names: &[(u8, u8)]) -> Vec<u8> {
        let mut body = vec![0; 16 * names.len()];
        let end = body.len() + names.len();
        for (number, &(_, inode)) in names.iter().enumerate() {
            let head = &mut body[16 * number..16 * (number + 1)];
            (head[8], head[12], head[14]) = (inode, (end - number - 1) as u8, 4);
        }
        body.extend(names.iter().rev().map(|&(name, _)| name));
        let mut block = vec![0; 4096];
        let at = block.len() - body.len();
        block[at..].copy_from_slice(&body);
        (block[0], block[2]) = (1, 1);
        block[4..6].copy_from_slice(&((at - 48) as u16).to_le_bytes());
        let item = &mut block[24..48];
        (item[4], item[15]) = (directory, 3 << 4);
        (item[16], item[18], item[22]) = (names.len() as u8, body.len() as u8, 1);
        item[20..22].copy_from_slice(&(at as u16).to_le_bytes());
        assert!(fscost_ondisk::reiserfs::is_node(&block));
        block
    }

    /// Reads a transaction that writes these leaves and frees these blocks.
    fn transaction(
        reiserfs: &mut Reiserfs,
        rows: &mut Rows,
        leaves: &[(u64, Vec<u8>)],
        free: &[usize],
    ) {
        for (block, content) in leaves {
            reiserfs.node(*block, content, rows).unwrap();
        }
        let mut bitmap = vec![u8::MAX; 4096];
        for block in free {
            bitmap[block / 8] &= !(1 << (block % 8));
        }
        reiserfs.bitmap(17, &bitmap);
        reiserfs.forget_freed(rows);
        reiserfs.files.commit(PATIENCE, rows);
    }

    fn path(reiserfs: &mut Reiserfs, rows: &mut Rows, inode: u64) -> Option<String> {
        let write = Write {
            event: 1,
            time_ns: 0,
            disk: 0,
            offset: 0,
            length: 4,
            content: &[1; 4],
            formatting: false,
        };
        let part = Part {
            inode,
            ..Part::new(Structure::FileData, Cause::Data)
        };
        let row = reiserfs.files.add(&write, part, rows);
        let path = rows.to_vec()[row].path;
        path.map(|path| rows.paths.text(path).to_owned())
    }

    #[test]
    fn the_names_of_a_freed_leaf_are_gone_unless_another_leaf_has_them() {
        let (mut reiserfs, mut rows) = (reiserfs(), Rows::default());
        let (reiserfs, rows) = (&mut reiserfs, &mut rows);
        let root = |names: &[(u8, u8)]| (100, leaf(2, names));
        transaction(
            reiserfs,
            rows,
            &[root(&[(b'd', 5)]), (200, leaf(5, &[(b'f', 6)]))],
            &[],
        );
        assert_eq!(path(reiserfs, rows, 6).as_deref(), Some("/d/f"));
        // Another leaf takes over the name. Inode 6 gets a second one, and keeps its first.
        let both = root(&[(b'd', 5), (b'g', 6)]);
        transaction(
            reiserfs,
            rows,
            &[(300, leaf(5, &[(b'f', 6)])), both.clone()],
            &[200],
        );
        assert_eq!(path(reiserfs, rows, 6).as_deref(), Some("/d/f"));
        // The leaf is freed, and nothing else is written about the name.
        transaction(reiserfs, rows, &[], &[200, 300]);
        assert_eq!(path(reiserfs, rows, 6).as_deref(), Some("/g"));
    }
}
