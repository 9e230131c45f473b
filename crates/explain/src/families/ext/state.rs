//! Current metadata of the file system (the use of each block, the names of each inode, and the
//! newest version of each block), and the update that is being applied to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use super::{
    blocks::{Mapper, Space},
    change::Change,
    directory::Entry,
    layout::Group,
    moved::Moves,
    names::Names,
    rounds::{Round, Rounds},
    superblock::Superblock,
};
use crate::hash::{HashMap, HashSet};
use crate::{Causes, Disks, Structure};
use fscost_recording::Result;

/// Maximum number of blocks read from the disk because an inode or node claims them, for each
/// written block. The limit bounds the cost of a write, whatever its content.
const READS_PER_BLOCK: u64 = 64;
const READS_AT_LEAST: u64 = 4096;

/// Explanation of a written block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// Structure of its content.
    pub structure: Structure,
    /// Differences from the previous version.
    pub causes: Causes,
    /// Owner, or the only inode that changed in an inode table block; otherwise 0.
    pub inode: u32,
}

/// Effects of new versions of metadata.
#[derive(Debug, Default)]
pub struct Applied {
    /// Explanation of each block.
    pub explanations: BTreeMap<u64, Explanation>,
    /// Blocks that are no longer mapped.
    pub released: Vec<Released>,
    /// Newly mapped blocks: first block, number of blocks.
    pub claimed: Vec<(u64, u64)>,
    /// Mappers in the applied blocks: inodes that may map blocks, and nodes.
    pub mappers: Vec<Mapper>,
    /// Data that may have moved.
    pub(super) moves: Moves,
    /// Inodes that were reused by other files.
    pub remade: HashSet<u32>,
    /// Newest versions of released blocks; the disk may still hold older versions.
    pub(super) forgotten: HashMap<u64, Arc<[u8]>>,
}

/// Blocks that an inode no longer maps.
#[derive(Debug, Clone, Copy)]
pub struct Released {
    /// The first block.
    pub start: u64,
    /// Number of blocks.
    pub length: u64,
    /// Inode that mapped the blocks.
    pub inode: u32,
    /// Last round in which the blocks were known to belong to the inode.
    pub(super) known: Round,
}

/// Metadata of a file system.
#[derive(Debug)]
pub struct State {
    /// Superblock, which defines the layout.
    pub superblock: Superblock,
    /// Use of each block.
    pub space: Space,
    /// Names of the inodes.
    pub names: Names,
    /// Disk of the file system.
    pub disk: u16,
    /// Known groups, from the blocks of their descriptors.
    pub(super) groups: Vec<Group>,
    /// Blocks of the primary group descriptors, each with its index among them.
    pub(super) descriptors: HashMap<u64, u64>,
    pub(super) versions: BTreeMap<u64, Arc<[u8]>>,
    /// Directories with a hash tree.
    pub(super) indexed: HashSet<u32>,
    pub(super) reads_left: u64,
    /// Inodes that share an attribute block, besides its recorded owner.
    pub(super) sharers: HashMap<u64, Vec<u32>>,
    /// Directory blocks and nodes that were mapped before their content was written.
    pub(super) unread: BTreeSet<u64>,
    /// Blocks that look like directory entries or a node and had no known mapper when they were
    /// written, with the round of the write. Used only without a journal.
    pub(super) unmapped: BTreeMap<u64, Round>,
    /// Logical time of writes. Used only without a journal.
    pub(super) rounds: Rounds,
    /// Round in which each inode in use or node was last written. Used only without a journal.
    pub(super) written: HashMap<Mapper, Round>,
    /// Names added by the blocks that are being applied.
    pub(super) come: Vec<Name>,
    /// Names removed by the blocks that are being applied.
    pub(super) gone: Vec<Name>,
}

/// New versions of blocks that take effect together.
pub type Blocks<'a> = BTreeMap<u64, &'a [u8]>;

