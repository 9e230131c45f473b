//! What is known of a file system at an instant: from blocks written home, and from log items,
//! which are ahead of them.

use super::block::{Block, identify, is_hash_node};
use super::bytes::{be16, be64};
use super::directory;
use super::inode::{Extent, Version, extents};
use super::owners::Owners;
use super::superblock::Geometry;
use crate::hash::HashMap;
use crate::track::inodes::Inodes;
use crate::track::names::Names;
use crate::{Rows, Structure};
use std::collections::BTreeSet;

/// A metadata block as it was seen last.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// What it is.
    pub structure: Structure,
    /// The inode that owns it, or 0.
    pub owner: u64,
    /// Of its content at home, once written there.
    pub home: Option<u32>,
}

/// An inode: both versions, and where its blocks are.
#[derive(Debug, Default)]
pub(super) struct Inode {
    home: Option<Version>,
    logged: Option<Version>,
    /// Extents that the data fork itself lists.
    pub(super) data: Vec<Extent>,
    /// And those of the attribute fork.
    pub(super) xattr: Vec<Extent>,
    /// Byte offsets of the leaves of its extent trees.
    pub(super) leaves: BTreeSet<u64>,
    /// The data fork of a directory that is in its inode.
    pub(super) short_form: Box<[u8]>,
}

impl Inode {
    /// As the log knows it, which is ahead of its home place.
    pub(super) fn latest(&self) -> Option<&Version> {
        self.logged.as_ref().or(self.home.as_ref())
    }
}

/// What holds a list of extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    Data,
    Xattr,
    /// A block of an extent tree, at this byte offset.
    Leaf(u64),
}

/// A row whose inode had no name yet.
#[derive(Debug)]
struct Nameless {
    row: usize,
    inode: u64,
    /// Of the inode then: the next file with its number has another. None if it was free or not
    /// seen yet: attributes may be written before the log has their inode.
    generation: Option<u32>,
    looked_up: u32,
}

/// Rows whose path is to be set once the transaction's names are known, with their inodes.
pub type Late = Vec<(usize, u64)>;

/// The file system as it is known.
#[derive(Debug)]
pub struct Metadata {
    /// Its shape.
    pub geometry: Geometry,
    /// Paths.
    pub names: Names,
    /// Owners of blocks.
    pub owners: Owners,
    pub(super) inodes: Inodes<Inode>,
    known: HashMap<u64, Known>,
    /// Directory data and extent tree blocks, by byte offset: the log brings changes to them only.
    contents: HashMap<u64, Vec<u8>>,
    /// Extents that such tree blocks list, by byte offset.
    pub(super) leaf_extents: HashMap<u64, Vec<Extent>>,
    /// Extents of tree blocks in this transaction. They wait for its end: they may have moved
    /// between blocks, and the inode, which says what they
    /// are, may come last.
    pub(super) moved: Vec<(Extent, Holder, u64)>,
    /// Rows whose inode had no name yet.
    nameless: Vec<Nameless>,
}

impl Metadata {
    /// Nothing but the shape.
    pub fn new(geometry: Geometry) -> Metadata {
        Metadata {
            names: Names::new(geometry.root_inode),
            owners: Owners::default(),
            inodes: Inodes::default(),
            known: HashMap::default(),
            contents: HashMap::default(),
            leaf_extents: HashMap::default(),
            moved: Vec::new(),
            nameless: Vec::new(),
            geometry,
        }
    }

    /// What was last seen at a byte offset.
    pub fn known(&self, offset: u64) -> Option<Known> {
        self.known.get(&offset).copied()
    }

    /// The block at `offset` is this. Gives what was known before.
    pub fn know(&mut self, offset: u64, block: &Block, home: Option<u32>) -> Option<Known> {
        let before = self.known(offset);
        let known = Known {
            structure: block.structure,
            owner: block.owner,
            home: home.or(before.and_then(|b| b.home)),
        };
        self.known.insert(offset, known);
        before
    }

    /// The block at `offset` was freed.
    pub fn forget_block(&mut self, offset: u64) {
        self.known.remove(&offset);
        if let Some(content) = self.contents.remove(&offset) {
            directory::replace(&mut self.names, &content, &[]);
        }
    }

    /// A node's magic number is the same in directories and attributes: the owner's forks tell.
    pub fn settle(&self, offset: u64, content: &[u8], mut block: Block) -> Block {
        if is_hash_node(content)
            && let (Some(owner), _) = self.owners.of(offset / self.geometry.block_bytes, 1)
        {
            block.structure = owner.structure;
        }
        block
    }

    /// The content of a metadata block, written home or completed from the log: take from it who
    /// owns what, and names.
    pub fn read_block(&mut self, offset: u64, content: &[u8], rows: &mut Rows, late: &mut Late) {
        let Some(block) = identify(&self.geometry, offset, content) else {
            return;
        };
        match block.structure {
            Structure::Directory => {
                let before = self.contents.get(&offset).map_or(&[][..], Vec::as_slice);
                if before == content {
                    return;
                }
                directory::replace(&mut self.names, before, content);
            }
            // xfs_btree_lblock: level at 4, records at 6, behind a header of 72 bytes.
            Structure::ExtentMap if be16(content, 4) == Some(0) => {
                let count = be16(content, 6).map_or(0, u64::from);
                let list = extents(content.get(72..).unwrap_or_default(), count).collect();
                let owner = self.inodes.get_or_insert_with(block.owner, Inode::default);
                owner.leaves.insert(offset);
                self.hold(Holder::Leaf(offset), block.owner, list, rows, late);
            }
            _ => return,
        }
        if self.contents.get(&offset).map(Vec::as_slice) != Some(content) {
            self.contents.insert(offset, content.to_vec());
        }
    }

