//! reiserfs (fs/reiserfs/reiserfs.h): one tree, whose leaves hold everything but the blocks of data
//! that they point to, and a journal of whole blocks.

mod journal;
mod leaf;

use crate::bytes::{le16, le32};
use crate::track::files::{Files, Owner, Part};
use crate::track::follower::{Follower, log_disk};
use crate::track::names::Entry;
use crate::{Cause, Causes, Disks, Family, FormattedDisks, NO_INODE, Now, Rows, Structure, Write};
use fscost_recording::{Image, Result};
use journal::Journal;
use std::collections::{BTreeMap, HashMap, HashSet};

const SUPERBLOCK: u64 = 65536;
const ROOT: u64 = 2;
const LEAF: u16 = 1;
/// `MAX_HEIGHT`
const DEEPEST: u16 = 7;
/// How many transactions data waits for metadata that names its owner.
const PATIENCE: u32 = 4;

/// Sizes and places.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Geometry {
    block_bytes: u64,
    blocks: u64,
    journal_at: u64,
    journal_blocks: u64,
    /// A number that the journal's device begins with, too; 0 where it is no other.
    journal_magic: u32,
}

impl Geometry {
    fn parse(sb: &[u8], disk_bytes: u64) -> Option<Geometry> {
        let magic = sb.get(52..62)?;
        if !magic.starts_with(b"ReIsEr2Fs") && !magic.starts_with(b"ReIsEr3Fs") {
            return None;
        }
        let block_bytes = u64::from(le16(sb, 44));
        let blocks = u64::from(le32(sb, 0));
        let is_one =
            matches!(block_bytes, 1024 | 2048 | 4096 | 8192) && blocks * block_bytes <= disk_bytes;
        let is_elsewhere = le32(sb, 16) != 0;
        is_one.then(|| Geometry {
            block_bytes,
            blocks,
            journal_at: u64::from(le32(sb, 12)),
            // And the block with its header.
            journal_blocks: u64::from(le32(sb, 20)) + 1,
            journal_magic: if is_elsewhere { le32(sb, 28) } else { 0 },
        })
    }

    /// What is in a place that never changes.
    fn area(&self, block: u64) -> Option<Structure> {
        let superblock = SUPERBLOCK / self.block_bytes;
        let per_bitmap = self.block_bytes * 8;
        match block {
            _ if block < superblock => Some(Structure::Unused),
            _ if block == superblock => Some(Structure::Superblock),
            // One behind the superblock, the others at the begin of what they map.
            _ if block == superblock + 1 || block.is_multiple_of(per_bitmap) => {
                Some(Structure::BlockBitmap)
            }
            _ => None,
        }
    }
}

/// The family that follows `disk`, if it holds one. `image` is the disk as mkfs left it.
pub fn detect(
    formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let mut superblock = [0; 204];
    if image.size_bytes() < SUPERBLOCK + superblock.len() as u64 {
        return Ok(None);
    }
    image.read_at(SUPERBLOCK, &mut superblock)?;
    let Some(geometry) = Geometry::parse(&superblock, image.size_bytes()) else {
        return Ok(None);
    };
    let journal_disk = match geometry.journal_magic {
        0 => Some(disk),
        magic => log_disk(formatted, disk, |image| is_journal(image, &geometry, magic))?,
    };
    Ok(Some(Box::new(Reiserfs {
        disk,
        journal_disk,
        journal: Journal::new(
            geometry.block_bytes,
            geometry.journal_at,
            geometry.journal_blocks,
        ),
        files: Files::new(ROOT, Structure::Unknown),
        leaves: leaf::Leaves::default(),
        known: HashMap::new(),
        leaf_inodes: HashMap::new(),
        inodes: HashMap::new(),
        gone: HashSet::new(),
        copied: HashMap::new(),
        geometry,
    })))
}

