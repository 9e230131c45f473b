//! Owners of data: from the items that point to it or, for data written in place, from the extent
//! tree.

use super::block::Block;
use super::chunk::flag;
use super::commit::{Follower, Step};
use super::item::{FileExtent, is_fs_tree, kind, tree};
use super::owner::owner_of;
use crate::track::waiting::Piece;
use crate::{Cause, Causes, PathId, Row, Rows, Shift, Structure};
use fscost_recording::Result;
use std::ops::Range;

/// Number of commits that data waits for an owner. Data may have none at its first commit: an
/// ordered extent may complete in the next transaction.
const COMMITS_TO_WAIT: u32 = 4;
/// Upper limit of an extent: `BTRFS_MAX_EXTENT_SIZE` is 128 MiB, and preallocated extents may be
/// twice as long.
pub(super) const MAX_EXTENT_BYTES: u64 = 256 << 20;

/// Maximum number of waiting pieces that are examined one by one at each fsync.
const FEW_WAITING: usize = 64;

/// Owner of a piece of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    tree: u64,
    inode: u64,
    path: Option<PathId>,
    /// Offset in the file of the first byte of the piece, if known.
    file_offset: Option<u64>,
    copy: u8,
    generation: Option<u64>,
    cause: Cause,
}

impl Found {
    /// Completes a row in a piece that begins at this offset on the disk.
    fn complete(&self, row: &mut Row, offset: u64) {
        row.shift = self.file_offset.map(|file| Shift::between(offset, file));
        // Inodes in the tree of roots hold the free space cache, version 1.
        let is_cache = self.tree == tree::ROOT;
        let (structure, cause) = match is_cache {
            true => (Structure::FreeSpaceCache, Cause::Allocation),
            // Balance wrote the data before it updated the file.
            false if row.causes == Causes::one(Cause::Relocation) => {
                (Structure::FileData, Cause::Relocation)
            }
            false => (Structure::FileData, self.cause),
        };
        row.structure = structure;
        because_written(row, cause);
        row.tree = self.tree;
        row.inode = self.inode;
        row.path = self.path;
        row.copy = self.copy;
        row.transaction = self.generation;
    }

    /// Completes these rows.
    fn complete_all(&self, numbers: &[usize], offset: u64, rows: &mut Rows) {
        for &number in numbers {
            if let Some(row) = rows.get_mut(number) {
                self.complete(row, offset);
            }
        }
    }
}

/// Returns an extent that touches a range of logical addresses, and its bytes.
fn extent_within(item: &[u8], within: &Range<u64>) -> Option<(FileExtent, u64)> {
    let extent = FileExtent::parse(item)?;
    let bytes = extent.disk_bytes.min(MAX_EXTENT_BYTES);
    let end = extent.disk_bytenr.saturating_add(bytes);
    (extent.disk_bytenr < within.end && end > within.start).then_some((extent, bytes))
}

/// Rows whose owner was found. They are completed in row order, not in disk order, because they may
/// have been moved to a file in the meantime.
#[derive(Debug, Default)]
struct Settled {
    /// Owners of pieces, and where the pieces begin on the disk.
    owners: Vec<(Found, u64)>,
    /// Row numbers, each with the index of its owner.
    rows: Vec<(usize, usize)>,
}

impl Settled {
    fn add(&mut self, numbers: Vec<usize>, found: Found, offset: u64) {
        if self.owners.last() != Some(&(found, offset)) {
            self.owners.push((found, offset));
        }
        let owner = self.owners.len() - 1;
        let rows = numbers.into_iter().map(|number| (number, owner));
        self.rows.extend(rows);
    }

    fn complete(mut self, rows: &mut Rows) {
        self.rows.sort_unstable();
        for (number, owner) in self.rows {
            if let Some(row) = rows.get_mut(number) {
                let (found, offset) = &self.owners[owner];
                found.complete(row, *offset);
            }
        }
    }
}

/// Marks a row as file data: its chunk was unknown when it was written, and is now known to be a
/// data chunk.
fn is_of_data(row: &mut Row, copy: u8) {
    row.structure = Structure::FileData;
    row.copy = copy;
    because_written(row, Cause::Data);
}

/// Sets the cause of a row, unless mkfs wrote it.
fn because_written(row: &mut Row, cause: Cause) {
    if !row.causes.has(Cause::Format) {
        row.causes = Causes::one(cause);
    }
}

