//! reiserfs (fs/reiserfs/reiserfs.h): a single tree, and a journal of whole blocks. The leaves of
//! the tree hold everything except the data blocks that they point to.

mod causes;
mod journal;
mod metadata;

use crate::bytes::le16;
use crate::disks::read_bytes;
use crate::track::files::{Files, Owner, Part, cause_of, runs};
use crate::track::follower::{Follower, log_disk};
use crate::track::names::Entry;
use crate::{Cause, Causes, Family, FormattedDisks, Now, Rows, Structure, Write};
use fscost_ondisk::reiserfs as leaf;
use fscost_ondisk::reiserfs::journal as format;
use fscost_ondisk::reiserfs::superblock::{self, Geometry};
use fscost_recording::{Image, Result};
use journal::Journal;
use std::collections::{BTreeMap, HashMap, HashSet};

const ROOT: u64 = 2;
const LEAF: u16 = 1;
/// `MAX_HEIGHT`
const DEEPEST: u16 = 7;
/// Number of transactions for which rows of data wait for metadata that names their owner.
const PATIENCE: u32 = 4;

/// Returns the family that follows `disk` if the disk holds a reiserfs file system. `image` is the
/// disk as mkfs left it.
pub fn detect(
    formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let superblock = read_bytes::<{ superblock::BYTES }>(image, superblock::AT)?;
    let geometry = superblock.and_then(|bytes| Geometry::parse(&bytes, image.size_bytes()));
    let Some(geometry) = geometry else {
        return Ok(None);
    };
    let journal_disk = match geometry.journal_magic {
        0 => Some(disk),
        magic => log_disk(formatted, disk, |image| is_journal(image, &geometry, magic))?,
    };
    Ok(Some(Box::new(Reiserfs::new(disk, journal_disk, geometry))))
}

/// Returns the structure of a block at a fixed place.
fn area(geometry: &Geometry, block: u64) -> Option<Structure> {
    let superblock = superblock::AT / geometry.block_bytes;
    let per_bitmap = geometry.block_bytes * 8;
    match block {
        _ if block < superblock => Some(Structure::Unused),
        _ if block == superblock => Some(Structure::Superblock),
        // The first bitmap follows the superblock; each other one is at the start of the range that
        // it maps.
        _ if block == superblock + 1 || block.is_multiple_of(per_bitmap) => {
            Some(Structure::BlockBitmap)
        }
        _ => None,
    }
}

/// Returns whether the image has a journal header with this magic number.
fn is_journal(image: &mut Image<'_>, geometry: &Geometry, magic: u32) -> Result<bool> {
    let header = geometry.journal_header() * geometry.block_bytes;
    let bytes = read_bytes::<{ format::HEADER_BYTES }>(image, header)?;
    Ok(bytes.is_some_and(|bytes| format::has_magic(&bytes, magic)))
}

struct Reiserfs {
    disk: u16,
    journal_disk: Option<u16>,
    geometry: Geometry,
    journal: Journal,
    files: Files,
    leaves: causes::Leaves,
    /// Inodes in each leaf.
    leaf_inodes: HashMap<u64, Vec<u64>>,
    /// Generation of each inode, and the leaf that holds it.
    inodes: HashMap<u64, (u32, u64)>,
    /// Inodes that were removed from their leaf in the transaction being read.
    gone: HashSet<u64>,
    /// Each block of the bitmap as the journal last had it.
    bitmaps: HashMap<u64, Vec<u8>>,
    /// Leaves that the bitmap says are free, in the transaction being read.
    freed: Vec<u64>,
    /// Causes of the journal copies of each node since it was last written home. They are also
    /// causes of its next write home.
    copied: HashMap<u64, Causes>,
}

impl Follower for Reiserfs {
    const IS_ATOMIC: bool = true;

    fn name(&self) -> &'static str {
        "reiserfs"
    }

    fn owns(&self, disk: u16) -> bool {
        disk == self.disk || Some(disk) == self.journal_disk
    }

    fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    fn follow(&mut self, now: &mut Now<'_, '_>) -> Result<()> {
        let bytes = self.geometry.block_bytes;
        let mut rest = *now.write;
        while rest.length > 0 {
            let block = rest.offset / bytes;
            let in_journal = Some(rest.disk) == self.journal_disk && self.journal.has(block);
            let area = match rest.disk == self.disk {
                true => area(&self.geometry, block),
                false => Some(Structure::Unused),
            };
            // A write-zeroes request may be as long as the disk, and has nothing to read.
            let length = match rest.content.is_empty() && !in_journal && area.is_none() {
                true => rest.length,
                false => (bytes - rest.offset % bytes).min(rest.length),
            };
            let piece = rest.take_front(length);
            match area {
                _ if in_journal => self.journal(&piece, block, now)?,
                Some(structure) => {
                    let part = Part::new(structure, cause_of(structure));
                    self.files.add(&piece, part, now.rows);
                }
                None => self.home(&piece, now.rows),
            }
        }
        Ok(())
    }
}

