//! jfs (fs/jfs/jfs_filsys.h, jfs_dinode.h, jfs_imap.h): a map locates extents of inodes, and the
//! trees in the inodes locate data and names.
//!
//! The log has after-images of changed parts of pages, which are written home much later. Without
//! the log, the owner of data is doubtful until the inode that has it is written.

mod blocks;
mod journal;
mod metadata;

use crate::disks::read_bytes;
use crate::track::files::{Files, Owner, Part, the_only};
use crate::track::fingerprints::{Fingerprints, causes_of};
use crate::track::follower::{Follower, log_disk};
use crate::{Cause, Causes, Family, FormattedDisks, Now, Rows, Structure, Write};
use blocks::OwnPage;
use fscost_ondisk::jfs::inode::{self, Inode, Kind};
use fscost_ondisk::jfs::superblock::{self, LOG_AT, OWN_END, PAGE, Superblock};
use fscost_ondisk::jfs::{log, tree};
use fscost_recording::{Image, Result};
use log::Log;

use std::collections::HashMap;
use tree::Node;

/// The file system's own files: the map of blocks, and the map of the inodes of all other files.
const BLOCK_MAP_FILE: u64 = 2;
const INODE_MAP_FILE: u64 = 16;
const ROOT: u64 = 2;
/// Key in place of a tree page, for the extent of an inode's attributes.
const ATTRIBUTES: u64 = 1;
/// Limits on depth and on pages read for one write. Maps lead to inodes and these to trees, and
/// untrusted content may form a loop.
const DEEPEST: u32 = 16;
const MOST_READ: u32 = 4096;

/// Returns the family that follows `disk` if the disk holds a jfs file system. `image` is the disk
/// as mkfs left it.
pub fn detect(
    formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let bytes = read_bytes::<{ superblock::BYTES }>(image, superblock::AT)?;
    let Some(superblock) = bytes.filter(|_| image.size_bytes() >= OWN_END) else {
        return Ok(None);
    };
    let found = Superblock::parse(&superblock).filter(|found| found.block_bytes() == PAGE);
    let log_disk = match found.map(|found| found.log()) {
        None => return Ok(None),
        Some((_, 1..)) => None,
        Some(_) => log_disk(formatted, disk, is_log)?,
    };
    Ok(Some(Box::new(Jfs {
        disk,
        end: image.size_bytes(),
        log_disk,
        files: Files::doubting(ROOT, Structure::FileData),
        superblock: Some(superblock.into()),
        ..Jfs::default()
    })))
}

/// Returns whether the image begins with a `struct logsuper`.
fn is_log(image: &mut Image<'_>) -> Result<bool> {
    let magic = read_bytes::<4>(image, LOG_AT)?;
    Ok(magic.is_some_and(|magic| superblock::is_log(&magic)))
}

#[derive(Default)]
struct Jfs {
    disk: u16,
    end: u64,
    log_disk: Option<u16>,
    files: Files,
    /// Superblock as mkfs left it, until the first write.
    superblock: Option<Vec<u8>>,
    /// Number of pages that may still be read for the current write.
    left: u32,
    /// Number of pages being read, each of which locates the next.
    depth: u32,
    /// Structure of the blocks of each inode's tree.
    kinds: HashMap<u64, Structure>,
    inodes: HashMap<u64, (u32, Fingerprints)>,
    /// Pages of the file system's own files that locate other blocks.
    own_pages: HashMap<u64, OwnPage>,
    log: Log,
    /// Pages with after-images in the log, with these applied. They are newer than the pages at
    /// home.
    logged: HashMap<u64, Vec<u8>>,
    /// Inodes in use according to the log.
    generations: HashMap<u64, u32>,
    /// Extents by inode and by tree page. The page is 0 for the root of the tree, or
    /// [`ATTRIBUTES`].
    held: HashMap<u64, HashMap<u64, Vec<(u64, u64)>>>,
}

impl Follower for Jfs {
    const IS_ATOMIC: bool = false;

    fn name(&self) -> &'static str {
        "jfs"
    }

    fn owns(&self, disk: u16) -> bool {
        disk == self.disk || Some(disk) == self.log_disk
    }

    fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    fn follow(&mut self, now: &mut Now<'_, '_>) -> Result<()> {
        let mut rest = *now.write;
        if rest.disk != self.disk {
            return self.log(&rest, now);
        }
        if let Some(bytes) = self.superblock.take()
            && let Some(superblock) = Superblock::parse(&bytes)
        {
            self.own_areas(superblock, now.rows);
        }
        self.left = MOST_READ;
        while rest.length > 0 {
            let (owner, mut length) = self.files.owner(rest.offset, rest.length);
            let structure = owner.map_or(Structure::Unknown, |owner| owner.structure);
            let is_read = matches!(
                structure,
                Structure::InodeTable
                    | Structure::InodeBitmap
                    | Structure::BlockBitmap
                    | Structure::Directory
                    | Structure::ExtentMap
            );
            if is_read && !rest.content.is_empty() {
                length = length.min(PAGE - rest.offset % PAGE);
            }
            let piece = rest.take_front(length);
            self.files.confirm(piece.offset, piece.length, now.rows);
            match owner {
                _ if structure == Structure::InodeTable => {
                    let is_newest = !self.logged.contains_key(&piece.offset);
                    let (causes, inode) = self.inodes(piece.content, is_newest, now)?;
                    let part = Part {
                        structure,
                        causes,
                        inode,
                        ..Part::default()
                    };
                    self.files.add_waiting(&piece, part, now.rows);
                    if is_newest && causes.has(Cause::InodeRemoved) {
                        self.files.forget(inode, now.rows);
                    }
                }
                Some(_) if self.logged.contains_key(&piece.offset) => {
                    self.files.add_owned(&piece, now.rows);
                }
                Some(owner) if is_read => {
                    self.files.add_owned(&piece, now.rows);
                    self.page(piece.offset, piece.content, owner, now)?;
                }
                Some(_) if structure == Structure::Log => self.log(&piece, now)?,
                _ => self.files.add_owned(&piece, now.rows),
            }
            if is_clean(&piece) {
                self.files.commit(1, now.rows);
            }
        }
        Ok(())
    }
}

/// Returns whether the write marks the superblock clean (`FM_CLEAN`) at unmount. Everything else is
/// on the disk before it (`jfs_umount`).
fn is_clean(write: &Write<'_>) -> bool {
    write.offset == superblock::AT
        && Superblock::parse(write.content).is_some_and(Superblock::is_clean)
}
