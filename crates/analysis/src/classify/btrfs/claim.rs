//! Whose data was written: by the items that point to it, or by the extent tree where it was written in place.

use super::block::Block;
use super::chunk::flag;
use super::commit::{Follower, Step};
use super::items::FileExtent;
use super::key::{is_fs_tree, kind, tree};
use super::owner::owner_of;
use crate::classify::waiting::Piece;
use crate::classify::{Cause, Causes, Disks, PathId, Row, Rows, Structure};
use fscost_recording::Result;

/// Data is not always owned at its first commit: an ordered extent may end in the next transaction.
const COMMITS_TO_WAIT: u32 = 4;
/// `BTRFS_MAX_EXTENT_SIZE` is 128 MiB; preallocated extents may be twice as long.
const MAX_EXTENT_BYTES: u64 = 256 << 20;

/// Who owns a piece of data.
struct Found {
    tree: u64,
    inode: u64,
    path: Option<PathId>,
    copy: u8,
    generation: Option<u64>,
}

impl Found {
    fn complete(&self, row: &mut Row) {
        // Inodes in the tree of roots hold free space, version 1.
        let is_cache = self.tree == tree::ROOT;
        row.structure = if is_cache {
            Structure::FreeSpaceCache
        } else {
            Structure::FileData
        };
        if !row.causes.has(Cause::Format) {
            row.causes = Causes::one(if is_cache {
                Cause::Allocation
            } else {
                Cause::Data
            });
        }
        row.tree = self.tree;
        row.inode = self.inode;
        row.path = self.path;
        row.copy = self.copy;
        row.transaction = self.generation;
    }
}

impl Follower {
    /// Give waiting data to the files that a leaf says own it.
    pub fn claim_extents(
        &mut self,
        step: &mut Step<'_>,
        leaf: &Block,
        owner: u64,
        disks: &mut Disks<'_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let may_own = is_fs_tree(owner) || owner == tree::ROOT;
        if self.pending.is_empty() || !may_own || leaf.header.level > 0 {
            return Ok(());
        }
        // What balance moves, and what is written in place, has the item's old generation.
        let committed = step.new.or(step.old).map_or(0, |s| s.generation);
        let since = committed.saturating_sub(COMMITS_TO_WAIT.into());
        let mut spots = Vec::new();
        for (key, item) in leaf.items_of(kind::EXTENT_DATA) {
            if self.pending.is_empty() {
                break;
            }
            let Some(extent) = FileExtent::parse(item) else {
                continue;
            };
            let mut path = None;
            let mut at = 0;
            let bytes = extent.disk_bytes.min(MAX_EXTENT_BYTES);
            while at < bytes {
                let logical = extent.disk_bytenr.saturating_add(at);
                spots.clear();
                spots.extend(self.volume.chunks.copies(logical));
                let Some(run) = spots.iter().map(|spot| spot.run).min() else {
                    break;
                };
                let run = run.clamp(1, bytes - at);
                for spot in &spots {
                    let disk = self.volume.disk(spot.devid);
                    let Some(disk) = disk.filter(|&d| self.pending.touches(d, spot.offset, run))
                    else {
                        continue;
                    };
                    if path.is_none() {
                        let names = self.names(step, owner, disks)?;
                        path = Some(self.paths.path(
                            &mut self.volume,
                            disks,
                            names,
                            key.objectid,
                            &mut rows.paths,
                        )?);
                    }
                    let found = Found {
                        tree: owner,
                        inode: key.objectid,
                        path: path.flatten(),
                        copy: spot.copy,
                        generation: Some(extent.generation)
                            .filter(|&generation| generation >= since),
                    };
                    self.pending
                        .claim(disk, spot.offset, run, rows, |row| found.complete(row));
                }
                at += run;
            }
        }
        Ok(())
    }

    /// After a commit: data that no written leaf points to was written in place, or is already gone.
    pub fn settle(
        &mut self,
        step: &mut Step<'_>,
        disks: &mut Disks<'_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let (old, new) = self.roots(step, tree::EXTENT, disks)?;
        for (disk, waiting) in self.pending.waiting() {
            let place = self.volume.place(disk, waiting.offset);
            let row = rows
                .get_mut(waiting.row)
                .filter(|row| row.structure == Structure::Unknown);
            if let (Some(place), Some(row)) = (place.filter(|p| p.flags & flag::DATA != 0), row) {
                // It lies in a chunk that was not known when it was written.
                row.structure = Structure::FileData;
                row.causes = Causes::one(Cause::Data);
                row.copy = place.copy;
            }
            let mut at = 0;
            while at < waiting.length {
                at += self.settle_part(step, (disk, waiting), at, [old, new], disks, rows)?;
            }
        }
        self.pending.grow_old(COMMITS_TO_WAIT);
        Ok(())
    }

    fn settle_part(
        &mut self,
        step: &mut Step<'_>,
        (disk, waiting): (u16, Piece),
        at: u64,
        extent_roots: [Option<u64>; 2],
        disks: &mut Disks<'_>,
        rows: &mut Rows,
    ) -> Result<u64> {
        let (offset, rest) = (waiting.offset + at, waiting.length - at);
        let sector = u64::from(self.volume.sector_bytes).min(rest);
        let Some(place) = self.volume.place(disk, offset) else {
            return Ok(rest);
        };
        let run = place.run.min(rest);
        let Some(logical) = place.logical else {
            // Its chunk was not known when it was written.
            self.pending.claim(disk, offset, run, rows, |row| {
                row.structure = Structure::Parity;
                row.causes = Causes::one(Cause::Accounting);
                row.copy = place.copy;
            });
            return Ok(run);
        };
        if place.flags & flag::DATA == 0 {
            return Ok(run);
        }
        for root in extent_roots.into_iter().flatten() {
            let Some(owner) = owner_of(&mut self.volume, disks, root, logical)? else {
                continue;
            };
            let run = (owner.end - logical).min(place.run).min(rest);
            if owner.tree == tree::DATA_RELOCATION {
                // Until balance tells the files, however many commits that takes: it moves one block group at a time.
                self.pending.renew(disk, waiting);
                return Ok(run);
            }
            let names = self.names(step, owner.tree, disks)?;
            let path =
                self.paths
                    .path(&mut self.volume, disks, names, owner.inode, &mut rows.paths)?;
            let found = Found {
                tree: owner.tree,
                inode: owner.inode,
                path,
                copy: place.copy,
                generation: None,
            };
            self.pending
                .claim(disk, offset, run, rows, |row| found.complete(row));
            return Ok(run);
        }
        Ok(sector)
    }
}
