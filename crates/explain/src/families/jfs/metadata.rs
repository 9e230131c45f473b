//! Inodes, and the trees of extents and names rooted in them.

use super::*;

/// Location of a node of a name tree.
pub(super) enum Place {
    /// A separate page.
    Page(u64),
    /// The inode itself.
    Root,
}

impl Jfs {
    /// Reads a page of a map or of a tree.
    pub(super) fn page(
        &mut self,
        at: u64,
        page: &[u8],
        owner: Owner,
        deepest: u32,
        now: &mut Now<'_, '_>,
        rows: &mut Rows,
    ) -> Result<()> {
        match owner.structure {
            Structure::InodeBitmap | Structure::BlockBitmap => {
                match self.own_pages.get(&at) {
                    Some(OwnPage::Inodes) => {}
                    Some(&OwnPage::Tree(file)) => {
                        return self.own_extents(file, page, deepest, now, rows);
                    }
                    None => return Ok(()),
                }
                let table = Owner {
                    inode: NO_INODE,
                    structure: Structure::InodeTable,
                };
                for extent in inode::mapped(page) {
                    self.own_read(extent, table, None, deepest, now, rows)?;
                }
                Ok(())
            }
            Structure::Directory => self.names(page, Place::Page(at), owner, deepest, now, rows),
            Structure::ExtentMap => self.extents(page, at, owner.inode, deepest, now, rows),
            _ => Ok(()),
        }
    }

    /// Reads a node of an extent tree. `place` is the offset of its page, or 0 for the root.
    pub(super) fn extents(
        &mut self,
        node: &[u8],
        place: u64,
        inode: u64,
        deepest: u32,
        now: &mut Now<'_, '_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let structure = self.kinds.get(&inode).copied();
        let structure = structure.unwrap_or(Structure::FileData);
        match tree::extents(node) {
            Node::Leaf(entries) => {
                let extents: Vec<_> = entries.iter().map(|entry| entry.extent).collect();
                self.hold(inode, place, &extents, rows);
                for extent in extents {
                    self.own(extent, inode, structure, rows);
                }
            }
            Node::Internal(pages) => {
                self.hold(inode, place, &[], rows);
                let owner = Owner {
                    inode,
                    structure: Structure::ExtentMap,
                };
                for page in pages {
                    self.own_read(page, owner, None, deepest, now, rows)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a node of a name tree.
    pub(super) fn names(
        &mut self,
        node: &[u8],
        place: Place,
        owner: Owner,
        deepest: u32,
        now: &mut Now<'_, '_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let key = match place {
            Place::Page(at) => (0, at),
            Place::Root => (1, owner.inode),
        };
        match tree::names(node, matches!(place, Place::Root)) {
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
                    self.own_read(page, owner, None, deepest, now, rows)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a page of inodes. Returns why it was written, and the changed inode if there is
    /// exactly one. The content is applied only if `is_news`; otherwise the log has already
    /// provided a newer version.
    pub(super) fn inodes(
        &mut self,
        page: &[u8],
        is_news: bool,
        deepest: u32,
        now: &mut Now<'_, '_>,
        rows: &mut Rows,
    ) -> Result<(Causes, u64)> {
        let mut causes = Causes::NONE;
        let mut changed = Vec::new();
        for slot in page.chunks_exact(inode::BYTES) {
            let read = Inode(slot);
            let inode = read.number();
            match read.fileset() {
                1 => {
                    self.own_extents(inode, read.tree(), deepest, now, rows)?;
                    continue;
                }
                INODE_MAP_FILE => {}
                _ => continue,
            }
            if !read.is_linked() {
                if self.inodes.remove(&inode).is_some() {
                    if is_news {
                        self.generations.remove(&inode);
                        self.files.forget(inode, rows);
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
                    if is_news && read.kind() != Kind::Directory {
                        self.inode(inode, slot, deepest, now, rows)?;
                    }
                    continue;
                }
                Some((of, before)) if of == generation => causes_of(&version, &before),
                Some(_) => {
                    if is_news {
                        self.files.forget(inode, rows);
                    }
                    Causes::one(Cause::NewInode)
                }
                None => Causes::one(Cause::NewInode),
            };
            causes = causes.and(why);
            changed.push(inode);
            if is_news {
                self.generations.insert(inode, generation);
                self.inode(inode, slot, deepest, now, rows)?;
            }
        }
        let causes = match causes.is_empty() {
            true => Causes::one(Cause::Unchanged),
            false => causes,
        };
        Ok(match changed[..] {
            [inode] => (causes, inode),
            _ => (causes, NO_INODE),
        })
    }

    /// Reads an inode: the locations of its data, names and attributes.
    pub(super) fn inode(
        &mut self,
        inode: u64,
        slot: &[u8],
        deepest: u32,
        now: &mut Now<'_, '_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let read = Inode(slot);
        let attributes = read.attributes();
        self.hold(inode, ATTRIBUTES, attributes.as_slice(), rows);
        if let Some(extent) = attributes {
            self.own(extent, inode, Structure::Xattr, rows);
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
            return self.extents(read.tree(), 0, inode, deepest, now, rows);
        }
        if let Some(table) = read.table() {
            self.extents(table, 0, inode, deepest, now, rows)?;
        }
        let owner = Owner {
            inode,
            structure: Structure::Directory,
        };
        self.names(read.tree(), Place::Root, owner, deepest, now, rows)
    }
}
