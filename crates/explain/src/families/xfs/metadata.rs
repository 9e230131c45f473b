//! Known state of a file system at an instant: from blocks written home, and from log items, which
//! are ahead of them.

use super::block::{Block, Kind};
use super::directory;
use super::inode::{Extent, leaf_extents};
use super::owners::Owners;
use super::superblock::Geometry;
use super::version::Version;
use crate::hash::{HashMap, HashSet};
use crate::track::inodes::Inodes;
use crate::track::names::{Entry, Names};
use crate::{Causes, Rows, Structure};
use std::collections::BTreeSet;

/// Size of the regions in which metadata is remembered. The headers and first roots of a group take
/// less.
const REGION_BYTES: u64 = 64 << 10;
/// Minimum length of a write that is too long for a value of an attribute: 64 KiB, with a header
/// in each block.
const ALONE_BYTES: u64 = 128 << 10;

/// Last known state of a metadata block.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Structure of the block.
    pub structure: Structure,
    /// Inode that owns the block, or 0.
    pub owner: u64,
    /// Checksum of the content at the home location, once written there.
    pub home: Option<u32>,
}

/// Both versions of an inode, and the locations of its blocks.
#[derive(Debug, Default)]
pub(super) struct Inode {
    home: Option<Version>,
    logged: Option<Version>,
    /// Extents listed in the data fork itself.
    pub(super) data: Vec<Extent>,
    /// Extents listed in the attribute fork itself.
    pub(super) xattr: Vec<Extent>,
    /// Byte offsets of the leaves of the inode's extent trees.
    pub(super) leaves: BTreeSet<u64>,
    /// Data fork of a directory that is stored in its inode.
    pub(super) short_form: Box<[u8]>,
}

impl Inode {
    /// Returns the newest version: the one in the log, if any, otherwise the one at home.
    pub(super) fn latest(&self) -> Option<&Version> {
        self.logged.as_ref().or(self.home.as_ref())
    }

    /// Returns whether the inode is an open file without a name: unlinked or made with `O_TMPFILE`.
    fn is_unlinked(&self) -> bool {
        let core = self.latest().map(|version| version.core);
        core.is_some_and(|core| core.mode != 0 && core.links == 0)
    }
}

/// Holder of a list of extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    Data,
    Xattr,
    /// Block of an extent tree, at this byte offset.
    Leaf(u64),
}

/// Row whose inode had no name yet.
#[derive(Debug)]
struct Nameless {
    row: usize,
    inode: u64,
    /// Generation of the inode at that time. A later file with the same number has a different one.
    /// None if the inode was free or unknown: attributes may be written before the inode is logged.
    generation: Option<u32>,
    looked_up: u32,
}

/// Rows whose paths are set once the names of the transaction are known, with their inodes.
pub type Late = Vec<(usize, u64)>;

/// Known state of the file system.
#[derive(Debug)]
pub struct Metadata {
    /// Geometry of the file system.
    pub geometry: Geometry,
    /// Names, from which paths are derived.
    pub names: Names,
    /// Owners of blocks.
    pub owners: Owners,
    pub(super) inodes: Inodes<Inode>,
    known: HashMap<u64, Known>,
    /// Regions that have held metadata, by their number on the disk.
    regions: HashSet<u64>,
    /// True once the log has named attributes outside of an inode.
    pub(super) has_xattr_blocks: bool,
    /// True once short writes are read wherever they are, because of such attributes.
    pub(super) reads_short: bool,
    /// True if the log ends with an unmount record: tools may write what the log never names.
    pub(super) is_unmounted: bool,
    /// Directory data and extent tree blocks, by byte offset. They are kept because the log
    /// contains only changes to them.
    contents: HashMap<u64, Vec<u8>>,
    /// Extents listed in these tree blocks, by byte offset.
    pub(super) leaf_extents: HashMap<u64, Vec<Extent>>,
    /// Extents of tree blocks in the current transaction. They are settled at its end: they may
    /// have moved between blocks, and the inode, which determines their kind, may come last.
    pub(super) moved: Vec<(Extent, Holder, u64)>,
    /// Rows attributed to an inode since the caller last took them.
    pub(super) late: Late,
    /// Rows whose inode had no name yet.
    nameless: Vec<Nameless>,
}