/// Whether its journal's header has this number (`struct reiserfs_journal_header`, with its
/// parameters behind it).
fn is_journal(image: &mut Image<'_>, geometry: &Geometry, magic: u32) -> Result<bool> {
    let header = (geometry.journal_at + geometry.journal_blocks - 1) * geometry.block_bytes;
    let mut bytes = [0; 64];
    if header + 64 <= image.size_bytes() {
        image.read_at(header, &mut bytes)?;
    }
    Ok(bytes.chunks(4).any(|word| le32(word, 0) == magic))
}

/// Names of a leaf, by directory, and their inodes.
type Known = BTreeMap<u64, Vec<(Box<[u8]>, u64)>>;

struct Reiserfs {
    disk: u16,
    journal_disk: Option<u16>,
    geometry: Geometry,
    journal: Journal,
    files: Files,
    leaves: leaf::Leaves,
    /// What each leaf says of inodes and names.
    known: HashMap<u64, Known>,
    /// The inodes of each leaf.
    leaf_inodes: HashMap<u64, Vec<u64>>,
    /// By inode, the generation, and the leaf that says so.
    inodes: HashMap<u64, (u32, u64)>,
    /// Inodes that their leaf has no more, in the transaction that is being read.
    gone: HashSet<u64>,
    /// Why nodes were copied to the journal since they were written to their places: that is why
    /// they are, then.
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

    fn follow(&mut self, write: &Write<'_>, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        let bytes = self.geometry.block_bytes;
        let mut now = Now { write, disks };
        let mut done = 0;
        while done < write.length {
            let offset = write.offset + done;
            let block = offset / bytes;
            let rest = write.length - done;
            let in_journal = Some(write.disk) == self.journal_disk && self.journal.has(block);
            let is_fixed =
                write.disk != self.disk || in_journal || self.geometry.area(block).is_some();
            // A write-zeroes may be as long as the disk, and has nothing to read.
            let length = match write.content.is_empty() && !is_fixed {
                true => rest,
                false => (bytes - offset % bytes).min(rest),
            };
            let piece = write.part(done, length);
            done += length;
            if in_journal {
                self.journal(&piece, block, &mut now, rows)?;
            } else if write.disk != self.disk {
                self.files.add(
                    &piece,
                    Part::new(Structure::Unused, Cause::Accounting),
                    rows,
                );
            } else if let Some(structure) = self.geometry.area(block) {
                let cause = match structure {
                    Structure::BlockBitmap => Cause::Allocation,
                    _ => Cause::Accounting,
                };
                self.files.add(&piece, Part::new(structure, cause), rows);
            } else {
                self.home(&piece, rows);
            }
        }
        Ok(())
    }
}

impl Reiserfs {
    /// A block of the journal.
    fn journal(
        &mut self,
        write: &Write<'_>,
        block: u64,
        now: &mut Now<'_, '_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let (structure, transaction, home) = self.journal.block(block, write.content);
        let part = Part {
            transaction,
            ..Part::new(structure, Cause::Log)
        };
        let number = self.files.add(write, part, rows);
        match (structure, home) {
            (_, Some(home)) => self.copy(number, home, write.content, rows),
            (Structure::Log, _) => self.journal.wait(block, number),
            (Structure::JournalDescriptor, _) => {
                let bytes = self.geometry.block_bytes;
                let mut content = vec![0; bytes as usize];
                for (block, number, (structure, transaction, home)) in self.journal.take_early() {
                    if let Some(row) = rows.get_mut(number) {
                        (row.structure, row.transaction) = (structure, transaction);
                    }
                    if let Some(home) = home {
                        now.read(block * bytes, &mut content)?;
                        self.copy(number, home, &content, rows);
                    }
                }
            }
            (Structure::JournalCommit, _) => {
                for inode in std::mem::take(&mut self.gone) {
                    self.inodes.remove(&inode);
                    self.files.forget(inode, rows);
                }
                self.files.commit(PATIENCE, rows);
            }
            _ => {}
        }
        Ok(())
    }

