//! Use of each block.

use std::collections::BTreeMap;

pub use super::layout::{Area, Content, Kind};
use super::map::Claim;
use crate::Structure;

/// Returns the structure shown in tables. A directory index block can be recognised only by its
/// content.
pub fn structure_of(kind: Kind) -> Structure {
    match kind {
        Kind::Fixed(Area::Boot) => Structure::Unused,
        Kind::Fixed(Area::Superblock) => Structure::Superblock,
        Kind::Fixed(Area::SuperblockBackup) => Structure::SuperblockBackup,
        Kind::Fixed(Area::GroupDescriptors) => Structure::GroupDescriptors,
        Kind::Fixed(Area::BlockBitmap) => Structure::BlockBitmap,
        Kind::Fixed(Area::InodeBitmap) => Structure::InodeBitmap,
        Kind::Fixed(Area::InodeTable) => Structure::InodeTable,
        Kind::Fixed(Area::Mmp) => Structure::Mmp,
        Kind::Content(Content::Data) => Structure::FileData,
        Kind::Content(Content::Directory) => Structure::Directory,
        Kind::Content(Content::Symlink) => Structure::Symlink,
        Kind::Content(Content::Quota) => Structure::Quota,
        Kind::Content(Content::Orphan) => Structure::OrphanFile,
        Kind::Content(Content::Journal) => Structure::JournalFree,
        Kind::Content(Content::Xattr) | Kind::Xattr => Structure::Xattr,
        Kind::Extents(_) | Kind::Pointers(..) => Structure::ExtentMap,
    }
}

/// Returns whether blocks of this kind hold the content of files.
pub fn is_data(kind: Kind) -> bool {
    kind == Kind::Content(Content::Data)
}

/// The use of a run of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Purpose of the blocks.
    pub kind: Kind,
    /// Owner; for an inode table, its first inode; otherwise 0.
    pub inode: u32,
    /// Node that maps the blocks; 0 if the inode itself does.
    pub node: u64,
}

/// Mapper of blocks: an inode, or a node below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mapper {
    /// Inode; 0 if there is none.
    pub inode: u32,
    /// Node; 0 for the inode itself.
    pub node: u64,
}

impl Mapper {
    /// Returns the mapper of blocks that the inode itself maps.
    pub fn of_inode(inode: u32) -> Mapper {
        Mapper { inode, node: 0 }
    }

    /// Returns the mapper of blocks that a node of the same inode maps.
    pub fn below(self, node: u64) -> Mapper {
        Mapper { node, ..self }
    }

    /// Returns the use of blocks of this kind that the mapper maps.
    pub fn uses(self, kind: Kind) -> Use {
        let Mapper { inode, node } = self;
        Use { kind, inode, node }
    }
}

impl Use {
    /// Returns the mapper of one of these blocks, and its claim to the block, numbered `first`.
    pub fn claim_of(self, block: u64, first: u64) -> (Mapper, Claim) {
        let claim = Claim {
            start: block,
            length: 1,
            kind: self.kind,
            first,
        };
        (self.mapper(), claim)
    }

    /// Returns the mapper of these blocks.
    pub fn mapper(self) -> Mapper {
        let Use { inode, node, .. } = self;
        Mapper { inode, node }
    }
}

/// Blocks from `start`, all for one use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first block.
    pub start: u64,
    /// Number of blocks.
    pub length: u64,
    /// Use; `None` if the blocks have no known use.
    pub used: Option<Use>,
    /// File block number of the first block, if known; see [`Claim::first`].
    pub file_block: Option<u64>,
}

impl Run {
    /// Returns the block after the last one.
    pub fn end(&self) -> u64 {
        self.start + self.length
    }
}

/// All blocks in use. Claims by inodes never replace structures at fixed places.
#[derive(Debug, Default)]
pub struct Space {
    runs: BTreeMap<u64, Taken>,
}

#[derive(Debug, Clone, Copy)]
struct Taken {
    length: u64,
    /// First block of the use that the run is part of.
    origin: u64,
    used: Use,
    /// Distance from block numbers to file block numbers, modulo 2⁶⁴, if known.
    shift: Option<u64>,
}

impl Taken {
    fn file_block(&self, block: u64) -> Option<u64> {
        self.shift.map(|shift| block.wrapping_add(shift))
    }
}

impl Space {
    /// Returns the runs of `length` blocks at `start`, in order, without gaps.
    pub fn runs(&self, start: u64, length: u64) -> Vec<Run> {
        let end = start.saturating_add(length);
        let mut found = Vec::new();
        let mut at = start;
        while at < end {
            let taken = self.taken(at);
            let next = match taken {
                Some((from, taken)) => from + taken.length,
                None => self
                    .runs
                    .range(at..end)
                    .next()
                    .map_or(end, |(&next, _)| next),
            };
            let length = next.min(end) - at;
            found.push(Run {
                start: at,
                length,
                used: taken.map(|(_, taken)| taken.used),
                file_block: taken.and_then(|(_, taken)| taken.file_block(at)),
            });
            at += length;
        }
        found
    }

    /// Returns the run in use that contains a block, and its first block.
    fn taken(&self, block: u64) -> Option<(u64, Taken)> {
        let (&from, &taken) = self.runs.range(..=block).next_back()?;
        (block - from < taken.length).then_some((from, taken))
    }

    /// Returns the first block of the use that a block is part of.
    pub fn origin(&self, block: u64) -> Option<u64> {
        self.taken(block).map(|(_, taken)| taken.origin)
    }