/// New versions that are being applied, and their effects so far.
pub(super) struct Update<'a, 'd> {
    pub(super) blocks: &'a Blocks<'a>,
    pub(super) trust: Trust,
    pub(super) disks: &'a mut Disks<'d>,
    /// Changes in the blocks that inodes map.
    pub(super) of_inodes: Change,
    pub(super) applied: Applied,
}

/// Set of mapped blocks whose content is known to match their mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// All blocks: a transaction contains everything that it changes.
    All,
    /// Blocks that are written together with their mapper. Without a journal, other blocks may be
    /// written later and hold their previous owner's content until then.
    Written,
}

/// A name that a directory has gained or lost.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) directory: u32,
    inode: u32,
    name: Box<[u8]>,
    is_directory: bool,
}

impl Name {
    pub(super) fn new(directory: u32, entry: &Entry<'_>) -> Name {
        Name {
            directory,
            inode: entry.inode,
            name: entry.name.into(),
            is_directory: entry.is_directory,
        }
    }

    pub(super) fn entry(&self) -> Entry<'_> {
        Entry {
            inode: self.inode,
            name: &self.name,
            is_directory: self.is_directory,
        }
    }
}

impl<'a, 'd> Update<'a, 'd> {
    pub(super) fn new(blocks: &'a Blocks<'a>, trust: Trust, disks: &'a mut Disks<'d>) -> Self {
        Update {
            blocks,
            trust,
            disks,
            of_inodes: Change::default(),
            applied: Applied::default(),
        }
    }
}

impl State {
    /// Creates the state of a file system of which only the layout is known.
    pub fn new(superblock: Superblock, disk: u16) -> State {
        State {
            superblock,
            space: Space::default(),
            names: Names::default(),
            disk,
            groups: Vec::new(),
            descriptors: HashMap::default(),
            versions: BTreeMap::new(),
            indexed: HashSet::default(),
            reads_left: 0,
            sharers: HashMap::default(),
            unread: BTreeSet::new(),
            unmapped: BTreeMap::new(),
            rounds: Rounds::default(),
            written: HashMap::default(),
            come: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Returns the size of a block in bytes.
    pub fn block_bytes(&self) -> u64 {
        self.superblock.block_bytes.into()
    }

    /// Returns the byte offset of a block on the disk.
    pub fn offset_of(&self, block: u64) -> u64 {
        block.saturating_mul(self.block_bytes())
    }

    pub(super) fn read(&self, block: u64, disks: &mut Disks<'_>) -> Result<Vec<u8>> {
        let mut content = vec![0; self.superblock.block_bytes as usize];
        disks.read(self.disk, self.offset_of(block), &mut content)?;
        Ok(content)
    }

    /// Returns the version of a block that precedes the one being applied.
    pub fn before(&self, block: u64, disks: &mut Disks<'_>) -> Result<Arc<[u8]>> {
        match self.versions.get(&block) {
            Some(version) => Ok(Arc::clone(version)),
            None => Ok(self.read(block, disks)?.into()),
        }
    }

    /// Returns those of these blocks that have a known version.
    pub fn known(&self, blocks: Range<u64>) -> Vec<u64> {
        self.versions.range(blocks).map(|(&b, _)| b).collect()
    }

    /// Returns whether this content is the newest known version of the block.
    pub fn is_newest(&self, block: u64, content: &[u8]) -> bool {
        self.versions.get(&block).is_some_and(|v| **v == *content)
    }

    pub(super) fn allow_reads(&mut self, blocks: usize) {
        self.reads_left = READS_AT_LEAST + READS_PER_BLOCK * blocks as u64;
    }
}

/// Creates the state of an 8 MiB ext2 with 1 KiB blocks, for tests.
#[cfg(test)]
pub(super) fn ext2() -> State {
    let mut bytes = [0; 1024];
    let fields = [
        (0, 2048),
        (4, 8192),
        (0x14, 1),
        (0x20, 8192),
        (0x28, 2048),
        (0x38, 0xEF53),
    ];
    for (at, value) in fields {
        bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
    }
    State::new(Superblock::parse(&bytes).expect("a superblock"), 0)
}
