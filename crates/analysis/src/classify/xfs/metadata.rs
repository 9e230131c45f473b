//! What is known of a file system at an instant: from blocks written home, and from log items, which are ahead of them.

use super::block::{Block, identify, is_hash_node};
use super::bytes::{be16, be64};
use super::directory;
use super::inode::{Core, Extent, Format, Version, extents};
use super::names::Names;
use super::owners::{Owner, Owners};
use super::superblock::Geometry;
use crate::classify::{Rows, Structure};
use std::collections::{BTreeSet, HashMap};

/// Where the leaves of a directory begin in its file (fs/xfs/libxfs/xfs_da_format.h, `XFS_DIR2_LEAF_OFFSET`).
const DIRECTORY_INDEX_AT: u64 = 32 << 30;

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

/// Both versions of an inode.
#[derive(Debug, Default)]
struct Inode {
    home: Option<Version>,
    logged: Option<Version>,
}

/// What holds a list of extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Data(u64),
    Xattr(u64),
    Leaf(u64),
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
    inodes: HashMap<u64, Inode>,
    known: HashMap<u64, Known>,
    /// Directory data and extent tree blocks, by byte offset: the log brings changes to them only.
    contents: HashMap<u64, Vec<u8>>,
    extents: HashMap<Holder, Vec<Extent>>,
    leaves: HashMap<u64, BTreeSet<u64>>,
    /// Extents of tree blocks in this transaction. They wait for its end: they may have moved between blocks, and the inode, which says what they
    /// are, may come last.
    moved: Vec<(Extent, Holder, u64)>,
    /// Rows whose inode had no name yet, and how often that was looked up.
    nameless: Vec<(usize, u64, u32)>,
}

