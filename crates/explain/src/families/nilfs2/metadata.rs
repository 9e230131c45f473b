//! Inodes in blocks of the ifile, and names in blocks of directories.

use super::*;

impl Nilfs2 {
    /// Explains a block of inodes.
    pub(super) fn ifile(&mut self, write: &Write<'_>, now: &mut Now<'_, '_>) -> Result<()> {
        let mut causes = Causes::NONE;
        let mut changed = Vec::new();
        let block = write.offset / self.geometry.block_bytes;
        let offset = self.offsets.get(&block);
        let first = offset.and_then(|&offset| self.layout.first_inode(offset));
        if let Some(first) = first {
            let slots = write.content.chunks_exact(self.geometry.inode_bytes);
            for (number, slot) in slots.enumerate() {
                let inode = first + number as u64;
                let Some(version) = ifile::fingerprints(slot) else {
                    if self.inodes.remove(&inode).is_some() {
                        causes = causes.with(Cause::InodeRemoved);
                        changed.push(inode);
                        self.kinds.remove(&inode);
                        self.files.forget(inode, now.rows);
                    }
                    continue;
                };
                let generation = ifile::generation(slot);
                let why = match self.inodes.insert(inode, (generation, version)) {
                    Some((of, before)) if of == generation => match before == version {
                        true => continue,
                        false => causes_of(&version, &before),
                    },
                    before => {
                        if before.is_some() {
                            self.files.forget(inode, now.rows);
                        }
                        Causes::one(Cause::NewInode)
                    }
                };
                causes = causes.and(why);
                changed.push(inode);
                self.learn_kind(inode, slot, now)?;
            }
        }
        let part = Part {
            structure: Structure::InodeTable,
            causes: match first {
                None => Causes::one(Cause::Allocation),
                Some(_) => causes.or(Cause::Unchanged),
            },
            inode: the_only(&changed),
            ..Part::default()
        };
        self.files.add(write, part, now.rows);
        Ok(())
    }

    /// Sets the structure of an inode's blocks. Blocks written before the structure was known may
    /// hold names.
    pub(super) fn learn_kind(
        &mut self,
        inode: u64,
        slot: &[u8],
        now: &mut Now<'_, '_>,
    ) -> Result<()> {
        let structure = kind_of(slot);
        let before = self.kinds.insert(inode, structure);
        if before.unwrap_or(Structure::FileData) == structure {
            return Ok(());
        }
        let mut content = vec![0; self.geometry.block_bytes as usize];
        for (block, place) in self.open.remove(&inode).unwrap_or_default() {
            let offset = block * self.geometry.block_bytes;
            let owner = Owner { inode, structure };
            self.files
                .own(offset, self.geometry.block_bytes, owner, now.rows);
            if structure == Structure::Directory {
                now.read(offset, &mut content)?;
                self.offsets.insert(block, place);
                self.names(inode, block, &content);
            }
        }
        Ok(())
    }

    /// Reads the names in a directory's blocks.
    pub(super) fn names(&mut self, directory: u64, first: u64, content: &[u8]) {
        for (number, block) in (first..).zip(content.chunks(self.geometry.block_bytes as usize)) {
            let entries = directory::entries(block);
            match self.offsets.get(&number) {
                Some(&place) => self.files.name_at((directory, place), directory, &entries),
                None => self.files.name(directory, &entries),
            }
        }
    }
}

/// Structure of the blocks of an inode.
fn kind_of(slot: &[u8]) -> Structure {
    match ifile::kind(slot) {
        Kind::Directory => Structure::Directory,
        Kind::Symlink => Structure::Symlink,
        Kind::Other => Structure::FileData,
    }
}
