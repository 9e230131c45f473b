//! The file system's metadata as of now: who uses each block, what each inode is called, the newest
//! version of each block.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    change::Change,
    inode::Inode,
    layout::{self, Groups},
    map::{self, Claim},
    names::Names,
    ownership::Trust,
    renames::Name,
    rounds::{Round, Rounds},
    space::{Kind, Mapper, Run, Space, Use},
    superblock::Superblock,
};
use crate::bytes::part;
use crate::hash::{HashMap, HashSet};
use crate::{Causes, Disks, Structure};
use fscost_recording::Result;

/// Blocks that may be read from the disk because an inode or node claims them, for each block that
/// was written: no content can make a
/// write cost more.
const READS_PER_BLOCK: u64 = 64;
const READS_AT_LEAST: u64 = 4096;

/// What a written block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// What it holds.
    pub structure: Structure,
    /// What is different from the version before.
    pub causes: Causes,
    /// The owner, or the only inode of a table's block that changed; else 0.
    pub inode: u32,
}

/// What follows from new versions of metadata.
#[derive(Debug, Default)]
pub struct Applied {
    /// For each block, in their order.
    explanations: Vec<(u64, Explanation)>,
    /// Blocks that are no longer mapped.
    pub released: Vec<Released>,
    /// Blocks that are mapped since: first block, blocks.
    pub claimed: Vec<(u64, u64)>,
    /// Inodes that may have blocks whose slots were among the blocks, and nodes that were.
    pub mappers: Vec<Mapper>,
    /// Inodes that are other files than before.
    pub remade: HashSet<u32>,
    /// The newest versions of blocks that were released: their places may hold older ones yet.
    pub(super) forgotten: HashMap<u64, Arc<[u8]>>,
}

/// Blocks that an inode no longer maps.
#[derive(Debug, Clone, Copy)]
pub struct Released {
    /// The first block.
    pub start: u64,
    /// Blocks.
    pub length: u64,
    /// The inode.
    pub inode: u32,
    /// The last round in which they were known to be its own.
    pub(super) known: Round,
}

impl Applied {
    /// What a block is, if it was among them.
    pub fn explanation(&self, block: u64) -> Option<Explanation> {
        let found = self.explanations.binary_search_by_key(&block, |e| e.0);
        Some(self.explanations.get(found.ok()?)?.1)
    }
}

/// The file system.
#[derive(Debug)]
pub struct State {
    /// Its shape.
    pub superblock: Superblock,
    /// Who uses each block.
    pub space: Space,
    /// What the inodes are called.
    pub names: Names,
    disk: u16,
    groups: Groups,
    /// Where primary group descriptors lie: the block, its number among them.
    descriptors: HashMap<u64, u64>,
    pub(super) versions: BTreeMap<u64, Arc<[u8]>>,
    /// Directories with a hash tree.
    pub(super) indexed: HashSet<u32>,
    pub(super) reads_left: u64,
    /// Inodes that map a block of attributes, besides the one that it is told to be of.
    pub(super) sharers: HashMap<u64, Vec<u32>>,
    /// Directories and nodes that were mapped before what they hold was written.
    pub(super) unread: BTreeSet<u64>,
    /// Without a journal: blocks that look like names or a node, written while nobody was known to
    /// map them, and the round.
    pub(super) unmapped: BTreeMap<u64, Round>,
    /// Without a journal.
    pub(super) rounds: Rounds,
    /// Without a journal: the round in which an inode in use or a node was last written.
    pub(super) written: HashMap<Mapper, Round>,
    /// Names that the blocks being applied hold, and did not.
    pub(super) come: Vec<Name>,
    /// Names that they no longer hold.
    pub(super) gone: Vec<Name>,
}

/// New versions of blocks, all at once.
pub type Blocks<'a> = BTreeMap<u64, &'a [u8]>;

