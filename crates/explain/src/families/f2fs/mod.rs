//! f2fs (include/linux/f2fs_fs.h): areas of fixed places for metadata, and the main area, whose
//! segments hold either nodes or data.
//!
//! A node names itself in its footer, with the version of the checkpoint before it. It reaches the
//! disk after the data that it points to, and before
//! the next checkpoint: data waits for it.

mod checkpoint;
mod directory;
mod node;

use crate::bytes::le32;
use crate::track::files::{Files, Owner, Part, cause_of, runs};
use crate::track::fingerprints::Fingerprints;
use crate::track::follower::Follower;
use crate::track::names::Entry;
use crate::{Cause, Causes, Disks, Family, FormattedDisks, Now, Rows, Structure, Write};
use checkpoint::Checkpoints;
use fscost_recording::{Image, Result};
use node::{Kind, Node};
use std::collections::HashMap;

/// The only size that most machines mount (`F2FS_BLKSIZE`): that of a page.
const BLOCK: u64 = 4096;
/// Checkpoints that data waits for its node: it is in the next one.
const PATIENCE: u32 = 2;
const SUPERBLOCK_AT: usize = 1024;

/// Where the areas begin, in blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Geometry {
    segment_blocks: u64,
    checkpoints: u64,
    segment_table: u64,
    address_table: u64,
    summaries: u64,
    main: u64,
    end: u64,
    root: u64,
    /// `F2FS_FEATURE_FLEXIBLE_INLINE_XATTR`: inodes tell how much of them is for attributes.
    flexible: bool,
}

impl Geometry {
    /// `block` is the first of the disk, or the second, which has a copy.
    fn parse(block: &[u8]) -> Option<Geometry> {
        let sb = block.get(SUPERBLOCK_AT..)?;
        let at = |offset| u64::from(le32(sb, offset));
        let segment_log = at(20);
        if at(0) != 0xf2f5_2010 || at(16) != 12 || !(1..=16).contains(&segment_log) {
            return None;
        }
        let geometry = Geometry {
            segment_blocks: 1 << segment_log,
            checkpoints: at(76),
            segment_table: at(80),
            address_table: at(84),
            summaries: at(88),
            main: at(92),
            end: at(92) + (at(68) << segment_log),
            root: at(96),
            flexible: le32(sb, 2180) & 0x40 != 0,
        };
        let Geometry {
            checkpoints,
            segment_table,
            address_table,
            summaries,
            main,
            ..
        } = geometry;
        let areas = [
            2,
            checkpoints,
            segment_table,
            address_table,
            summaries,
            main,
        ];
        areas.is_sorted().then_some(geometry)
    }

    /// The area of a block outside of the main area, and where it ends.
    fn area(&self, block: u64) -> (Structure, u64) {
        let areas = [
            (Structure::Superblock, 1),
            (Structure::SuperblockBackup, 2),
            (Structure::Unused, self.checkpoints),
            (Structure::Checkpoint, self.segment_table),
            (Structure::SegmentTable, self.address_table),
            (Structure::AddressTable, self.summaries),
            (Structure::SegmentSummary, self.main),
        ];
        let found = areas.into_iter().find(|&(_, end)| block < end);
        found.unwrap_or((Structure::Unused, u64::MAX))
    }

    fn segment(&self, block: u64) -> u64 {
        (block - self.main) / self.segment_blocks
    }
}

/// The family that follows `disk`, if it holds one. `image` is the disk as mkfs left it.
pub fn detect(
    _formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let mut block = [0; BLOCK as usize];
    if image.size_bytes() < BLOCK {
        return Ok(None);
    }
    image.read_at(0, &mut block)?;
    Ok(Geometry::parse(&block).map(|geometry| {
        let family: Box<dyn Family> = Box::new(F2fs {
            disk,
            files: Files::new(geometry.root, Structure::FileData),
            checkpoints: Checkpoints::new(&geometry),
            kinds: HashMap::new(),
            versions: HashMap::new(),
            directories: HashMap::new(),
            given: HashMap::new(),
            geometry,
        });
        family
    }))
}

struct F2fs {
    disk: u16,
    geometry: Geometry,
    checkpoints: Checkpoints,
    files: Files,
    /// What the blocks of an inode's data are, where it is no plain file.
    kinds: HashMap<u32, Structure>,
    /// Nodes as they were written last, by number, with their generations.
    versions: HashMap<u32, (u32, Fingerprints)>,
    /// Where each block of a directory is, by node and place in it.
    directories: HashMap<(u32, usize), u64>,
    /// Names of inodes that an fsync made durable, in no directory yet.
    given: HashMap<u64, (u64, Box<[u8]>)>,
}

/// The place of names that only an fsync says.
const GIVEN: (u64, u64) = (0, 0);
/// The place of names that are in the inode itself.
const INLINE: u64 = u64::MAX;

impl Follower for F2fs {
    const IS_ATOMIC: bool = true;