    /// The content that log regions change.
    pub fn content(&self, offset: u64) -> Option<&[u8]> {
        self.contents.get(&offset).map(Vec::as_slice)
    }

    /// The inode in an inode block: it is `new`. Gives what was there before.
    pub fn inode_home(
        &mut self,
        inode: u64,
        slot: &[u8],
        new: Version,
        rows: &mut Rows,
        late: &mut Late,
    ) -> Option<Version> {
        let known = self.inodes.get_or_insert_with(inode, Inode::default);
        let before = known.home.replace(new);
        // The log is ahead of the home place.
        if known.logged.is_none() && !before.is_some_and(|b| new.has_forks_of(&b)) {
            let (data, xattr) = new.core.forks(slot);
            self.read_forks(inode, &new.core, Some(data), Some(xattr), rows, late);
            self.renew(inode, before.as_ref(), &new);
        }
        before
    }

    /// An inode item of the log. Gives what was known before.
    pub fn inode_logged(
        &mut self,
        inode: u64,
        new: Version,
        data: Option<&[u8]>,
        xattr: Option<&[u8]>,
        rows: &mut Rows,
        late: &mut Late,
    ) -> Option<Version> {
        let known = self.inodes.get_or_insert_with(inode, Inode::default);
        // Forks are padded in another way at home: their fingerprints do not compare.
        let at_home = known.home.map(|home| Version {
            data: None,
            xattr: None,
            ..home
        });
        let same = known.logged.is_some_and(|l| new.has_forks_of(&l));
        let before = known.logged.or(at_home);
        known.logged = Some(new.over(before.as_ref()));
        self.renew(inode, before.as_ref(), &new);
        if !same {
            self.read_forks(inode, &new.core, data, xattr, rows, late);
        }
        before
    }

    /// Free inodes were made, from this one, in a chunk that begins at this block of a group.
    pub fn inodes_made(&mut self, group: u32, block: u32, count: u32) {
        /// `XFS_INODES_PER_CHUNK`.
        const CHUNK: u64 = 64;
        let count = u64::from(count).min(CHUNK);
        let first = self.geometry.inode_in_group(group, block);
        for inode in first..first.saturating_add(count) {
            self.inodes.remove(inode);
        }
        let bytes = self.geometry.block_bytes;
        let place = self.geometry.block_in_group(group, block);
        for number in 0..(count * self.geometry.inode_bytes).div_ceil(bytes) {
            let offset = place.saturating_add(number).saturating_mul(bytes);
            self.know(offset, &Block::new(Structure::InodeChunk, 0), None);
        }
    }

    /// A transaction is complete: its names and owners are what they are now.
    pub fn commit(&mut self, mut late: Late, rows: &mut Rows) {
        self.settle_moved(rows, &mut late);
        self.settle_names();
        /// After so many transactions a name will not come any more.
        const LOOK_UPS: u32 = 3;
        for mut nameless in std::mem::take(&mut self.nameless) {
            nameless.looked_up += 1;
            let generation = self.generation(nameless.inode);
            nameless.generation = nameless.generation.or(generation);
            if generation == nameless.generation
                && !self.name_row(nameless.row, nameless.inode, rows)
                && nameless.looked_up <= LOOK_UPS
            {
                self.nameless.push(nameless);
            }
        }
        self.name_rows(late, rows);
        let reused = self.owners.checkpoint(self.geometry.block_bytes, rows);
        self.name_rows(reused, rows);
    }

    /// mkfs has ended: what has no owner or name by now has none.
    pub fn end_formatting(&mut self, rows: &mut Rows) {
        self.owners.end_formatting();
        for Nameless { row, inode, .. } in std::mem::take(&mut self.nameless) {
            self.name_row(row, inode, rows);
        }
    }

    /// Set the paths of rows.
    pub fn name_rows(&mut self, late: Late, rows: &mut Rows) {
        self.settle_names();
        for (row, inode) in late {
            if !self.name_row(row, inode, rows) {
                self.nameless.push(Nameless {
                    row,
                    inode,
                    generation: self.generation(inode),
                    looked_up: 0,
                });
            }
        }
    }

    fn generation(&self, inode: u64) -> Option<u32> {
        let core = self.inodes.get(inode).and_then(Inode::latest)?.core;
        (core.mode != 0).then_some(core.generation)
    }

    /// A version of an inode follows another: a file that has the number of one that was removed
    /// has none of its names.
    fn renew(&mut self, inode: u64, before: Option<&Version>, new: &Version) {
        let is_another = |before: &Version| {
            before.core.mode == 0 || before.core.generation != new.core.generation
        };
        if new.core.mode != 0 && before.is_some_and(is_another) {
            self.names.renew(inode);
        }
    }

    fn settle_names(&mut self) {
        let inodes = &self.inodes;
        // A directory has one name, and what has one link, too: the newest.
        self.names.settle(|inode| {
            let core = inodes.get(inode).and_then(Inode::latest).map(|v| v.core);
            core.is_some_and(|core| core.links > 1 && !core.is_directory())
        });
    }

    fn name_row(&mut self, number: usize, inode: u64, rows: &mut Rows) -> bool {
        let path = self.names.path(inode, &mut rows.paths);
        if let Some(row) = rows.get_mut(number) {
            row.path = path;
        }
        path.is_some()
    }

    /// The superblock was written: the file system may have grown.
    pub fn read_superblock(&mut self, sector: &[u8]) {
        if let Some(geometry) = Geometry::parse(sector)
            && geometry.uuid == self.geometry.uuid
            && be64(sector, 8).is_some()
        {
            self.geometry = geometry;
        }
    }
}
