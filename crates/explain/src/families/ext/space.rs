//! What each block is in use for.

use std::collections::BTreeMap;

use crate::Structure;

/// What the blocks hold that an inode maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// Bytes of a file.
    Data,
    /// Names.
    Directory,
    /// The target of a long symbolic link.
    Symlink,
    /// Quota accounts.
    Quota,
    /// The orphan file.
    Orphan,
    /// The journal.
    Journal,
    /// Values of large extended attributes (`ea_inode`).
    Xattr,
}

/// What a block is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// At a place that the superblock and the group descriptors name.
    Fixed(Structure),
    /// Mapped by an inode.
    Content(Content),
    /// A node of the extent tree that maps this.
    Extents(Content),
    /// A block of pointers that many levels above this.
    Pointers(u8, Content),
    /// A block of extended attributes.
    Xattr,
}

impl Kind {
    /// The structure in tables; a directory's index is told from its content only.
    pub fn structure(self) -> Structure {
        match self {
            Kind::Fixed(structure) => structure,
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

    /// Whether the block maps others.
    pub fn is_node(self) -> bool {
        matches!(self, Kind::Extents(_) | Kind::Pointers(..))
    }

    /// Whether the block's versions are kept, to tell what changed.
    pub fn is_metadata(self) -> bool {
        !matches!(
            self,
            Kind::Content(Content::Data | Content::Journal)
                | Kind::Fixed(Structure::Unused | Structure::SuperblockBackup)
        )
    }
}

/// The use of a run of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// What for.
    pub kind: Kind,
    /// The owner; of an inode table, its first inode; else 0.
    pub inode: u32,
    /// The node that maps it, or 0: the inode itself.
    pub node: u64,
}

/// What maps blocks: an inode, or a node below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mapper {
    /// The inode; 0 is none.
    pub inode: u32,
    /// The node, or 0.
    pub node: u64,
}

impl Use {
    /// What maps it.
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
    /// Blocks.
    pub length: u64,
    /// The use; `None` where nothing is known to use them.
    pub used: Option<Use>,
    /// Where the use began that these are part of.
    pub origin: u64,
}

/// All blocks in use. Fixed places are never taken by what inodes claim.
#[derive(Debug, Default)]
pub struct Space {
    runs: BTreeMap<u64, Taken>,
}

#[derive(Debug, Clone, Copy)]
struct Taken {
    length: u64,
    origin: u64,
    used: Use,
}

impl Space {
    /// The runs of `length` blocks at `start`, in order, without gaps.
    pub fn runs(&self, start: u64, length: u64) -> Vec<Run> {
        let end = start.saturating_add(length);
        let mut found = Vec::new();
        let mut at = start;
        let first = self
            .runs
            .range(..=start)
            .next_back()
            .map_or(start, |(&s, _)| s);
        for (&from, taken) in self.runs.range(first..end) {
            let to = (from + taken.length).min(end);
            if to <= at {
                continue;
            }
            if from > at {
                found.push(Run {
                    start: at,
                    length: from - at,
                    used: None,
                    origin: at,
                });
                at = from;
            }
            found.push(Run {
                start: at,
                length: to - at,
                used: Some(taken.used),
                origin: taken.origin,
            });
            at = to;
        }
        if at < end {
            found.push(Run {
                start: at,
                length: end - at,
                used: None,
                origin: at,
            });
        }
        found
    }

    /// The use of one block.
    pub fn get(&self, block: u64) -> Option<Use> {
        let (&start, taken) = self.runs.range(..=block).next_back()?;
        (block - start < taken.length).then_some(taken.used)
    }

    /// `length` blocks at `start` are now for this; fixed places stay what they are.
    pub fn claim(&mut self, start: u64, length: u64, used: Use) {
        for run in self.runs(start, length) {
            if !matches!(run.used, Some(u) if matches!(u.kind, Kind::Fixed(_))) {
                self.set(run.start, run.length, used);
            }
        }
    }

    /// The blocks among these that `used` still holds are free.
    pub fn release(&mut self, start: u64, length: u64, used: Use) {
        for run in self.runs(start, length) {
            if run.used == Some(used) {
                self.cut(run.start, run.start + run.length);
            }
        }
    }

    /// As [`claim`](Self::claim), whatever was there.
    pub fn set(&mut self, start: u64, length: u64, used: Use) {
        let Some(end) = start.checked_add(length).filter(|_| length > 0) else {
            return;
        };
        self.cut(start, end);
        // Files grow at their end: keep what is one as one.
        if !matches!(used.kind, Kind::Fixed(_))
            && let Some((&from, before)) = self.runs.range_mut(..start).next_back()
            && before.used == used
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
            },
        );
    }

    fn cut(&mut self, start: u64, end: u64) {
        let first = self
            .runs
            .range(..start)
            .next_back()
            .map_or(start, |(&s, _)| s);
        while let Some((&from, &taken)) = self
            .runs
            .range(first..end)
            .find(|(s, t)| **s + t.length > start)
        {
            self.runs.remove(&from);
            let to = from + taken.length;
            if from < start {
                let length = start - from;
                self.runs.insert(from, Taken { length, ..taken });
            }
            if to > end {
                let length = to - end;
                self.runs.insert(end, Taken { length, ..taken });
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

    proptest! {
        #[test]
        fn behaves_like_one_entry_a_block(ops in prop::collection::vec((0..BLOCKS, 1..12u64, 1..4u32, any::<bool>()), 1..80)) {
            let fixed = Use { kind: Kind::Fixed(Structure::InodeTable), inode: 1, node: 0 };
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
