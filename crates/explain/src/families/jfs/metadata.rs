//! Inodes, and the trees of extents and names rooted in them.

use super::*;

impl Jfs {
    /// Reads a page of a map or of a tree.
    pub(super) fn page(
        &mut self,
        at: u64,
        page: &[u8],
        owner: Owner,
        now: &mut Now<'_, '_>,
    ) -> Result<()> {
        match owner.structure {
            Structure::InodeBitmap | Structure::BlockBitmap => {
                match self.own_pages.get(&at) {
                    Some(OwnPage::Inodes) => {}
                    Some(&OwnPage::Tree(file)) => {
                        return self.own_extents(file, page, now);
                    }
                    None => return Ok(()),
                }
                let table = Owner::no_inode(Structure::InodeTable);
                for extent in inode::mapped(page) {
                    self.own_read(extent, table, None, now)?;
                }
                Ok(())
            }
            Structure::Directory => self.names(page, Some(at), owner, now),
            Structure::ExtentMap => self.extents(page, at, owner.inode, now),
            _ => Ok(()),
        }
    }

    /// Reads a node of an extent tree. `place` is the offset of its page, or 0 for the root.
    pub(super) fn extents(
        &mut self,
        node: &[u8],
        place: u64,
        inode: u64,
        now: &mut Now<'_, '_>,
    ) -> Result<()> {
        let structure = self.kinds.get(&inode).copied();
        let structure = structure.unwrap_or(Structure::FileData);
        match tree::extents(node) {
            Node::Leaf(entries) => {
                let extents: Vec<_> = entries.iter().map(|entry| entry.extent).collect();
                self.hold(inode, place, &extents, now.rows);
                for extent in extents {
                    self.own(extent, Owner { inode, structure }, now.rows);
                }
            }
            Node::Internal(pages) => {
                self.hold(inode, place, &[], now.rows);
                let owner = Owner {
                    inode,
                    structure: Structure::ExtentMap,
                };
                for page in pages {
                    self.own_read(page, owner, None, now)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a node of a name tree. `place` is the offset of its page; the root has none.
    pub(super) fn names(
        &mut self,
        node: &[u8],
        place: Option<u64>,
        owner: Owner,
        now: &mut Now<'_, '_>,
    ) -> Result<()> {
        let key = place.map_or((1, owner.inode), |at| (0, at));
        match tree::names(node, place.is_none()) {
            Node::Leaf(entries) => {
                let entries = entries
                    .iter()
                    .map(|(name, inode)| (name.as_bytes(), *inode));
                let entries: Vec<_> = entries.collect();
                self.files.name_at(key, owner.inode, &entries);
            }
            Node::Internal(pages) => {
                self.files.name_at(key, owner.inode, &[]);
                for page in pages {
                    self.own_read(page, owner, None, now)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a page of inodes. Returns why it was written, and the changed inode if there is
    /// exactly one. The content is applied only if `is_newest`; otherwise the log has already
    /// provided a newer version.
    pub(super) fn inodes(
        &mut self,
        page: &[u8],
        is_newest: bool,
        now: &mut Now<'_, '_>,
    ) -> Result<(Causes, u64)> {
        let mut causes = Causes::NONE;
        let mut changed = Vec::new();
        for slot in page.chunks_exact(inode::BYTES) {
            let read = Inode(slot);
            let inode = read.number();
            match read.fileset() {
                1 => {
                    self.own_extents(inode, read.tree(), now)?;
                    continue;
                }
                INODE_MAP_FILE => {}
                _ => continue,
            }
            if !read.is_linked() {
                if self.inodes.remove(&inode).is_some() {
                    if is_newest {
                        self.generations.remove(&inode);
                        self.files.forget(inode, now.rows);
                    }
                    causes = causes.with(Cause::InodeRemoved);
                    changed.push(inode);
                }
                continue;
            }
            let (generation, version) = (read.generation(), read.fingerprints());
            let why = match self.inodes.insert(inode, (generation, version)) {
                Some((of, before)) if of == generation && before == version => {
                    // Writes to blocks that the inode still has are its own: `diWrite` comes before
                    // the blocks are freed (`txUpdateMap`).
                    if is_newest && read.kind() != Kind::Directory {
                        self.inode(inode, slot, now)?;
                    }
                    continue;
                }
                Some((of, before)) if of == generation => causes_of(&version, &before),
                before => {
                    if before.is_some() && is_newest {
                        self.files.forget(inode, now.rows);
                    }
                    Causes::one(Cause::NewInode)
                }
            };
            causes = causes.and(why);
            changed.push(inode);
            if is_newest {
                self.generations.insert(inode, generation);
                self.inode(inode, slot, now)?;
            }
        }
        Ok((causes.or(Cause::Unchanged), the_only(&changed)))
    }

    /// Reads an inode: the locations of its data, names and attributes.
    pub(super) fn inode(&mut self, inode: u64, slot: &[u8], now: &mut Now<'_, '_>) -> Result<()> {
        let read = Inode(slot);
        let attributes = read.attributes();
        self.hold(inode, ATTRIBUTES, attributes.as_slice(), now.rows);
        if let Some(extent) = attributes {
            let structure = Structure::Xattr;
            self.own(extent, Owner { inode, structure }, now.rows);
        }
        let kind = read.kind();
        let data = match kind {
            Kind::Directory => Structure::DirectoryIndex,
            Kind::Symlink => Structure::Symlink,
            Kind::Other => Structure::FileData,
        };
        self.kinds.insert(inode, data);
        if kind != Kind::Directory {
            // A short symlink target replaces the tree.
            if kind == Kind::Symlink && read.size() < 256 {
                return Ok(());
            }
            return self.extents(read.tree(), 0, inode, now);
        }
        if let Some(table) = read.table() {
            self.extents(table, 0, inode, now)?;
        }
        let owner = Owner {
            inode,
            structure: Structure::Directory,
        };
        self.names(read.tree(), None, owner, now)
    }
}