impl Reiserfs {
    fn new(disk: u16, journal_disk: Option<u16>, geometry: Geometry) -> Reiserfs {
        Reiserfs {
            disk,
            journal_disk,
            journal: Journal::new(
                geometry.block_bytes,
                geometry.journal_at,
                geometry.journal_blocks,
            ),
            files: Files::new(ROOT, Structure::Unknown),
            leaves: causes::Leaves::default(),
            leaf_inodes: HashMap::new(),
            inodes: HashMap::new(),
            gone: HashSet::new(),
            bitmaps: HashMap::new(),
            freed: Vec::new(),
            copied: HashMap::new(),
            geometry,
        }
    }

    /// Explains a block of the journal.
    fn journal(&mut self, write: &Write<'_>, block: u64, now: &mut Now<'_, '_>) -> Result<()> {
        let (structure, transaction, home) = self.journal.block(block, write.content);
        let part = Part {
            transaction,
            ..Part::new(structure, Cause::Log)
        };
        let number = self.files.add(write, part, now.rows);
        match (structure, home) {
            (_, Some(home)) => self.copy(number, home, write.content, now.rows),
            (Structure::Log, _) => self.journal.wait(block, number),
            (Structure::JournalDescriptor, _) => {
                let bytes = self.geometry.block_bytes;
                let mut content = vec![0; bytes as usize];
                for (block, number, (structure, transaction, home)) in self.journal.take_early() {
                    if let Some(row) = now.rows.get_mut(number) {
                        (row.structure, row.transaction) = (structure, transaction);
                    }
                    if let Some(home) = home {
                        now.read(block * bytes, &mut content)?;
                        self.copy(number, home, &content, now.rows);
                    }
                }
            }
            (Structure::JournalCommit, _) => {
                self.forget_freed(now.rows);
                for inode in std::mem::take(&mut self.gone) {
                    self.inodes.remove(&inode);
                    self.files.forget(inode, now.rows);
                }
                self.files.commit(PATIENCE, now.rows);
            }
            _ => {}
        }
        Ok(())
    }

    /// Explains a journal copy, which is newer than the block at home.
    fn copy(&mut self, number: usize, home: u64, content: &[u8], rows: &mut Rows) {
        let (what, causes) = match area(&self.geometry, home) {
            Some(structure) => {
                if structure == Structure::BlockBitmap {
                    self.bitmap(home, content);
                }
                (structure, Causes::one(cause_of(structure)))
            }
            None => {
                let causes = self.node(home, content, rows);
                let causes = causes.unwrap_or(Causes::one(Cause::Accounting));
                let copied = self.copied.entry(home).or_default();
                *copied = copied.and(causes);
                (Structure::FsTree, causes)
            }
        };
        if let Some(row) = rows.get_mut(number) {
            if row.causes != Causes::one(Cause::Format) {
                row.causes = causes.with(Cause::Log);
            }
            row.home = Some(what);
            row.home_offset = Some(home * self.geometry.block_bytes);
        }
    }

    /// Explains a block outside the fixed places: a node of the tree, or data.
    fn home(&mut self, write: &Write<'_>, rows: &mut Rows) {
        let block = write.offset / self.geometry.block_bytes;
        let (owner, _) = self.files.owner(write.offset, 1);
        let is_tree = |owner: Owner| owner.structure == Structure::FsTree;
        // Data may look like a node, but a block owned by an inode is not one.
        let may_be_node = owner.is_none_or(is_tree) && !write.content.is_empty();
        self.files.confirm(write.offset, write.length, rows);
        let node = match may_be_node {
            true => self.node(block, write.content, rows),
            false => None,
        };
        match node {
            Some(causes) => {
                let causes = match (self.copied.remove(&block), causes.only()) {
                    (Some(copied), Some(Cause::Unchanged)) => copied,
                    (copied, _) => causes.and(copied.unwrap_or_default()),
                };
                let part = Part {
                    structure: Structure::FsTree,
                    causes,
                    ..Part::default()
                };
                self.files.add_waiting(write, part, rows);
            }
            None => self.files.add_owned(write, rows),
        }
    }
}