impl Metadata {
    /// Creates the initial state, in which only the geometry is known.
    pub fn new(geometry: Geometry) -> Metadata {
        Metadata {
            names: Names::new(geometry.root_inode),
            owners: Owners::default(),
            inodes: Inodes::default(),
            known: HashMap::default(),
            regions: HashSet::default(),
            has_xattr_blocks: false,
            reads_short: false,
            is_unmounted: false,
            contents: HashMap::default(),
            leaf_extents: HashMap::default(),
            moved: Vec::new(),
            late: Late::new(),
            nameless: Vec::new(),
            geometry,
        }
    }

    /// Returns the last known state of the block at a byte offset.
    pub fn known(&self, offset: u64) -> Option<Known> {
        self.known.get(&offset).copied()
    }

    /// Sets the state of the block at `offset`. Returns the previous state.
    pub fn know(
        &mut self,
        offset: u64,
        structure: Structure,
        owner: u64,
        home: Option<u32>,
    ) -> Option<Known> {
        self.mark(offset, self.geometry.block_bytes);
        let before = self.known(offset);
        let known = Known {
            structure,
            owner,
            home: home.or(before.and_then(|b| b.home)),
        };
        self.known.insert(offset, known);
        before
    }

    /// Records that a range of at most [`REGION_BYTES`], the largest buffer, holds metadata.
    pub(super) fn mark(&mut self, offset: u64, length: u64) {
        let last = offset.saturating_add(length.clamp(1, REGION_BYTES) - 1);
        let (first, last) = (offset / REGION_BYTES, last / REGION_BYTES);
        self.regions.insert(first);
        if last != first {
            self.regions.insert(last);
        }
    }

    /// Returns whether a write to the range must be read because it may contain metadata. The log
    /// describes a block before it is written home, except for the values of attributes, in buffers
    /// of their own (`xfs_attr_rmtval_set_value`), and for a group's first blocks when the file
    /// system grows (`xfs_ag_init_headers`).
    ///
    /// The first values are not read until the log names attributes outside of an inode. Their
    /// rows still wait for an owner then, and `home::again` reads them.
    pub(super) fn may_be_at(&self, offset: u64, length: u64) -> bool {
        if self.is_unmounted || self.reads_short && length < ALONE_BYTES {
            return true;
        }
        let last = offset.saturating_add(length.max(1) - 1);
        let group_bytes = self.geometry.ag_blocks * self.geometry.block_bytes;
        let headers_end = (last / group_bytes * group_bytes).saturating_add(REGION_BYTES);
        let mut regions = offset / REGION_BYTES..=last / REGION_BYTES;
        offset < headers_end || regions.any(|region| self.regions.contains(&region))
    }

    /// Forgets the block at `offset`, which was freed. A freed leaf of an extent tree has no extents
    /// any more: those that its inode keeps are in another leaf or in the inode, also in the log.
    pub fn forget_block(&mut self, offset: u64, rows: &mut Rows) {
        if let Some(Known { owner, .. }) = self.known.remove(&offset)
            && let Some(inode) = self.inodes.get_mut(owner)
            && inode.leaves.remove(&offset)
        {
            self.hold(Holder::Leaf(offset), owner, Vec::new(), rows);
        }
        if let Some(content) = self.contents.remove(&offset) {
            self.rename(&content, &[]);
        }
    }