impl Metadata {
    /// Nothing but the shape.
    pub fn new(geometry: Geometry) -> Metadata {
        Metadata {
            names: Names::new(geometry.root_inode),
            owners: Owners::default(),
            inodes: HashMap::new(),
            known: HashMap::new(),
            contents: HashMap::new(),
            extents: HashMap::new(),
            leaves: HashMap::new(),
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
        self.contents.remove(&offset);
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

    /// The content of a metadata block, written home or completed from the log: take from it who owns what, and names.
    pub fn read_block(&mut self, offset: u64, content: &[u8], rows: &mut Rows, late: &mut Late) {
        let Some(block) = identify(&self.geometry, offset, content) else {
            return;
        };
        match block.structure {
            Structure::Directory => {
                for (name, inode) in directory::data_block(content) {
                    self.names.learn(block.owner, name, inode);
                }
            }
            // xfs_btree_lblock: level at 4, records at 6, behind a header of 72 bytes.
            Structure::ExtentMap if be16(content, 4) == Some(0) => {
                let count = be16(content, 6).map_or(0, u64::from);
                let list = extents(content.get(72..).unwrap_or_default(), count).collect();
                self.leaves.entry(block.owner).or_default().insert(offset);
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
        let known = self.inodes.entry(inode).or_default();
        let before = known.home.replace(new);
        // The log is ahead of the home place.
        if known.logged.is_none() {
            let (data, xattr) = new.core.forks(slot);
            self.read_forks(inode, &new.core, Some(data), Some(xattr), rows, late);
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
        let known = self.inodes.entry(inode).or_default();
        // Forks are padded in another way at home: their fingerprints do not compare.
        let at_home = known.home.map(|home| Version {
            data: None,
            xattr: None,
            ..home
        });
        let before = known.logged.or(at_home);
        known.logged = Some(new.over(before.as_ref()));
        self.read_forks(inode, &new.core, data, xattr, rows, late);
        before
    }

    /// Free inodes were made, from this one, in a chunk that begins at this block of a group.
    pub fn inodes_made(&mut self, group: u32, block: u32, count: u32) {
        /// `XFS_INODES_PER_CHUNK`.
        const CHUNK: u64 = 64;
        let count = u64::from(count).min(CHUNK);
        let first = self.geometry.inode_in_group(group, block);
        for inode in first..first.saturating_add(count) {
            self.inodes.remove(&inode);
        }
        let bytes = self.geometry.block_bytes;
        let place = self.geometry.block_in_group(group, block);
        for number in 0..(count * self.geometry.inode_bytes).div_ceil(bytes) {
            let offset = place.saturating_add(number).saturating_mul(bytes);
            self.know(offset, &Block::new(Structure::InodeChunk, 0), None);
        }
    }

    fn read_forks(
        &mut self,
        inode: u64,
        core: &Core,
        data: Option<&[u8]>,
        xattr: Option<&[u8]>,
        rows: &mut Rows,
        late: &mut Late,
    ) {
        if core.mode == 0 {
            self.hold(Holder::Data(inode), inode, Vec::new(), rows, late);
            self.hold(Holder::Xattr(inode), inode, Vec::new(), rows, late);
        } else if let Some(fork) = data {
            match core.data_format {
                Format::Local if core.is_directory() => self.read_short_form(inode, fork),
                Format::Extents if !core.realtime => {
                    let list = extents(fork, core.data_extents).collect();
                    self.hold(Holder::Data(inode), inode, list, rows, late);
                }
                _ => {}
            }
        }
        if core.mode != 0
            && core.xattr_format == Format::Extents
            && let Some(fork) = xattr
        {
            let list = extents(fork, u64::from(core.xattr_extents)).collect();
            self.hold(Holder::Xattr(inode), inode, list, rows, late);
        }
        if core.data_format != Format::Btree {
            for leaf in self.leaves.remove(&inode).unwrap_or_default() {
                self.hold(Holder::Leaf(leaf), inode, Vec::new(), rows, late);
            }
            // What leaves held may now be in the inode.
            let list = self.extents.get(&Holder::Data(inode)).cloned();
            for extent in list.unwrap_or_default() {
                let owner = self.owner(Holder::Data(inode), inode, &extent);
                self.give(&extent, owner);
            }
        } else {
            self.extents.remove(&Holder::Data(inode));
        }
    }

    fn read_short_form(&mut self, inode: u64, fork: &[u8]) {
        let Some((_, entries)) = directory::short_form(fork) else {
            return;
        };
        for (name, child) in entries {
            self.names.learn(inode, name, child);
        }
    }

    /// `holder` lists these extents now.
    fn hold(
        &mut self,
        holder: Holder,
        inode: u64,
        list: Vec<Extent>,
        rows: &mut Rows,
        late: &mut Late,
    ) {
        let before = match list.is_empty() {
            true => self.extents.remove(&holder).unwrap_or_default(),
            false => self
                .extents
                .insert(holder, list.clone())
                .unwrap_or_default(),
        };
        let same = list.iter().zip(&before).take_while(|(a, b)| a == b).count();
        for extent in before.iter().skip(same) {
            if let Some(block) = self.geometry.block(extent.fs_block) {
                self.owners.drop_of(block, extent.blocks, inode);
            }
        }
        for extent in list.iter().skip(same) {
            if matches!(holder, Holder::Leaf(_)) {
                self.moved.push((*extent, holder, inode));
            } else {
                self.claim(extent, holder, inode, rows, late);
            }
        }
    }

    /// An inode has these blocks now: and the data there that had no owner.
    fn claim(
        &mut self,
        extent: &Extent,
        holder: Holder,
        inode: u64,
        rows: &mut Rows,
        late: &mut Late,
    ) {
        let owner = self.owner(holder, inode, extent);
        self.give(extent, owner);
        let bytes = self.geometry.block_bytes;
        if let Some(block) = self.geometry.block(extent.fs_block) {
            let (offset, length) = (block * bytes, extent.blocks.saturating_mul(bytes));
            let claimed = self.owners.claim(offset, length, owner, rows);
            late.extend(claimed.into_iter().map(|row| (row, inode)));
        }
    }

    fn give(&mut self, extent: &Extent, owner: Owner) {
        if let Some(block) = self.geometry.block(extent.fs_block) {
            self.owners.give(block, extent.blocks, owner);
        }
    }

    fn owner(&self, holder: Holder, inode: u64, extent: &Extent) -> Owner {
        let geometry = &self.geometry;
        let known = self.inodes.get(&inode);
        let core = known.and_then(|k| k.logged.or(k.home)).map(|v| v.core);
        let file_offset = extent.file_block.saturating_mul(geometry.block_bytes);
        let structure = if matches!(holder, Holder::Xattr(_)) {
            Structure::Xattr
        } else if geometry.realtime_inodes.contains(&inode) {
            Structure::Realtime
        } else if geometry.quota_inodes.contains(&inode) {
            Structure::Quota
        } else if core.is_some_and(|c| c.is_directory()) {
            match file_offset < DIRECTORY_INDEX_AT {
                true => Structure::Directory,
                false => Structure::DirectoryIndex,
            }
        } else if core.is_some_and(|c| c.is_symlink()) {
            Structure::Symlink
        } else {
            Structure::FileData
        };
        Owner { inode, structure }
    }

    /// A transaction is complete: its names and owners are what they are now.
    pub fn commit(&mut self, mut late: Late, rows: &mut Rows) {
        self.settle_moved(rows, &mut late);
        /// After so many transactions a name will not come any more.
        const LOOK_UPS: u32 = 3;
        for (row, inode, looked_up) in std::mem::take(&mut self.nameless) {
            if !self.name_row(row, inode, rows) && looked_up < LOOK_UPS {
                self.nameless.push((row, inode, looked_up + 1));
            }
        }
        self.name_rows(late, rows);
        self.owners.checkpoint();
    }

    /// The extents of tree blocks are where they are now.
    pub fn settle_moved(&mut self, rows: &mut Rows, late: &mut Late) {
        for (extent, holder, inode) in std::mem::take(&mut self.moved) {
            self.claim(&extent, holder, inode, rows, late);
        }
    }

    /// Set the paths of rows.
    pub fn name_rows(&mut self, late: Late, rows: &mut Rows) {
        for (row, inode) in late {
            if !self.name_row(row, inode, rows) {
                self.nameless.push((row, inode, 0));
            }
        }
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