    fn name(&self) -> &'static str {
        "f2fs"
    }

    fn owns(&self, disk: u16) -> bool {
        disk == self.disk
    }

    fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    fn follow(&mut self, write: &Write<'_>, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        let mut now = Now { write, disks };
        let mut done = 0;
        // Data blocks in a row are one part.
        let mut data_from = None;
        while done < write.length {
            let offset = write.offset + done;
            let block = offset / BLOCK;
            let rest = write.length - done;
            let in_main = (self.geometry.main..self.geometry.end).contains(&block);
            // A write-zeroes may be as long as the disk, and has no nodes.
            let end = match (in_main, write.content.is_empty()) {
                (true, false) => block + 1,
                (true, true) => self.geometry.end,
                (false, _) => self.geometry.area(block).1,
            };
            let length = end.saturating_mul(BLOCK).saturating_sub(offset).min(rest);
            let piece = write.part(done, length);
            let node = in_main.then(|| self.node(&piece, block)).flatten();
            if in_main && node.is_none() {
                data_from.get_or_insert(done);
            } else if let Some(from) = data_from.take() {
                self.data(&write.part(from, done - from), rows);
            }
            match node {
                Some(node) => self.add_node(&piece, &node, &mut now, rows)?,
                None if !in_main => self.area(&piece, rows),
                None => {}
            }
            done += length;
        }
        if let Some(from) = data_from {
            self.data(&write.part(from, done - from), rows);
        }
        Ok(())
    }
}

impl F2fs {
    /// Part of a write to one of the areas of fixed places.
    fn area(&mut self, write: &Write<'_>, rows: &mut Rows) {
        let (structure, _) = self.geometry.area(write.offset / BLOCK);
        let mut part = Part::new(structure, cause_of(structure));
        if structure != Structure::Checkpoint {
            self.files.add(write, part, rows);
            return;
        }
        let mut done = 0;
        while done < write.length {
            let length = (BLOCK - (write.offset + done) % BLOCK).min(write.length - done);
            let piece = write.part(done, length);
            let ends = self.checkpoints.block(piece.offset / BLOCK, piece.content);
            part.transaction = self.checkpoints.being_written();
            self.files.add(&piece, part, rows);
            if ends {
                self.files.commit(PATIENCE, rows);
            }
            done += length;
        }
    }

    /// The node in a block of the main area, if it is one.
    fn node<'b>(&self, write: &Write<'b>, block: u64) -> Option<Node<'b>> {
        let segment = self.geometry.segment(block);
        if self.checkpoints.is_data(segment) {
            return None;
        }
        let node = Node::parse(write.content)?;
        let is_new = self.checkpoints.is_now(node.version) || write.formatting;
        (is_new || self.checkpoints.is_node(segment)).then_some(node)
    }

    fn add_node(
        &mut self,
        write: &Write<'_>,
        node: &Node<'_>,
        now: &mut Now<'_, '_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let version = node.fingerprints(self.geometry.flexible);
        let generation = node.generation();
        let before = self.versions.insert(node.number, (generation, version));
        let before = before.filter(|before| before.0 == generation);
        let part = Part {
            causes: match before {
                None if node.is_inode() && node.has_data() => {
                    Causes::one(Cause::NewInode).with(Cause::Data)
                }
                None if node.is_inode() => Causes::one(Cause::NewInode),
                None => Causes::one(Cause::SizeOrMap),
                Some((_, before)) => version.causes(&before),
            },
            inode: u64::from(node.inode),
            ..Part::new(Structure::Node, Cause::Unknown)
        };
        if node.is_inode() {
            if before.is_none() {
                self.files.forget(part.inode, rows);
            }
            self.give_name(node, rows);
            self.inode(node);
        }
        self.files.add(write, part, rows);
        let structure = self.kinds.get(&node.inode).copied();
        let owner = Owner {
            inode: u64::from(node.inode),
            structure: structure.unwrap_or(Structure::FileData),
        };
        if owner.structure == Structure::Directory {
            self.read_names(node, now)?;
        }
        for (first, count) in runs(node.addresses(self.geometry.flexible)) {
            let (from, to) = (
                first.max(self.geometry.main),
                (first + count).min(self.geometry.end),
            );
            if from < to {
                self.files
                    .own(from * BLOCK, (to - from) * BLOCK, owner, rows);
            }
        }
        Ok(())
    }

    /// An fsync makes the name durable that a new inode was made with. After a rename it may be
    /// of before; the next checkpoint tells.
    fn give_name(&mut self, node: &Node<'_>, rows: &mut Rows) {
        let (directory, name) = node.name();
        if !node.is_named_by_fsync() || name.is_empty() {
            return;
        }
        let inode = u64::from(node.inode);
        self.files.rename(GIVEN, directory, &[], &[(name, inode)]);
        self.given.insert(inode, (directory, name.into()));
        self.files.settle(rows);
    }

    /// The names in a directory's blocks that are at other places than before.
    fn read_names(&mut self, node: &Node<'_>, now: &mut Now<'_, '_>) -> Result<()> {
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

    /// A place in a directory holds these names from now on.
    fn name_at(&mut self, place: (u64, u64), inode: u32, entries: &[Entry<'_>]) {
        let directory = u64::from(inode);
        for &(name, child) in entries {
            let given = self.given.remove(&child);
            if let Some((of, given)) =
                given.filter(|(of, given)| (*of, &**given) != (directory, name))
            {
                self.files.rename(GIVEN, of, &[(&given, child)], &[]);
            }
        }
        self.files.name_at(place, directory, entries);
    }

    /// What an inode's blocks are, and the names in it.
    fn inode(&mut self, node: &Node<'_>) {
        let structure = match node.kind() {
            Kind::Directory => Structure::Directory,
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

    /// Blocks of data. Names of directories count when a node says where they are.
    fn data(&mut self, write: &Write<'_>, rows: &mut Rows) {
        self.files.add_owned(write, rows);
    }
}