    /// Returns the use of one block.
    pub fn get(&self, block: u64) -> Option<Use> {
        self.taken(block).map(|(_, taken)| taken.used)
    }

    /// Returns the number of a block in its file, if known; see [`Claim::first`]. For a block of
    /// pointers, it is the number of the first block that it maps.
    pub fn file_block(&self, block: u64) -> Option<u64> {
        self.taken(block)
            .and_then(|(_, taken)| taken.file_block(block))
    }

    /// Assigns a use to `length` blocks at `start`. Structures at fixed places are unchanged.
    pub fn claim(&mut self, start: u64, length: u64, used: Use) {
        self.map(start, length, used, None);
    }

    /// Like [`claim`](Self::claim), with the number of the first block in its file.
    pub fn map(&mut self, start: u64, length: u64, used: Use, file_block: Option<u64>) {
        let shift = file_block.map(|number| number.wrapping_sub(start));
        for run in self.runs(start, length) {
            if !matches!(run.used, Some(u) if matches!(u.kind, Kind::Fixed(_))) {
                self.put(run.start, run.length, used, shift);
            }
        }
    }

    /// Renumbers those of these blocks that have this use: they have moved within their file.
    pub fn renumber(&mut self, start: u64, length: u64, used: Use, file_block: Option<u64>) {
        let shift = file_block.map(|number| number.wrapping_sub(start));
        for run in self.runs(start, length) {
            let known = run.file_block.map(|number| number.wrapping_sub(run.start));
            if run.used == Some(used) && known != shift {
                self.put(run.start, run.length, used, shift);
            }
        }
    }

    /// Frees the blocks in this range that `used` still holds.
    pub fn release(&mut self, start: u64, length: u64, used: Use) {
        for run in self.runs(start, length) {
            if run.used == Some(used) {
                self.cut(run.start, run.end());
            }
        }
    }

    /// Assigns a use like [`claim`](Self::claim), but also replaces structures at fixed places.
    pub fn set(&mut self, start: u64, length: u64, used: Use) {
        self.put(start, length, used, None);
    }

    fn put(&mut self, start: u64, length: u64, used: Use, shift: Option<u64>) {
        let Some(end) = start.checked_add(length).filter(|_| length > 0) else {
            return;
        };
        self.cut(start, end);
        // Files grow at their end: extend the previous run if it has the same use.
        if !matches!(used.kind, Kind::Fixed(_))
            && let Some((&from, before)) = self.runs.range_mut(..start).next_back()
            && (before.used, before.shift) == (used, shift)
            && from + before.length == start
        {
            before.length += length;
            return;
        }
        self.runs.insert(
            start,
            Taken {
                length,
                origin: start,
                used,
                shift,
            },
        );
    }

    fn cut(&mut self, start: u64, end: u64) {
        let first = self.taken(start).map_or(start, |(from, _)| from);
        while let Some((&from, &taken)) = self
            .runs
            .range(first..end)
            .find(|&(&from, taken)| from + taken.length > start)
        {
            self.runs.remove(&from);
            let to = from + taken.length;
            for (from, to) in [(from, start), (end, to)] {
                if from < to {
                    let length = to - from;
                    self.runs.insert(from, Taken { length, ..taken });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCKS: u64 = 48;

    fn data(inode: u32) -> Use {
        Use {
            kind: Kind::Content(Content::Data),
            inode,
            node: 0,
        }
    }

    #[test]
    fn blocks_that_move_within_their_file_are_renumbered() {
        let mut space = Space::default();
        let of = |space: &Space, range: std::ops::Range<u64>| -> Vec<_> {
            range.map(|block| space.file_block(block)).collect()
        };
        space.map(10, 2, data(12), Some(5));
        space.map(12, 2, data(12), Some(7));
        assert_eq!(space.runs(10, 4).len(), 1);
        space.map(14, 1, data(12), Some(30));
        assert_eq!(of(&space, 13..16), [Some(8), Some(30), None]);
        space.renumber(11, 9, data(12), Some(100));
        space.renumber(11, 9, data(13), Some(200));
        assert_eq!(of(&space, 10..13), [Some(5), Some(100), Some(101)]);
        assert_eq!(of(&space, 14..16), [Some(103), None]);
    }

    proptest! {
        #[test]
        fn behaves_like_one_entry_a_block(ops in prop::collection::vec((0..BLOCKS, 1..12u64, 1..4u32, any::<bool>()), 1..80)) {
            let fixed = Use { kind: Kind::Fixed(Area::InodeTable), inode: 1, node: 0 };
            let mut space = Space::default();
            space.set(20, 4, fixed);
            let mut model = vec![None; BLOCKS as usize];
            model[20..24].fill(Some(fixed));
            for (start, length, inode, claims) in ops {
                let length = length.min(BLOCKS - start);
                if claims { space.claim(start, length, data(inode)) } else { space.release(start, length, data(inode)) }
                for used in &mut model[start as usize..(start + length) as usize] {
                    if *used != Some(fixed) && (claims || *used == Some(data(inode))) {
                        *used = claims.then_some(data(inode));
                    }
                }
                let found: Vec<_> = space.runs(0, BLOCKS).iter().flat_map(|r| vec![r.used; r.length as usize]).collect();
                prop_assert_eq!(&found, &model);
                prop_assert!((0..BLOCKS).all(|b| space.get(b) == model[b as usize]));
            }
        }
    }
}