impl Follower {
    /// Returns a range of logical addresses that contains all waiting data. The range covers all
    /// addresses if many pieces wait or if a location is unknown.
    pub fn waiting_within(&mut self) -> Range<u64> {
        const ANY: Range<u64> = 0..u64::MAX;
        if self.pending.len() > FEW_WAITING {
            return ANY;
        }
        let (mut start, mut stop) = (u64::MAX, 0);
        for (disk, piece) in self.pending.waiting() {
            let end = piece.offset.saturating_add(piece.length);
            let mut at = piece.offset;
            while at < end {
                let Some(place) = self.volume.place(disk, at) else {
                    return ANY;
                };
                let run = place.run.clamp(1, end - at);
                if let Some(logical) = place.logical {
                    start = start.min(logical);
                    stop = stop.max(logical.saturating_add(run));
                }
                at += run;
            }
        }
        start..stop
    }

    /// Attributes waiting data to the files that own it according to a leaf.
    pub fn claim_extents(
        &mut self,
        step: &mut Step<'_, '_>,
        leaf: &Block,
        owner: u64,
    ) -> Result<()> {
        let may_own = is_fs_tree(owner) || owner == tree::ROOT;
        if self.pending.is_empty() || !may_own || leaf.header.level > 0 {
            return Ok(());
        }
        let within = step.waiting_within.clone();
        // Data that is relocated by balance or written in place keeps the item's old generation.
        let committed = step.new.or(step.old).map_or(0, |s| s.generation);
        let since = committed.saturating_sub(COMMITS_TO_WAIT.into());
        let mut spots = Vec::new();
        for (key, item) in leaf.items_of(kind::EXTENT_DATA) {
            let Some((extent, bytes)) = extent_within(item, &within) else {
                continue;
            };
            if self.pending.is_empty() {
                break;
            }
            let mut known = None;
            let mut at = 0;
            while at < bytes {
                let logical = extent.disk_bytenr.saturating_add(at);
                spots.clear();
                spots.extend(self.volume.chunks.copies(logical));
                let Some(run) = spots.iter().map(|spot| spot.run).min() else {
                    break;
                };
                let run = run.clamp(1, bytes - at);
                for spot in &spots {
                    let disk = self.volume.devices.disk(spot.devid);
                    let Some(disk) = disk.filter(|&d| self.pending.touches(d, spot.offset, run))
                    else {
                        continue;
                    };
                    let (path, cause) = match known {
                        Some(known) => known,
                        None => (
                            self.path(step, owner, key.objectid)?,
                            self.why_written(step, owner, key, &extent)?,
                        ),
                    };
                    known = Some((path, cause));
                    let found = Found {
                        tree: owner,
                        inode: key.objectid,
                        path,
                        file_offset: extent.file_offset(key.offset, at),
                        copy: spot.copy,
                        generation: Some(extent.generation).filter(|&g| g >= since),
                        cause,
                    };
                    let numbers = self.pending.take(disk, spot.offset, run, step.rows);
                    found.complete_all(&numbers, spot.offset, step.rows);
                    if !step.full {
                        self.keep_logged(step, owner, key.objectid, &numbers)?;
                    }
                }
                at += run;
            }
        }
        Ok(())
    }

    /// Settles waiting data after a commit. Data that no written leaf points to was written in
    /// place, or is already freed.
    pub fn settle(&mut self, step: &mut Step<'_, '_>) -> Result<()> {
        let (old, new) = self.roots(step, tree::EXTENT)?;
        let waiting = self.pending.waiting();
        self.find_data(&waiting, step.rows);
        let mut settled = Settled::default();
        for (disk, waiting) in waiting {
            let mut at = 0;
            while at < waiting.length {
                let piece = (disk, waiting);
                at += self.settle_part(step, piece, at, [old, new], &mut settled)?;
            }
        }
        settled.complete(step.rows);
        self.pending.grow_old(COMMITS_TO_WAIT);
        Ok(())
    }

