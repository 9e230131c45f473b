//! f2fs (include/linux/f2fs_fs.h): metadata areas at fixed places, and a main area whose segments
//! hold either nodes or data.
//!
//! A node identifies itself in its footer, with the version of the checkpoint before it. It reaches
//! the disk after the data that it points to, and before the next checkpoint. Rows of
//! data therefore wait for it.

mod checkpoint;
mod metadata;

use crate::disks::read_bytes;
use crate::track::files::{Files, Owner, Part, cause_of, runs};
use crate::track::fingerprints::{Fingerprints, causes_of};
use crate::track::follower::Follower;
use crate::track::names::Entry;
use crate::{Cause, Causes, Family, FormattedDisks, Now, Rows, Structure, Write};
use checkpoint::Checkpoints;
use fscost_ondisk::f2fs::node::{Kind, Node};
use fscost_ondisk::f2fs::superblock::Geometry;
use fscost_ondisk::f2fs::{BLOCK, directory};
use fscost_recording::{Image, Result};
use std::collections::HashMap;

/// Number of checkpoints for which rows of data wait for their node, which is in the next one.
const PATIENCE: u32 = 2;

/// Returns the family that follows `disk` if the disk holds an f2fs file system. `image` is the
/// disk as mkfs left it.
pub fn detect(
    _formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let block = read_bytes::<{ BLOCK as usize }>(image, 0)?;
    let geometry = block.and_then(|block| Geometry::parse(&block));
    Ok(geometry.map(|geometry| {
        Box::new(F2fs {
            disk,
            files: Files::new(geometry.root, Structure::FileData),
            checkpoints: Checkpoints::new(&geometry),
            kinds: HashMap::new(),
            versions: HashMap::new(),
            directories: HashMap::new(),
            given: HashMap::new(),
            geometry,
        }) as Box<dyn Family>
    }))
}

/// Returns the structure of a block outside the main area, and the end of its area.
fn area(geometry: &Geometry, block: u64) -> (Structure, u64) {
    let areas = [
        (Structure::Superblock, 1),
        (Structure::SuperblockBackup, 2),
        (Structure::Unused, geometry.checkpoints),
        (Structure::Checkpoint, geometry.sit),
        (Structure::Sit, geometry.nat),
        (Structure::Nat, geometry.summaries),
        (Structure::SegmentSummary, geometry.main),
    ];
    let found = areas.into_iter().find(|&(_, end)| block < end);
    found.unwrap_or((Structure::Unused, u64::MAX))
}

struct F2fs {
    disk: u16,
    geometry: Geometry,
    checkpoints: Checkpoints,
    files: Files,
    /// Structure of an inode's data blocks, unless it is a regular file.
    kinds: HashMap<u32, Structure>,
    /// Last written version of each node, by number, with its generation.
    versions: HashMap<u32, (u32, Fingerprints)>,
    /// Location of each block of a directory, by node and index.
    directories: HashMap<(u32, usize), u64>,
    /// Directory and name of inodes whose name an fsync made durable, but no directory block holds
    /// yet.
    given: HashMap<u64, (u64, Box<[u8]>)>,
}

/// Place of names that are known only from an fsync.
const GIVEN: (u64, u64) = (0, 0);
/// Place of names that are stored in the inode itself.
const INLINE: u64 = u64::MAX;

impl Follower for F2fs {
    const IS_ATOMIC: bool = true;

    fn name(&self) -> &'static str {
        "f2fs"
    }

    fn owns(&self, disk: u16) -> bool {
        disk == self.disk
    }

    fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    fn follow(&mut self, now: &mut Now<'_, '_>) -> Result<()> {
        let write = now.write;
        let mut rest = *write;
        // Consecutive data blocks form one part. The names in directory blocks take effect when a
        // node points to the blocks.
        let mut data_from = None;
        while rest.length > 0 {
            let done = write.length - rest.length;
            let block = rest.offset / BLOCK;
            let in_main = (self.geometry.main..self.geometry.end).contains(&block);
            // A write-zeroes request may be as long as the disk, and has no nodes.
            let end = match (in_main, write.content.is_empty()) {
                (true, false) => block + 1,
                (true, true) => self.geometry.end,
                (false, _) => area(&self.geometry, block).1,
            };
            let length = end.saturating_mul(BLOCK).saturating_sub(rest.offset);
            let piece = rest.take_front(length.min(rest.length));
            let node = in_main.then(|| self.node(&piece, block)).flatten();
            if in_main && node.is_none() {
                data_from.get_or_insert(done);
            } else if let Some(from) = data_from.take() {
                self.files
                    .add_owned(&write.part(from, done - from), now.rows);
            }
            match node {
                Some(node) => self.add_node(&piece, &node, now)?,
                None if !in_main => self.area(&piece, now.rows),
                None => {}
            }
        }
        if let Some(from) = data_from {
            self.files
                .add_owned(&write.part(from, write.length - from), now.rows);
        }
        Ok(())
    }
}

impl F2fs {
    /// Explains part of a write to one of the areas at fixed places.
    fn area(&mut self, write: &Write<'_>, rows: &mut Rows) {
        let (structure, _) = area(&self.geometry, write.offset / BLOCK);
        let mut part = Part::new(structure, cause_of(structure));
        if structure != Structure::Checkpoint {
            self.files.add(write, part, rows);
            return;
        }
        let mut rest = *write;
        while rest.length > 0 {
            let piece = rest.take_front((BLOCK - rest.offset % BLOCK).min(rest.length));
            let ends = self.checkpoints.block(piece.offset / BLOCK, piece.content);
            part.transaction = self.checkpoints.being_written();
            self.files.add(&piece, part, rows);
            if ends {
                self.files.commit(PATIENCE, rows);
            }
        }
    }

    /// Returns the node in a block of the main area, if it holds one.
    fn node<'b>(&self, write: &Write<'b>, block: u64) -> Option<Node<'b>> {
        let segment = self.geometry.segment(block);
        if self.checkpoints.is_data(segment) {
            return None;
        }
        let node = Node::parse(write.content)?;
        let is_new = self.checkpoints.is_now(node.version) || write.formatting;
        (is_new || self.checkpoints.is_node(segment)).then_some(node)
    }
}
