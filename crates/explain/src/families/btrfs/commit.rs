//! Writes since the last superblock, and their causes.

use super::block::{Block, Header};
use super::item::{is_fs_tree, tree};
use super::items::{Reasons, structure_of};
use super::metadata::Volume;
use super::paths::{Names, PathFinder};
use super::pending::{Logged, Pending};
use super::recovery::superblock;
use super::superblock::Super;
use crate::hash::{HashMap, HashSet};
use crate::{Cause, Causes, Disks, NO_INODE, PathId, Row, Rows, Structure};
use fscost_recording::Result;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Causes that follow from other changes.
const FOLLOWS: Causes = Causes::one(Cause::Accounting)
    .with(Cause::Allocation)
    .with(Cause::Unchanged);

/// Causes that change no item's size.
const TIMES: Causes = Causes::one(Cause::Atime).with(Cause::Times);

/// Maximum number of rows kept for a block. A transaction writes a block once for each of its
/// copies, but a recording may rewrite it without limit.
const MAX_ROWS_OF_BLOCK: usize = 64;

/// Appends a row. If there are too many, the oldest rows are dropped, and their cause stays
/// unknown.
fn push_bounded(rows: &mut Vec<usize>, row: usize) {
    if rows.len() >= MAX_ROWS_OF_BLOCK {
        rows.drain(..MAX_ROWS_OF_BLOCK / 2);
    }
    rows.push(row);
}

/// Returns the causes that are not consequences of others.
fn beyond_what_follows(causes: Causes) -> Causes {
    let own = causes.iter().filter(|&cause| !FOLLOWS.has(cause));
    own.fold(Causes::NONE, Causes::with)
}

/// Sets the fields of a row that a tree block's header determines.
pub fn describe(row: &mut Row, header: &Header) {
    row.structure = match header.is_relocated() {
        true => Structure::RelocationTree,
        false => structure_of(header.owner),
    };
    row.tree = header.owner;
    row.transaction = Some(header.generation);
}

/// Follows the file system from superblock to superblock.
pub struct Follower {
    pub volume: Volume,
    /// The last superblock.
    current: Option<Super>,
    /// Rows of tree blocks written since the last superblock, by logical address.
    pub written: BTreeMap<u64, Vec<usize>>,
    pub pending: Pending,
    pub paths: PathFinder,
    pub logged: Logged,
    /// Causes of the last superblock.
    pub superblock_causes: Causes,
}

/// Transition from one superblock to the next.
pub struct Step<'a, 'd> {
    pub old: Option<&'a Super>,
    /// The new superblock; None if the recording ends before it.
    pub new: Option<&'a Super>,
    pub disks: &'a mut Disks<'d>,
    pub rows: &'a mut Rows,
    /// True if a transaction was committed; false if only a log was.
    pub full: bool,
    /// Roots of each tree before and after.
    pub roots: HashMap<u64, (Option<u64>, Option<u64>)>,
    /// Roots of each tree's log before and after.
    pub log_roots: HashMap<u64, (Option<u64>, Option<u64>)>,
    /// Tree that each block of a log belongs to; for blocks of the tree of logs, that tree.
    pub logged: HashMap<u64, u64>,
    /// Snapshots that the transaction created.
    pub snapshots: HashSet<u64>,
    /// Range of logical addresses that contains all data waiting for an owner.
    pub waiting_within: Range<u64>,
    /// Whether the times of an inode of a tree are as they were, where that is known.
    pub untouched: HashMap<(u64, u64), bool>,
    /// Causes of the primary changes.
    primary: Causes,
    /// Rows of blocks whose writes only follow from other changes.
    following: Vec<usize>,
}

impl<'a, 'd> Step<'a, 'd> {
    pub(super) fn new(
        (old, new): (Option<&'a Super>, Option<&'a Super>),
        disks: &'a mut Disks<'d>,
        rows: &'a mut Rows,
    ) -> Step<'a, 'd> {
        Step {
            old,
            new,
            disks,
            rows,
            full: true,
            roots: HashMap::default(),
            log_roots: HashMap::default(),
            logged: HashMap::default(),
            snapshots: HashSet::default(),
            waiting_within: 0..u64::MAX,
            untouched: HashMap::default(),
            primary: Causes::NONE,
            following: Vec::new(),
        }
    }