    /// Rechecks waiting rows: they may lie in a data chunk that was unknown when they were written.
    fn find_data(&self, waiting: &[(u16, Piece)], rows: &mut Rows) {
        if !self.pending.has_unmapped {
            return;
        }
        let of_data = waiting.iter().filter_map(|&(disk, piece)| {
            let place = self.volume.place(disk, piece.offset)?;
            (place.flags & flag::DATA != 0).then_some((piece.row, place.copy))
        });
        let mut of_data: Vec<_> = of_data.collect();
        of_data.sort_unstable();
        for (number, copy) in of_data {
            let row = rows.get_mut(number);
            if let Some(row) = row.filter(|row| row.structure == Structure::Unknown) {
                is_of_data(row, copy);
            }
        }
    }

    fn settle_part(
        &mut self,
        step: &mut Step<'_, '_>,
        (disk, waiting): (u16, Piece),
        at: u64,
        extent_roots: [Option<u64>; 2],
        settled: &mut Settled,
    ) -> Result<u64> {
        let (offset, rest) = (waiting.offset + at, waiting.length - at);
        let sector = u64::from(self.volume.sector_bytes).min(rest);
        let Some(place) = self.volume.place(disk, offset) else {
            return Ok(rest);
        };
        let run = place.run.min(rest);
        let Some(logical) = place.logical else {
            // The chunk was unknown when the row was written.
            self.pending.claim(disk, offset, run, step.rows, |row| {
                row.structure = Structure::Parity;
                row.copy = place.copy;
                because_written(row, Cause::Accounting);
            });
            return Ok(run);
        };
        if place.flags & flag::DATA == 0 {
            return Ok(run);
        }
        // `btrfs replace` copies older data to the new disk.
        let of_older = match self.volume.devices.is_replacement(disk) {
            true => Cause::Relocation,
            false => Cause::Data,
        };
        for (root, cause) in extent_roots.into_iter().zip([of_older, Cause::Data]) {
            let Some(root) = root else { continue };
            let Some(owner) = owner_of(&mut self.volume, step.disks, root, logical)? else {
                continue;
            };
            let run = (owner.end - logical).min(place.run).min(rest);
            if owner.tree == tree::DATA_RELOCATION {
                // Keep waiting until balance updates the files, however many commits that takes: it
                // moves one block group at a time.
                if let Some(row) = step.rows.get_mut(waiting.row) {
                    because_written(row, Cause::Relocation);
                }
                self.pending.renew(disk, waiting);
                return Ok(run);
            }
            let found = Found {
                tree: owner.tree,
                inode: owner.inode,
                path: self.path(step, owner.tree, owner.inode)?,
                file_offset: owner.file_offset,
                copy: place.copy,
                generation: None,
                cause,
            };
            let numbers = self.pending.take(disk, offset, run, step.rows);
            settled.add(numbers, found, offset);
            return Ok(run);
        }
        Ok(sector)
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::Chunk;
    use super::super::devices::{Devices, REPLACEMENT};
    use super::super::metadata::Volume;
    use super::super::superblock::Super;
    use super::*;
    use crate::{Disks, NO_INODE};
    use fscost_recording::{DiskInfo, Header, Recording, Stripped, Writer};

    fn row(cause: Cause) -> Row {
        Row {
            structure: Structure::Unknown,
            causes: Causes::one(cause),
            ..Row::data(0, 4096)
        }
    }

    #[test]
    fn data_of_a_chunk_that_was_not_known_is_data_and_that_of_mkfs_stays_its() {
        for (cause, expected) in [
            (Cause::Unknown, Cause::Data),
            (Cause::Format, Cause::Format),
        ] {
            let mut row = row(cause);
            is_of_data(&mut row, 1);
            assert_eq!(row.causes, Causes::one(expected));
            assert_eq!((row.structure, row.copy), (Structure::FileData, 1));
        }
    }

    #[test]
    fn rows_get_the_owner_that_was_found_for_each() {
        let mut rows = Rows::default();
        for _ in 0..4 {
            rows.push(row(Cause::Unknown));
        }
        let found = |inode| Found {
            tree: tree::FS,
            inode,
            path: None,
            file_offset: Some(0),
            copy: 0,
            generation: None,
            cause: Cause::Data,
        };
        let mut settled = Settled::default();
        settled.add(vec![3], found(7), 0);
        settled.add(vec![1], found(7), 0);
        settled.add(vec![0], found(8), 0);
        settled.complete(&mut rows);
        let rows = rows.to_vec();
        let inodes: Vec<_> = rows.iter().map(|row| row.inode).collect();
        assert_eq!(inodes, [8, 7, NO_INODE, 7]);
    }

    const NODE_BYTES: usize = 4096;
    const DATA_CHUNK: u64 = 1 << 30;

    fn bytes_of(fields: &[(usize, u64)], length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        for &(at, value) in fields {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// Returns a leaf of the extent tree, with extents of one sector that inodes of these numbers
    /// own.
    fn leaf(bytenr: u64, inodes: &[u64]) -> Vec<u8> {
        const ITEM_BYTES: usize = 53;
        let header = [(48, bytenr), (88, tree::EXTENT), (96, inodes.len() as u64)];
        let mut leaf = bytes_of(&header, NODE_BYTES);
        for (number, &inode) in inodes.iter().enumerate() {
            let (entry, place) = (101 + 25 * number, 1000 + ITEM_BYTES * number);
            let extent = DATA_CHUNK + 4096 * number as u64;
            let fields = (place as u64) | (ITEM_BYTES as u64) << 32;
            let key = bytes_of(&[(0, extent), (9, 4096), (17, fields)], 25);
            leaf[entry..entry + 25].copy_from_slice(&key);
            leaf[entry + 8] = kind::EXTENT_ITEM;
            // An extent of data, with one reference in a file.
            let mut item = bytes_of(&[(16, 1), (25, tree::FS), (33, inode)], ITEM_BYTES);
            item[24] = kind::EXTENT_DATA_REF;
            leaf[101 + place..101 + place + ITEM_BYTES].copy_from_slice(&item);
        }
        leaf
    }

    /// Returns a file system whose first device, disk 0, is being replaced by disk 1.
    fn replacing() -> Volume {
        let size = u64::from(NODE_BYTES as u32);
        let mut superblock = bytes_of(&[(0x90, size | size << 32)], NODE_BYTES);
        superblock[0x40..0x48].copy_from_slice(b"_BHRfS_M");
        let mut devices = Devices::default();
        devices.join(0, 1);
        devices.join(1, REPLACEMENT);
        devices.replaced = Some(1);
        let mut volume = Volume::new(&Super::parse(&superblock).unwrap(), devices);
        let chunk = [
            (0, 1 << 20),
            (24, flag::DATA),
            (44, 1),
            (48, 1),
            (56, 1 << 20),
        ];
        let (chunk, _) = Chunk::parse(DATA_CHUNK, &bytes_of(&chunk, 80)).unwrap();
        volume.chunks.insert(chunk);
        volume
    }

    #[test]
    fn what_a_replacement_target_gets_of_older_data_is_moved() {
        let folder = tempfile::tempdir().unwrap();
        let header = Header {
            begin_unix_ns: 0,
            disks: vec![DiskInfo {
                name: "main".into(),
                size_bytes: 1 << 20,
                logical_block_bytes: 512,
                physical_block_bytes: 512,
            }],
            stripped: Stripped::No,
        };
        let path = folder.path().join("recording");
        Writer::create(&path, &header).unwrap().finish().unwrap();
        let recording = Recording::open(&path).unwrap();
        let (mut disks, mut rows) = (Disks::new(&recording).unwrap(), Rows::default());
        let mut follower = Follower::new(replacing());
        let [old, new] = [1 << 20, 2 << 20];
        follower.volume.put(&leaf(old, &[257]));
        follower.volume.put(&leaf(new, &[257, 258]));
        for disk in [0, 1] {
            let row = Row {
                disk,
                ..Row::data(1 << 20, 8192)
            };
            follower.pending.push(row, &mut rows);
        }
        let mut step = Step::new((None, None), &mut disks, &mut rows);
        step.roots.insert(tree::EXTENT, (Some(old), Some(new)));
        step.roots.insert(tree::FS, (None, None));
        follower.settle(&mut step).unwrap();
        let rows = rows.to_vec().into_iter();
        let mut found: Vec<_> = rows.map(|r| (r.disk, r.inode, r.causes)).collect();
        found.sort_unstable_by_key(|&(disk, inode, _)| (disk, inode));
        let expected = [
            (0, 257, Cause::Data),
            (0, 258, Cause::Data),
            (1, 257, Cause::Relocation),
            (1, 258, Cause::Data),
        ];
        let expected = expected.map(|(disk, inode, cause)| (disk, inode, Causes::one(cause)));
        assert_eq!(found, expected);
    }
}
