//! Who owns each block: what inodes and nodes map is taken and given back as they change.

use std::{collections::HashSet, sync::Arc};

use super::{
    directory::{self, Entry},
    map::{self, Claim},
    space::{Content, Kind, Use},
    state::{Applied, Blocks, State},
};
use crate::classify::Disks;
use fscost_recording::Result;

/// What inodes and nodes no longer map, and what they map now.
#[derive(Default)]
pub(super) struct Change {
    pub(super) gone: Vec<(u32, Claim)>,
    pub(super) come: Vec<(u32, Claim)>,
}

impl Change {
    pub(super) fn differ(&mut self, inode: u32, old: Vec<Claim>, new: Vec<Claim>) {
        let (gone, come) = map::differences(old, new);
        self.gone
            .extend(gone.into_iter().map(|claim| (inode, claim)));
        self.come
            .extend(come.into_iter().map(|claim| (inode, claim)));
    }
}

/// A name that a directory has lost.
#[derive(Debug)]
pub(super) struct Gone {
    directory: u32,
    inode: u32,
    name: Box<[u8]>,
    is_directory: bool,
}

impl Gone {
    fn new(directory: u32, entry: &Entry<'_>) -> Gone {
        Gone {
            directory,
            inode: entry.inode,
            name: entry.name.into(),
            is_directory: entry.is_directory,
        }
    }
}

impl State {
    /// Returns whether names differ. Those that are gone are so once all that is new is known: a name that moves to another block stays
    /// the oldest of its inode.
    pub(super) fn rename(&mut self, directory: u32, old: &[Entry<'_>], new: &[Entry<'_>]) -> bool {
        let removed = old.iter().filter(|e| new.binary_search(e).is_err());
        let added = new.iter().filter(|e| old.binary_search(e).is_err());
        let mut differ = false;
        for entry in removed {
            self.gone.push(Gone::new(directory, entry));
            differ = true;
        }
        for entry in added {
            self.names.add(directory, entry);
            differ = true;
        }
        differ
    }

    pub(super) fn names_gone(&mut self) {
        for gone in std::mem::take(&mut self.gone) {
            let entry = Entry {
                inode: gone.inode,
                name: &gone.name,
                is_directory: gone.is_directory,
            };
            self.names.remove(gone.directory, &entry);
        }
    }

    pub(super) fn release(
        &mut self,
        inode: u32,
        claim: Claim,
        applied: &mut Applied,
        disks: &mut Disks<'_>,
    ) -> Result<()> {
        let mut stack = vec![claim];
        while let Some(claim) = stack.pop() {
            let used = Use {
                kind: claim.kind,
                inode,
            };
            // What someone else holds by now is not this inode's to release; neither is what was released before.
            if self.space.get(claim.start) != Some(used)
                && matches!(claim.kind, Kind::Extents(_) | Kind::Pointers(..))
            {
                continue;
            }
            if matches!(claim.kind, Kind::Extents(_) | Kind::Pointers(..)) {
                let old = self.before(claim.start, disks)?;
                stack.extend(map::of_node(claim.kind, &old, &self.superblock));
            }
            self.space.release(claim.start, claim.length, used);
            applied.released.push((claim.start, claim.length, inode));
            if claim.kind.is_metadata() {
                self.forget(inode, claim);
            }
        }
        Ok(())
    }

    /// Versions of released blocks are of no more use, and names in them are gone.
    fn forget(&mut self, inode: u32, claim: Claim) {
        let end = claim.start.saturating_add(claim.length);
        let known: Vec<u64> = self
            .versions
            .range(claim.start..end)
            .map(|(&b, _)| b)
            .collect();
        for block in known {
            let version = self.versions.remove(&block).unwrap_or_default();
            if claim.kind == Kind::Content(Content::Directory) {
                let old = self.entries(&version).unwrap_or_default();
                self.rename(inode, &old, &[]);
            }
        }
    }

    pub(super) fn entries<'b>(&self, block: &'b [u8]) -> Option<Vec<Entry<'b>>> {
        directory::entries(block, self.superblock.has_file_types())
    }

    /// Take the blocks, and what the nodes among them map. Returns the metadata that was read for that.
    pub(super) fn claim(
        &mut self,
        mut stack: Vec<(u32, Claim)>,
        blocks: &Blocks<'_>,
        applied: &mut Applied,
        disks: &mut Disks<'_>,
    ) -> Result<HashSet<u64>> {
        let mut visited = HashSet::new();
        while let Some((inode, claim)) = stack.pop() {
            self.space.claim(
                claim.start,
                claim.length,
                Use {
                    kind: claim.kind,
                    inode,
                },
            );
            applied.claimed.push((claim.start, claim.length));
            if !reads(claim.kind) {
                continue;
            }
            for block in claim.start..claim.start.saturating_add(claim.length) {
                if self.reads_left == 0 {
                    break;
                }
                self.reads_left -= 1;
                if !visited.insert(block) {
                    continue;
                }
                let content = match blocks.get(&block) {
                    Some(&new) => Arc::from(new),
                    None => self.before(block, disks)?,
                };
                if claim.kind == Kind::Content(Content::Directory) {
                    let entries = self.entries(&content).unwrap_or_default();
                    self.rename(inode, &[], &entries);
                } else {
                    let children = map::of_node(claim.kind, &content, &self.superblock);
                    stack.extend(children.into_iter().map(|child| (inode, child)));
                }
                self.versions.insert(block, content);
            }
        }
        Ok(visited)
    }
}

/// Whether what a claimed block holds must be known.
fn reads(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Content(Content::Directory) | Kind::Extents(_) | Kind::Pointers(..)
    )
}