    /// Returns the causes of blocks that only follow from other changes. If the whole step has a
    /// single reason, this is the cause: without it, none of these blocks would have been written.
    fn follows_from(&self) -> Causes {
        let reasons = beyond_what_follows(self.primary);
        match reasons.only() {
            Some(_) => reasons,
            None => Causes::one(Cause::Accounting),
        }
    }
}

impl Follower {
    pub fn new(volume: Volume) -> Follower {
        Follower {
            volume,
            current: None,
            written: BTreeMap::new(),
            pending: Pending::default(),
            paths: PathFinder::default(),
            logged: Logged::default(),
            superblock_causes: Causes::one(Cause::Accounting),
        }
    }

    pub fn block_written(&mut self, bytenr: u64, row: usize) {
        push_bounded(self.written.entry(bytenr).or_default(), row);
    }

    /// Handles the end of mkfs, whose superblock is the first. mkfs wrote through the page cache,
    /// so its writes come in any order and may be split anywhere.
    pub fn begin(&mut self, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        for disk in (0..disks.count()).filter(|&d| self.volume.devices.owns(d)) {
            self.current = superblock(disks, disk)?.or(self.current.take());
        }
        let Some(superblock) = self.current.clone() else {
            return Ok(());
        };
        self.volume.follow_chunks(disks, &superblock)?;
        let mut step = Step::new((None, Some(&superblock)), disks, rows);
        for (bytenr, written) in std::mem::take(&mut self.written) {
            let Some(block) = self.volume.block(step.disks, bytenr)? else {
                continue;
            };
            for &number in &written {
                let copy = self.copy_of(number, step.rows);
                if let Some(row) = step.rows.get_mut(number) {
                    describe(row, &block.header);
                    row.copy = copy.unwrap_or(row.copy);
                }
            }
            self.claim_extents(&mut step, &block, block.header.owner)?;
        }
        self.settle(&mut step)
    }

    /// Handles a superblock: a commit, or a log made durable by fsync. Further copies of the
    /// superblock add nothing.
    pub fn superblock(
        &mut self,
        superblock: &Super,
        disks: &mut Disks<'_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let old = self.current.take();
        let roots = |s: &Super| (s.generation, s.root, s.chunk_root, s.log_root);
        if old.as_ref().map(roots) == Some(roots(superblock)) || superblock.fsid != self.volume.fsid
        {
            self.current = old;
            return Ok(());
        }
        let full = old
            .as_ref()
            .is_none_or(|o| o.root != superblock.root || o.generation != superblock.generation);
        self.volume.follow_chunks(disks, superblock)?;
        let mut step = Step::new((old.as_ref(), Some(superblock)), disks, rows);
        step.full = full;
        self.explain(&mut step)?;
        self.superblock_causes = step.follows_from();
        self.current = Some(superblock.clone());
        Ok(())
    }

    /// Handles the end of the recording. Writes since the last superblock belong to a commit that
    /// never completed.
    pub fn end(&mut self, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        let old = self.current.clone();
        self.explain(&mut Step::new((old.as_ref(), None), disks, rows))
    }

    fn explain(&mut self, step: &mut Step<'_, '_>) -> Result<()> {
        self.paths.forget();
        step.waiting_within = self.waiting_within();
        self.find_logged(step)?;
        if step.full {
            self.revise_logged(step)?;
        }
        let mut snapshots = Vec::new();
        for (bytenr, written) in std::mem::take(&mut self.written) {
            let Some(block) = self.volume.block(step.disks, bytenr)? else {
                continue;
            };
            // Blocks of the transaction may be written early; they take effect with its commit. So
            // may blocks of a log: while one thread's fsync ends, another's is under way.
            if !step.full && !step.logged.contains_key(&bytenr) {
                self.written.insert(bytenr, written);
                continue;
            }
            let owner = self.explain_block(step, &block, &written)?;
            self.roots(step, owner)?;
            // A snapshot also has the data that was written through its source, so it is handled
            // last.
            if step.snapshots.contains(&owner) {
                snapshots.push((owner, bytenr));
            } else {
                self.claim_extents(step, &block, owner)?;
            }
        }
        for (owner, bytenr) in snapshots {
            if let Some(block) = self.volume.block(step.disks, bytenr)? {
                self.claim_extents(step, &block, owner)?;
            }
        }
        let follows = step.follows_from();
        for row in step.following.drain(..) {
            if follows != Causes::one(Cause::Accounting)
                && let Some(row) = step.rows.get_mut(row)
            {
                row.causes = follows;
            }
        }
        match step.full {
            true => self.settle(step),
            false => Ok(()),
        }
    }

