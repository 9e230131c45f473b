//! nilfs2 (include/uapi/linux/nilfs2_ondisk.h): a log of partial segments. Each begins with a
//! summary that describes its blocks.

mod journal;
mod metadata;

use crate::disks::read_bytes;
use crate::track::files::{Files, Owner, Part, cause_of, the_only};
use crate::track::fingerprints::{Fingerprints, causes_of};
use crate::track::follower::Follower;
use crate::{Cause, Causes, Family, FormattedDisks, NO_INODE, Now, Rows, Structure, Write};
use fscost_ondisk::nilfs2::ifile::{self, Kind, Layout};
use fscost_ondisk::nilfs2::summary::Summary;
use fscost_ondisk::nilfs2::superblock::{self, Geometry};
use fscost_ondisk::nilfs2::{CPFILE, DAT, IFILE, SUFILE, directory};
use fscost_recording::{Image, Result};
use std::collections::HashMap;
use std::ops::Range;

const ROOT: u64 = 2;
/// Maximum number of blocks kept in memory until the next checkpoint.
const MOST_OPEN: usize = 1 << 20;

/// Returns the family that follows `disk` if the disk holds a nilfs2 file system. `image` is the
/// disk as mkfs left it.
pub fn detect(
    _formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let superblock = read_bytes::<{ superblock::BYTES }>(image, superblock::AT)?;
    let geometry = superblock.and_then(|bytes| Geometry::parse(&bytes, image.size_bytes()));
    Ok(geometry.map(|geometry| {
        Box::new(Nilfs2 {
            disk,
            files: Files::new(ROOT, Structure::Unknown),
            layout: Layout::new(geometry.block_bytes, geometry.inode_bytes),
            payload: 0..0,
            moved: Vec::new(),
            sequence: 0,
            offsets: HashMap::new(),
            kinds: HashMap::new(),
            open: HashMap::new(),
            open_blocks: 0,
            inodes: HashMap::new(),
            geometry,
        }) as Box<dyn Family>
    }))
}

struct Nilfs2 {
    disk: u16,
    geometry: Geometry,
    files: Files,
    layout: Layout,
    /// Blocks of the last partial segment, after its summary.
    payload: Range<u64>,
    /// Blocks of `payload` that the cleaner moved.
    moved: Vec<Range<u64>>,
    /// Sequence number of the last partial segment.
    sequence: u64,
    /// Places in the file of blocks that belong to the ifile, or that may belong to a directory.
    offsets: HashMap<u64, u64>,
    kinds: HashMap<u64, Structure>,
    /// Blocks written since the last checkpoint, with their places in the file. The ifile may show
    /// that their inode now has another kind.
    open: HashMap<u64, Vec<(u64, u64)>>,
    /// Total number of blocks in `open`.
    open_blocks: usize,
    /// Fingerprints and generation of each inode.
    inodes: HashMap<u64, (u32, Fingerprints)>,
}

impl Follower for Nilfs2 {
    const IS_ATOMIC: bool = true;

    fn name(&self) -> &'static str {
        "nilfs2"
    }

    fn owns(&self, disk: u16) -> bool {
        disk == self.disk
    }

    fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    fn follow(&mut self, now: &mut Now<'_, '_>) -> Result<()> {
        let geometry = &self.geometry;
        let begin = geometry.first_block * geometry.block_bytes;
        let end = geometry.end_block.saturating_mul(geometry.block_bytes);
        let backup_at = geometry.backup_at;
        let mut rest = *now.write;
        while rest.length > 0 {
            let (structure, until) = match rest.offset {
                ..4096 => (Structure::Superblock, 4096),
                at if at < begin => (Structure::Unused, begin),
                at if at < end.min(backup_at) => {
                    let segments = rest.part(0, rest.length.min(end.min(backup_at) - at));
                    let explained = self.log(&segments, now)?;
                    rest.take_front(explained);
                    continue;
                }
                at if at < backup_at => (Structure::Unused, backup_at),
                _ => (Structure::SuperblockBackup, u64::MAX),
            };
            let piece = rest.take_front(rest.length.min(until - rest.offset));
            let part = Part::new(structure, cause_of(structure));
            self.files.add(&piece, part, now.rows);
        }
        Ok(())
    }
}