impl State {
    /// Of which nothing is known but its shape.
    pub fn new(superblock: Superblock, disk: u16) -> State {
        State {
            superblock,
            space: Space::default(),
            names: Names::default(),
            disk,
            groups: Groups::default(),
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

    /// From what the disk holds: all metadata that mkfs made. `written` are the blocks that it
    /// wrote: first, how many. Inodes in all others are
    /// zeros.
    pub fn load(
        superblock: Superblock,
        disk: u16,
        written: impl Iterator<Item = (u64, u64)>,
        disks: &mut Disks<'_>,
    ) -> Result<State> {
        let mut state = State::new(superblock, disk);
        state.place();
        for number in 0..state.superblock.descriptor_blocks() {
            let block = layout::descriptor_block(&state.superblock, number);
            let content = state.read(block, disks)?;
            let State {
                groups,
                space,
                superblock,
                ..
            } = &mut state;
            groups.update(space, superblock, number, &content);
            state.versions.insert(block, content.into());
        }
        let is_inodes =
            |run: &Run| matches!(run.used, Some(u) if u.kind == Kind::Fixed(Structure::InodeTable));
        let runs = written.flat_map(|(first, count)| state.space.runs(first, count));
        let tables: BTreeSet<u64> = runs
            .filter(is_inodes)
            .flat_map(|run| run.start..run.start + run.length)
            .collect();
        for block in tables {
            let content = state.read(block, disks)?;
            if content.iter().any(|&byte| byte != 0) {
                let blocks = Blocks::from([(block, content.as_slice())]);
                state.apply_to(&blocks, true, Trust::All, disks)?;
            }
        }
        Ok(state)
    }

    fn place(&mut self) {
        layout::place_superblocks(&mut self.space, &self.superblock);
        self.descriptors = (0..self.superblock.descriptor_blocks())
            .map(|number| (layout::descriptor_block(&self.superblock, number), number))
            .collect();
    }

    /// Where a block begins on the disk, in bytes.
    pub fn offset_of(&self, block: u64) -> u64 {
        block.saturating_mul(u64::from(self.superblock.block_bytes))
    }

    pub(super) fn read(&self, block: u64, disks: &mut Disks<'_>) -> Result<Vec<u8>> {
        let mut content = vec![0; self.superblock.block_bytes as usize];
        disks.read(self.disk, self.offset_of(block), &mut content)?;
        Ok(content)
    }

    /// The version of a block before what is being applied.
    pub fn before(&self, block: u64, disks: &mut Disks<'_>) -> Result<Arc<[u8]>> {
        match self.versions.get(&block) {
            Some(version) => Ok(Arc::clone(version)),
            None => Ok(self.read(block, disks)?.into()),
        }
    }

    /// The blocks among these of which a version is known.
    pub fn known(&self, start: u64, end: u64) -> Vec<u64> {
        self.versions.range(start..end).map(|(&b, _)| b).collect()
    }

    /// Whether this is the version that is known.
    pub fn is_newest(&self, block: u64, content: &[u8]) -> bool {
        self.versions.get(&block).is_some_and(|v| **v == *content)
    }

    /// New versions of some blocks take effect together.
    pub fn apply(
        &mut self,
        blocks: &Blocks<'_>,
        trust: Trust,
        disks: &mut Disks<'_>,
    ) -> Result<Applied> {
        self.apply_to(blocks, false, trust, disks)
    }

    pub(super) fn allow_reads(&mut self, blocks: usize) {
        self.reads_left = READS_AT_LEAST + READS_PER_BLOCK * blocks as u64;
    }

    fn apply_to(
        &mut self,
        blocks: &Blocks<'_>,
        from_nothing: bool,
        trust: Trust,
        disks: &mut Disks<'_>,
    ) -> Result<Applied> {
        self.allow_reads(blocks.len());
        self.reshape(blocks);
        let mut applied = Applied::default();
        let (mut of_inodes, mut of_nodes) = (Change::default(), Change::default());
        let mut found = Vec::with_capacity(blocks.len());
        for (&block, &new) in blocks {
            let mut explanation = None;
            match self.space.get(block) {
                Some(used) if used.kind == Kind::Fixed(Structure::InodeTable) => {
                    let old = if from_nothing {
                        Arc::default()
                    } else {
                        self.before(block, disks)?
                    };
                    explanation = Some(self.inode_table(
                        block,
                        used,
                        &old,
                        new,
                        &mut of_inodes,
                        &mut applied,
                    ));
                }
                Some(Use { kind, inode, .. }) if kind.is_node() => {
                    let old = if self.unread.contains(&block) {
                        Arc::default()
                    } else {
                        self.before(block, disks)?
                    };
                    let old_claims = map::of_node(kind, &old, &self.superblock);
                    let new_claims = map::of_node(kind, new, &self.superblock);
                    let mapper = Mapper { inode, node: block };
                    of_nodes.differ(mapper, old_claims, new_claims);
                    applied.mappers.push(mapper);
                }
                _ => {}
            }
            found.push(explanation);
        }
        // Claims are taken from the end: a node that an inode has lost to another speaks first.
        let change = of_inodes.and(of_nodes);
        for (mapper, claim) in change.gone {
            self.release(mapper, claim, &mut applied, disks)?;
        }
        let visited = self.claim(change.come, blocks, trust, &mut applied, disks)?;
        for ((&block, &new), known) in blocks.iter().zip(found) {
            let was_read = visited.contains(&block);
            let explanation = match known {
                Some(explanation) => explanation,
                None => self.explain(block, new, was_read, disks)?,
            };
            applied.explanations.push((block, explanation));
            if !was_read && self.keeps(block, explanation, trust) {
                self.versions.insert(block, new.into());
            }
        }
        self.name();
        if trust == Trust::All {
            // A transaction has an inode's name with it, unless the directory says what it said: a
            // file made anew in the place of one removed.
            self.names.settle();
        }
        Ok(applied)
    }

    /// Without a journal: these were written.
    pub fn written(&mut self, mappers: &[Mapper]) {
        if !mappers.is_empty() {
            self.rounds.metadata();
        }
        for &mapper in mappers {
            let used = self.space.get(mapper.node);
            if mapper.node == 0 || used.is_some_and(|used| used.inode == mapper.inode) {
                self.written.insert(mapper, self.rounds.now());
            }
        }
    }

    /// Without a journal what nobody maps yet is on the disk, and may be written again unnoticed.
    fn keeps(&self, block: u64, explanation: Explanation, trust: Trust) -> bool {
        match self.space.get(block) {
            Some(used) => used.kind.is_metadata(),
            None => trust == Trust::All && explanation.structure != Structure::FileData,
        }
    }

    /// The superblock or group descriptors may say that the file system has grown.
    fn reshape(&mut self, blocks: &Blocks<'_>) {
        let bytes = u64::from(self.superblock.block_bytes);
        if let Some(block) = blocks.get(&self.superblock.primary_block()) {
            let from = (super::superblock::AT % bytes) as usize;
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
                self.groups
                    .update(&mut self.space, &self.superblock, number, content);
            }
        }
    }

    /// Where the blocks of an inode's content lie: first block, blocks, number of the first in the
    /// file.
    pub fn places_of(&self, inode: u32, disks: &mut Disks<'_>) -> Result<Vec<(u64, u64, u32)>> {
        let index = inode.saturating_sub(1);
        let group = (index / self.superblock.inodes_per_group) as usize;
        let table = self.groups.iter().nth(group).map_or(0, |g| g.inode_table);
        let size = self.superblock.inode_bytes as usize;
        let at = (index % self.superblock.inodes_per_group) as usize * size;
        let bytes = self.superblock.block_bytes as usize;
        let content = self.before(table.saturating_add((at / bytes) as u64), disks)?;
        let slot = Inode(part(&content, at % bytes, at % bytes + size));
        let mut stack: Vec<(Claim, u64)> = map::of_inode(slot, inode, &self.superblock)
            .into_iter()
            .map(|c| (c, 0))
            .collect();
        let (mut places, mut visited) = (Vec::new(), HashSet::default());
        while let Some((claim, base)) = stack.pop() {
            let first = base.saturating_add(claim.first);
            match claim.kind {
                Kind::Content(_) => places.push((
                    claim.start,
                    claim.length,
                    u32::try_from(first).unwrap_or(u32::MAX),
                )),
                Kind::Xattr => {}
                kind if visited.insert(claim.start) => {
                    let base = if matches!(kind, Kind::Pointers(..)) {
                        first
                    } else {
                        0
                    };
                    let node = self.before(claim.start, disks)?;
                    stack.extend(
                        map::of_node(kind, &node, &self.superblock)
                            .into_iter()
                            .map(|c| (c, base)),
                    );
                }
                _ => {}
            }
        }
        places.sort_unstable();
        Ok(places)
    }
}

/// Of an ext2 of 8 MiB with blocks of 1 KiB, for tests.
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
