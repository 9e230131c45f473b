//! Current metadata of the file system: the use of each block, the names of each inode, and the
//! newest version of each block.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use super::{
    blocks::{Area, Kind, Mapper, Space, Use},
    change::Change,
    groups::fix,
    inode::Inode,
    layout::{self, Group},
    map::{self, Claim},
    names::Names,
    ownership::Trust,
    renames::Name,
    rounds::{Round, Rounds},
    superblock::Superblock,
};
use crate::bytes::{is_zero, part};
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
    descriptors: HashMap<u64, u64>,
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

    /// Loads all metadata that mkfs created from the disk. `written` lists the blocks that mkfs
    /// wrote. Inodes in all other blocks are zeros.
    pub fn load(
        superblock: Superblock,
        disk: u16,
        written: Vec<Range<u64>>,
        disks: &mut Disks<'_>,
    ) -> Result<State> {
        let mut state = State::new(superblock, disk);
        state.place();
        for number in 0..state.superblock.descriptor_blocks() {
            let block = layout::descriptor_block(&state.superblock, number);
            let content = state.read(block, disks)?;
            state.read_descriptors(number, &content);
            state.versions.insert(block, content.into());
        }
        let is_table = |&block: &u64| {
            let used = state.space.get(block);
            used.is_some_and(|used| used.kind == Kind::Fixed(Area::InodeTable))
        };
        let tables: BTreeSet<u64> = written.into_iter().flatten().filter(is_table).collect();
        for block in tables {
            let content = state.read(block, disks)?;
            if !is_zero(&content) {
                // All inodes are new.
                state.versions.insert(block, Arc::default());
                let blocks = Blocks::from([(block, content.as_slice())]);
                state.apply(&blocks, Trust::All, disks)?;
            }
        }
        Ok(state)
    }

    fn place(&mut self) {
        let space = &mut self.space;
        layout::places(&self.superblock, |place| fix(space, &place));
        self.descriptors = (0..self.superblock.descriptor_blocks())
            .map(|number| (layout::descriptor_block(&self.superblock, number), number))
            .collect();
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

    /// Applies new versions of several blocks together.
    pub fn apply(
        &mut self,
        blocks: &Blocks<'_>,
        trust: Trust,
        disks: &mut Disks<'_>,
    ) -> Result<Applied> {
        self.allow_reads(blocks.len());
        self.reshape(blocks);
        let mut update = Update::new(blocks, trust, disks);
        let mut of_nodes = Change::default();
        let mut found = Vec::with_capacity(blocks.len());
        for (&block, &new) in blocks {
            found.push(match self.space.get(block) {
                Some(used) if used.kind == Kind::Fixed(Area::InodeTable) => {
                    Some(self.inode_table(block, used, new, &mut update)?)
                }
                Some(Use { kind, inode, .. }) if kind.is_node() => {
                    let old = match self.unread.contains(&block) {
                        true => Arc::default(),
                        false => self.before(block, update.disks)?,
                    };
                    let old_claims = map::of_node(kind, &old, &self.superblock);
                    let new_claims = map::of_node(kind, new, &self.superblock);
                    let mapper = Mapper { inode, node: block };
                    of_nodes.differ(mapper, old_claims, new_claims);
                    update.applied.mappers.push(mapper);
                    None
                }
                _ => None,
            });
        }
        // Claims are processed from the last: a node that moved to another inode comes first.
        let change = std::mem::take(&mut update.of_inodes).and(of_nodes);
        for (mapper, claim) in change.gone {
            self.release(mapper, claim, &mut update)?;
        }
        let visited = self.claim(change.come, &mut update)?;
        for ((&block, &new), known) in blocks.iter().zip(found) {
            let was_read = visited.contains(&block);
            let explanation = match known {
                Some(explanation) => explanation,
                None => self.explain(block, new, was_read, update.disks)?,
            };
            update.applied.explanations.insert(block, explanation);
            if !was_read && self.keeps(block, explanation, trust) {
                self.versions.insert(block, new.into());
            }
        }
        self.name();
        if trust == Trust::All {
            // A transaction contains the name of each new inode, unless the directory block did
            // not change: a file was deleted and created again under its old name and inode.
            self.names.settle();
        }
        Ok(update.applied)
    }

    /// Records the round in which these mappers were written. Called only without a journal.
    pub fn written(&mut self, mappers: &[Mapper]) {
        if !mappers.is_empty() {
            self.rounds.metadata();
        }
        for &mapper in mappers {
            let used = self.space.get(mapper.node);
            if mapper.node == 0 || used.is_some_and(|used| used.inode == mapper.inode) {
                self.written.insert(mapper, self.rounds.now);
            }
        }
    }

    /// Returns whether to keep the new version of a block. Without a journal, a block that is not
    /// mapped yet is not kept: it is on the disk and may be rewritten unnoticed.
    fn keeps(&self, block: u64, explanation: Explanation, trust: Trust) -> bool {
        match self.space.get(block) {
            Some(used) => used.kind.is_metadata(),
            None => trust == Trust::All && explanation.structure != Structure::FileData,
        }
    }

    /// Updates the layout, because the superblock or the group descriptors may show that the file
    /// system has grown.
    fn reshape(&mut self, blocks: &Blocks<'_>) {
        if let Some(block) = blocks.get(&self.superblock.primary_block()) {
            let from = (super::superblock::AT % self.block_bytes()) as usize;
            let bytes = part(block, from, from + super::superblock::BYTES);
            let new = Superblock::parse(bytes);
            if let Some(new) = new.filter(|new| new.may_follow(&self.superblock)) {
                let grown = new.blocks != self.superblock.blocks;
                self.superblock = new;
                if grown {
                    self.place();
                }
            }
        }
        for (block, content) in blocks {
            if let Some(&number) = self.descriptors.get(block) {
                self.read_descriptors(number, content);
            }
        }
    }

    /// Returns the runs of blocks that hold an inode's content: first block, number of blocks,
    /// number of the first block in the file.
    pub fn places_of(&self, inode: u32, disks: &mut Disks<'_>) -> Result<Vec<(u64, u64, u32)>> {
        let index = inode.saturating_sub(1);
        let group = (index / self.superblock.inodes_per_group) as usize;
        let table = self.groups.get(group).map_or(0, |g| g.inode_table);
        let size = self.superblock.inode_bytes as usize;
        let at = (index % self.superblock.inodes_per_group) as usize * size;
        let bytes = self.superblock.block_bytes as usize;
        let content = self.before(table.saturating_add((at / bytes) as u64), disks)?;
        let slot = Inode(part(&content, at % bytes, at % bytes + size));
        let claims = map::of_inode(slot, inode, &self.superblock).into_iter();
        let mut stack: Vec<(Claim, u64)> = claims.map(|claim| (claim, 0)).collect();
        let (mut places, mut visited) = (Vec::new(), HashSet::default());
        while let Some((claim, base)) = stack.pop() {
            let first = base.saturating_add(claim.first);
            if let Kind::Content(_) = claim.kind {
                let position = u32::try_from(first).unwrap_or(u32::MAX);
                places.push((claim.start, claim.length, position));
            } else if claim.kind.is_node() && visited.insert(claim.start) {
                let base = match claim.kind {
                    Kind::Pointers(..) => first,
                    _ => 0,
                };
                let node = self.before(claim.start, disks)?;
                let below = map::of_node(claim.kind, &node, &self.superblock).into_iter();
                stack.extend(below.map(|claim| (claim, base)));
            }
        }
        places.sort_unstable();
        Ok(places)
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