    /// Replaces the names in a directory's block, from `before` to `after`. Either may be empty.
    fn rename(&mut self, before: &[u8], after: &[u8]) {
        let names = |block| -> Vec<Entry<'_>> {
            let names = directory::names(block);
            names.map(|entry| (entry.name, entry.inode)).collect()
        };
        let (old, new) = (directory::owner(before), directory::owner(after));
        self.names.replace(old, &names(before), new, &names(after));
    }

    /// Reads the owners and names in a metadata block, which was written home or completed from the
    /// log.
    pub fn read_block(&mut self, offset: u64, block: &Block, content: &[u8], rows: &mut Rows) {
        match block.kind {
            Kind::Directory => {
                if self.content(offset) == Some(content) {
                    return;
                }
                let before = self.contents.remove(&offset).unwrap_or_default();
                self.rename(&before, content);
            }
            Kind::ExtentMap => {
                let Some(list) = leaf_extents(content).map(Iterator::collect) else {
                    return;
                };
                let owner = self.inodes.get_or_insert_with(block.owner, Inode::default);
                owner.leaves.insert(offset);
                self.hold(Holder::Leaf(offset), block.owner, list, rows);
            }
            _ => return,
        }
        if self.content(offset) != Some(content) {
            self.contents.insert(offset, content.to_vec());
        }
    }

    /// Returns the content to which log regions are applied.
    pub fn content(&self, offset: u64) -> Option<&[u8]> {
        self.contents.get(&offset).map(Vec::as_slice)
    }

    /// Sets the version of an inode at its home location. Returns the causes of the change.
    pub fn inode_home(&mut self, inode: u64, slot: &[u8], new: Version, rows: &mut Rows) -> Causes {
        let known = self.inodes.get_or_insert_with(inode, Inode::default);
        let before = known.home.replace(new);
        // The log is ahead of the home location.
        if known.logged.is_none() && !before.is_some_and(|b| new.has_forks_of(&b)) {
            let (data, xattr) = new.core.forks(slot);
            self.read_forks(inode, &new.core, [Some(data), Some(xattr)], rows);
            self.renew(inode, before.as_ref(), &new);
        }
        new.causes(before.as_ref())
    }

    /// Sets the logged version of an inode, of which these forks can be read: data, attributes.
    /// Returns the causes of the change from the last known version.
    pub fn inode_logged(
        &mut self,
        inode: u64,
        new: Version,
        forks: [Option<&[u8]>; 2],
        rows: &mut Rows,
    ) -> Causes {
        let known = self.inodes.get_or_insert_with(inode, Inode::default);
        // Forks are padded differently at home, so their fingerprints cannot be compared.
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
            self.read_forks(inode, &new.core, forks, rows);
        }
        new.causes(before.as_ref())
    }

    /// Records that free inodes were created, from the first inode of the chunk at this block of a
    /// group.
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
            self.know(offset, Structure::InodeChunk, 0, None);
        }
    }

    /// Completes a transaction: its names and owners take effect.
    pub fn commit(&mut self, mut late: Late, rows: &mut Rows) {
        self.settle_moved(rows);
        late.append(&mut self.late);
        self.settle_names();
        /// Number of transactions after which a missing name is given up.
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
        // A file made with O_TMPFILE may get a name later, but data was written before that.
        let inodes = &self.inodes;
        self.nameless
            .retain(|nameless| !inodes.get(nameless.inode).is_some_and(Inode::is_unlinked));
    }

    /// Handles the end of mkfs: rows without an owner or name stay without one.
    pub fn end_formatting(&mut self, rows: &mut Rows) {
        self.owners.end_formatting();
        for Nameless { row, inode, .. } in std::mem::take(&mut self.nameless) {
            self.name_row(row, inode, rows);
        }
    }

    /// Sets the paths of rows.
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

    /// Drops the names of an inode if the new version belongs to another file that reuses its
    /// number.
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
        // Directories and inodes with a single link have one name: the newest.
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

    /// Rereads the geometry from a superblock that was written: the file system may have grown.
    pub fn read_superblock(&mut self, sector: &[u8]) {
        if let Some(geometry) = Geometry::parse(sector)
            && geometry.uuid == self.geometry.uuid
        {
            self.geometry = geometry;
        }
    }
}

