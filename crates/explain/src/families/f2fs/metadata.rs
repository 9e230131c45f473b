//! Nodes: inodes and the names in them, and the owners of blocks.

use super::*;

impl F2fs {
    pub(super) fn add_node(
        &mut self,
        write: &Write<'_>,
        node: &Node<'_>,
        now: &mut Now<'_, '_>,
    ) -> Result<()> {
        let version = node.fingerprints(self.geometry.flexible);
        let generation = node.generation();
        let before = self.versions.insert(node.number, (generation, version));
        let before = before.filter(|before| before.0 == generation);
        let part = Part {
            structure: Structure::Node,
            causes: match before {
                None if node.is_inode() && node.has_data() => {
                    Causes::one(Cause::NewInode).with(Cause::Data)
                }
                None if node.is_inode() => Causes::one(Cause::NewInode),
                None => Causes::one(Cause::SizeOrExtents),
                Some((_, before)) => causes_of(&version, &before),
            },
            inode: u64::from(node.inode),
            ..Part::default()
        };
        if node.is_inode() {
            if before.is_none() {
                self.files.forget(part.inode, now.rows);
            }
            self.give_name(node, now.rows);
            self.inode(node);
        }
        self.files.add(write, part, now.rows);
        let structure = self.kinds.get(&node.inode).copied();
        let owner = Owner {
            inode: u64::from(node.inode),
            structure: structure.unwrap_or(Structure::FileData),
        };
        if owner.structure == Structure::Directory {
            self.read_names(node, now)?;
        }
        for (first, count) in runs(node.addresses(self.geometry.flexible)) {
            let from = first.max(self.geometry.main);
            let to = (first + count).min(self.geometry.end);
            if from < to {
                self.files
                    .own(from * BLOCK, (to - from) * BLOCK, owner, now.rows);
            }
        }
        Ok(())
    }

    /// Applies the name in a new inode that an fsync made durable. After a rename this may be the
    /// old name; the next checkpoint corrects it.
    pub(super) fn give_name(&mut self, node: &Node<'_>, rows: &mut Rows) {
        let (directory, name) = node.name();
        if !node.is_named_by_fsync() || name.is_empty() {
            return;
        }
        let inode = u64::from(node.inode);
        self.files.rename(GIVEN, directory, &[], &[(name, inode)]);
        self.given.insert(inode, (directory, name.into()));
        self.files.give(inode, directory, node.changed(), rows);
    }

    /// Reads the names in those blocks of a directory that moved since the last version.
    pub(super) fn read_names(&mut self, node: &Node<'_>, now: &mut Now<'_, '_>) -> Result<()> {
        let mut content = [0; BLOCK as usize];
        for (place, block) in node.addresses(self.geometry.flexible).enumerate() {
            let key = (node.number, place);
            let is_there = (self.geometry.main..self.geometry.end).contains(&block);
            let before = self.directories.insert(key, block);
            if before == Some(block) || before.is_none() && !is_there {
                continue;
            }
            let mut entries = Vec::new();
            if is_there {
                now.read(block * BLOCK, &mut content)?;
                entries = directory::entries(&content, directory::IN_BLOCK);
            }
            self.name_at((u64::from(node.number), place as u64), node.inode, &entries);
        }
        Ok(())
    }

    /// Replaces the names at this place in a directory.
    pub(super) fn name_at(&mut self, place: (u64, u64), inode: u32, entries: &[Entry<'_>]) {
        let directory = u64::from(inode);
        for &(name, child) in entries {
            if let Some((of, given)) = self.given.remove(&child)
                && (of, &*given) != (directory, name)
            {
                self.files.rename(GIVEN, of, &[(&given, child)], &[]);
            }
        }
        self.files.name_at(place, directory, entries);
    }

    /// Records the structure of an inode's blocks, and the names stored in the inode.
    pub(super) fn inode(&mut self, node: &Node<'_>) {
        let structure = match node.kind() {
            Kind::Directory => {
                self.files.changed(node.inode.into(), node.changed());
                Structure::Directory
            }
            Kind::Symlink => Structure::Symlink,
            Kind::Other => {
                self.kinds.remove(&node.inode);
                return;
            }
        };
        self.kinds.insert(node.inode, structure);
        if let Some(inline) = node.inline_directory(self.geometry.flexible) {
            let entries = directory::entries(inline, directory::inline_count(inline.len()));
            self.name_at((u64::from(node.number), INLINE), node.inode, &entries);
        }
    }
}