    /// What a copy in the journal is of. It is newer than what is at home.
    fn copy(&mut self, number: usize, home: u64, content: &[u8], rows: &mut Rows) {
        let (what, causes) = match self.geometry.area(home) {
            Some(Structure::BlockBitmap) => {
                (Structure::BlockBitmap, Causes::one(Cause::Allocation))
            }
            Some(other) => (other, Causes::one(Cause::Accounting)),
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

    /// A block that is nothing of fixed place: a node of the tree, or data.
    fn home(&mut self, write: &Write<'_>, rows: &mut Rows) {
        let block = write.offset / self.geometry.block_bytes;
        let (owner, _) = self.files.owner(write.offset, 1);
        let is_tree = |owner: Owner| owner.structure == Structure::FsTree;
        // Data may look like a node: what an inode has is none.
        let may_be_node = owner.is_none_or(is_tree) && !write.content.is_empty();
        self.files.confirm(write.offset, write.length, rows);
        match may_be_node
            .then(|| self.node(block, write.content, rows))
            .flatten()
        {
            Some(causes) => {
                let causes = match (self.copied.remove(&block), causes.only()) {
                    (Some(copied), Some(Cause::Unchanged)) => copied,
                    (copied, _) => causes.and(copied.unwrap_or_default()),
                };
                let part = Part {
                    causes,
                    ..Part::new(Structure::FsTree, Cause::Unknown)
                };
                self.files.add_waiting(write, part, rows);
            }
            None => self.files.add_owned(write, rows),
        }
    }

    /// A node of the tree: whose blocks and names a leaf has. None where it cannot be one.
    fn node(&mut self, block: u64, content: &[u8], rows: &mut Rows) -> Option<Causes> {
        let level = le16(content, 0);
        if !(LEAF..=DEEPEST).contains(&level) || !leaf::is_node(content) {
            return None;
        }
        let bytes = self.geometry.block_bytes;
        let tree = Owner {
            inode: NO_INODE,
            structure: Structure::FsTree,
        };
        if block < self.geometry.blocks {
            self.files.own(block * bytes, bytes, tree, rows);
        }
        if level != LEAF {
            return Some(Causes::one(Cause::Accounting));
        }
        self.learn(block, content, rows);
        for item in leaf::items(content) {
            let inode = item.inode();
            // Of a file: a symlink's target is an item in whole (`reiserfs_symlink`).
            let structure = Structure::FileData;
            for (first, count) in item.blocks() {
                let to = first.saturating_add(count).min(self.geometry.blocks);
                let from = first.min(to);
                let owner = Owner { inode, structure };
                self.files
                    .own(from * bytes, (to - from) * bytes, owner, rows);
            }
        }
        Some(self.leaves.causes(block, content))
    }

    /// The inodes and names of a leaf. A name that moves to another leaf does so in one
    /// transaction.
    fn learn(&mut self, block: u64, content: &[u8], rows: &Rows) {
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
        let before = self.leaf_inodes.insert(block, inodes).unwrap_or_default();
        let kept = self.leaf_inodes.get(&block).map_or(&[][..], |kept| kept);
        let kept: HashSet<_> = kept.iter().collect();
        for inode in before.iter().filter(|inode| !kept.contains(inode)) {
            if self.inodes.get(inode).is_some_and(|&(_, at)| at == block) {
                self.gone.insert(*inode);
            }
        }
        let own = |(&directory, entries): (&u64, &Vec<Entry<'_>>)| {
            let entries = entries.iter();
            let entries = entries.map(|&(name, child)| (name.into(), child));
            (directory, entries.collect())
        };
        let before = self.known.insert(block, names.iter().map(own).collect());
        let mut before = before.unwrap_or_default();
        for directory in names.keys() {
            before.entry(*directory).or_default();
        }
        for (directory, before) in &before {
            let before: Vec<_> = before
                .iter()
                .map(|(name, child)| (&**name, *child))
                .collect();
            let after = names.get(directory).map_or(&[][..], |names| names);
            let place = (block, *directory);
            self.files.rename(place, *directory, &before, after);
        }
    }
}