/// Returns the structure of blocks of this kind in tables.
pub(super) fn structure_of(kind: Kind) -> Structure {
    match kind {
        Kind::Superblock => Structure::Superblock,
        Kind::SuperblockBackup => Structure::SuperblockBackup,
        Kind::Agf => Structure::Agf,
        Kind::Agi => Structure::Agi,
        Kind::Agfl => Structure::Agfl,
        Kind::FreeSpaceBtree => Structure::FreeSpaceBtree,
        Kind::InodeBtree => Structure::InodeBtree,
        Kind::FreeInodeBtree => Structure::FreeInodeBtree,
        Kind::RmapBtree => Structure::RmapBtree,
        Kind::RefcountBtree => Structure::RefcountBtree,
        Kind::ExtentMap => Structure::ExtentMap,
        Kind::Directory => Structure::Directory,
        Kind::DirectoryFree | Kind::DirectoryLeaf | Kind::DirectoryLeafBelow | Kind::HashNode => {
            Structure::DirectoryIndex
        }
        Kind::XattrLeaf | Kind::XattrNode | Kind::XattrValue => Structure::Xattr,
        Kind::Symlink => Structure::Symlink,
    }
}

#[cfg(test)]
mod tests {
    use super::super::geometry;
    use super::*;

    #[test]
    fn a_write_is_read_only_where_metadata_may_be_or_a_group_begins() {
        let mut metadata = Metadata::new(geometry());
        let (long, group) = (ALONE_BYTES, 1000 * 4096);
        assert!(!metadata.may_be_at(1 << 20, long));
        assert!(!metadata.may_be_at(1 << 20, 4096));
        for is_unmounted in [true, false] {
            metadata.is_unmounted = is_unmounted;
            assert_eq!(metadata.may_be_at(1 << 20, long), is_unmounted);
            assert_eq!(metadata.may_be_at(1 << 20, 4096), is_unmounted);
        }
        metadata.reads_short = true;
        assert!(metadata.may_be_at(1 << 20, long - 1));
        assert!(!metadata.may_be_at(1 << 20, long));
        for (offset, is_read) in [
            (0, true),
            (REGION_BYTES - 1, true),
            (REGION_BYTES, false),
            (group - long, false),
            (group - long + 1, true),
            (group + REGION_BYTES, false),
        ] {
            assert_eq!(metadata.may_be_at(offset, long), is_read, "{offset}");
        }
        metadata.mark((1 << 20) + long - 512, 1024);
        assert!(metadata.may_be_at(1 << 20, long));
        assert!(metadata.may_be_at((1 << 20) + long, long));
        assert!(!metadata.may_be_at((1 << 20) + 2 * long, long));
        metadata.know(2 << 20, Structure::InodeChunk, 0, None);
        assert!(metadata.may_be_at(2 << 20, long));
        metadata.mark(u64::MAX, u64::MAX);
        assert!(metadata.may_be_at(u64::MAX - 1, u64::MAX));
    }

    #[test]
    fn data_written_before_a_file_had_a_name_has_no_path() {
        let log = |metadata: &mut Metadata, links: u8| {
            let mut slot = vec![0; 512];
            slot[..6].copy_from_slice(&[b'I', b'N', 0x81, 0xa4, 3, 2]);
            slot[19] = links;
            let version = Version::on_disk(&slot).unwrap();
            metadata.inode_logged(131, version, [None, None], &mut Rows::default());
        };
        let row = |rows: &mut Rows| {
            let number = rows.push(crate::Row::data(0, 4096));
            vec![(number, 131)]
        };
        for (links, is_named) in [(0, false), (1, true)] {
            let mut metadata = Metadata::new(geometry());
            let (root, mut rows) = (metadata.geometry.root_inode, Rows::default());
            log(&mut metadata, links);
            let late = row(&mut rows);
            metadata.commit(late, &mut rows);
            // The file may have its name by the time of this write.
            let late = row(&mut rows);
            metadata.name_rows(late, &mut rows);
            log(&mut metadata, 1);
            metadata.names.replace(root, &[], root, &[(b"name", 131)]);
            metadata.commit(Late::new(), &mut rows);
            let has_path = rows.to_vec().into_iter().map(|row| row.path.is_some());
            assert!(has_path.eq([is_named, true]), "{links}");
        }
    }
}