    fn explain_block(
        &mut self,
        step: &mut Step<'_, '_>,
        block: &Arc<Block>,
        written: &[usize],
    ) -> Result<u64> {
        let header = block.header;
        let owner = match header.owner {
            tree::LOG => *step.logged.get(&header.bytenr).unwrap_or(&tree::LOG),
            owner => owner,
        };
        let mut reasons = Reasons::new(owner);
        if header.is_relocated() || matches!(owner, tree::RELOCATION | tree::DATA_RELOCATION) {
            reasons.causes = Causes::one(Cause::Relocation);
        } else if header.level > 0 || owner == tree::LOG {
            reasons.causes = Causes::one(Cause::Accounting);
        } else {
            self.compare(step, block, owner, &mut reasons)?;
        }
        reasons.causes = reasons.causes.or(Cause::Unchanged);
        let own = beyond_what_follows(reasons.causes);
        let follows = own.is_empty();
        if !follows {
            reasons.causes = own;
        }
        // Timestamps have a fixed size: something else moved the items, and would have done so
        // without them.
        if reasons.reshaped && !follows && own.and(TIMES) == TIMES {
            reasons.causes = own.with(Cause::Accounting);
        }
        if is_fs_tree(owner) || own.has(Cause::Relocation) {
            step.primary = step.primary.and(own);
        }
        let inode = reasons.inode();
        let mut path = None;
        if let Some(inode) = inode {
            path = self.path(step, owner, inode)?;
        }
        for &number in written {
            let copy = self.copy_of(number, step.rows);
            let Some(row) = step.rows.get_mut(number) else {
                continue;
            };
            describe(row, &header);
            row.tree = owner;
            row.causes = reasons.causes;
            row.inode = inode.unwrap_or(NO_INODE);
            row.path = path;
            row.copy = copy.unwrap_or(row.copy);
            if follows {
                step.following.push(number);
            }
        }
        if let Some(inode) = inode.filter(|_| !step.full) {
            self.keep_logged(step, owner, inode, written)?;
        }
        Ok(owner)
    }

    /// Returns the copy number of a row. The chunk may have been unknown when the row was written.
    fn copy_of(&self, row: usize, rows: &mut Rows) -> Option<u8> {
        let row = rows.get_mut(row)?;
        Some(self.volume.place(row.disk, row.offset)?.copy)
    }

    /// Returns the path of an inode of a tree.
    pub fn path(
        &mut self,
        step: &mut Step<'_, '_>,
        owner: u64,
        inode: u64,
    ) -> Result<Option<PathId>> {
        let names = self.names(step, owner)?;
        let paths = &mut step.rows.paths;
        self.paths
            .path(&mut self.volume, step.disks, names, inode, paths)
    }

    /// Returns the roots in which names of a tree are looked up.
    pub fn names(&mut self, step: &mut Step<'_, '_>, owner: u64) -> Result<Names> {
        let (old_root, fs_root) = self.roots(step, owner)?;
        let log_root = step.log_roots.get(&owner).and_then(|&(_, new)| new);
        Ok(Names {
            tree: owner,
            log_root,
            fs_root,
            old_root,
            root_tree: step.new.or(step.old).map_or(0, |s| s.root),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_block_that_is_written_without_end_the_last_rows_are_kept() {
        let mut rows = Vec::new();
        for row in 0..10_000 {
            push_bounded(&mut rows, row);
            assert!(rows.len() <= MAX_ROWS_OF_BLOCK && rows.last() == Some(&row));
        }
        assert!(rows.len() >= MAX_ROWS_OF_BLOCK / 2 && rows.is_sorted());
    }
}
