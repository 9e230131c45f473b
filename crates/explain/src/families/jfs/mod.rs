//! jfs (fs/jfs/jfs_filsys.h, jfs_dinode.h, jfs_imap.h): inodes in extents that a map names, whose
//! trees say where data and names are.
//!
//! The log has after-images of changed parts of pages, which reach their home much later. Without
//! it, data is doubtful until the inode that has it is written.

mod log;
mod logged;
mod own;
mod tree;

use crate::bytes::{byte, le32, le64, part};
use crate::track::files::{Files, Owner, Part};
use crate::track::fingerprints::{Fingerprints, of};
use crate::track::follower::{Follower, log_disk};
use crate::{Cause, Causes, Disks, Family, FormattedDisks, NO_INODE, Now, Rows, Structure, Write};
use fscost_recording::{Image, Result};
use log::Log;
use own::OwnPage;
use std::collections::HashMap;
use tree::{Node, extent};

const PAGE: u64 = 4096;
const INODE: usize = 512;
const SUPERBLOCK: u64 = 0x8000;
const STATE: usize = 40;
const CLEAN: u32 = 0;
const INODE_MAP: u64 = 0x9000;
/// The inodes of the file system's own files.
const OWN_INODES: u64 = 0xb000;
const BACKUP: u64 = 0xf000;
const OWN_END: u64 = 0x1_0000;
/// The own file that maps blocks, and the one that maps inodes of all others.
const BLOCK_MAP_FILE: u64 = 2;
const INODE_MAP_FILE: u64 = 16;
const ROOT: u64 = 2;
/// In the place of a page of an inode's tree: where its attributes are.
const ATTRIBUTES: u64 = 1;
/// In an inode, and in a page of the map: where its tree is, and the extents of inodes.
const TREE: usize = 224;
const DIRECTORY_TABLE: usize = 128;
const MAP_EXTENTS: usize = 3072;
/// Maps lead to inodes, and these to trees: not deeper than this, and not to more pages for one
/// write. Hostile content may make a loop.
const DEEPEST: u32 = 16;
const MOST_READ: u32 = 4096;
const LOG_AT: u64 = 4096;
const LOG_MAGIC: u32 = 0x8765_4321;

/// The family that follows `disk`, if it holds one. `image` is the disk as mkfs left it.
pub fn detect(
    formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let mut superblock = [0; 128];
    if image.size_bytes() < OWN_END {
        return Ok(None);
    }
    image.read_at(SUPERBLOCK, &mut superblock)?;
    if !superblock.starts_with(b"JFS1") || u64::from(le32(&superblock, 16)) != PAGE {
        return Ok(None);
    }
    let is_inline = extent(&superblock, 72).1 > 0;
    let log_disk = if is_inline {
        None
    } else {
        log_disk(formatted, disk, is_log)?
    };
    Ok(Some(Box::new(Jfs {
        disk,
        end: image.size_bytes(),
        log_disk,
        files: Files::doubting(ROOT, Structure::FileData),
        superblock: Some(superblock),
        left: 0,
        kinds: HashMap::new(),
        inodes: HashMap::new(),
        own_pages: HashMap::new(),
        log: Log::default(),
        logged: HashMap::new(),
        generations: HashMap::new(),
        held: HashMap::new(),
    })))
}

/// Whether it begins with a `struct logsuper`.
fn is_log(image: &mut Image<'_>) -> Result<bool> {
    let mut magic = [0; 4];
    if image.size_bytes() > LOG_AT + 4 {
        image.read_at(LOG_AT, &mut magic)?;
    }
    Ok(le32(&magic, 0) == LOG_MAGIC)
}

struct Jfs {
    disk: u16,
    end: u64,
    log_disk: Option<u16>,
    files: Files,
    /// As mkfs left it, until the first write.
    superblock: Option<[u8; 128]>,
    /// How many pages may still be read for this write.
    left: u32,
    /// What the blocks of an inode's tree are.
    kinds: HashMap<u64, Structure>,
    inodes: HashMap<u64, (u32, Fingerprints)>,
    /// Pages of its own files that say where others are.
    own_pages: HashMap<u64, OwnPage>,
    log: Log,
    /// Pages that the log has after-images of, with these: they are ahead of home.
    logged: HashMap<u64, Vec<u8>>,
    /// Of inodes in use, as the log knows them.
    generations: HashMap<u64, u32>,
    /// Extents by inode and by the page of its tree, or 0 for its root, or [`ATTRIBUTES`].
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

    fn follow(&mut self, write: &Write<'_>, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        if write.disk != self.disk {
            self.files.flush(rows);
            self.files
                .add(write, Part::new(Structure::Log, Cause::Log), rows);
            return self.log(write, disks, rows);
        }
        if let Some(superblock) = self.superblock.take() {
            self.own_areas(&superblock, rows);
        }
        self.left = MOST_READ;
        let mut now = Now { write, disks };
        let mut done = 0;
        while done < write.length {
            let offset = write.offset + done;
            let (owner, mut length) = self.files.owner(offset, write.length - done);
            let structure = owner.map_or(Structure::Unknown, |owner| owner.structure);
            let is_read = matches!(
                structure,
                Structure::InodeTable
                    | Structure::InodeBitmap
                    | Structure::BlockBitmap
                    | Structure::Directory
                    | Structure::ExtentMap
            );
            if is_read && !write.content.is_empty() {
                length = length.min(PAGE - offset % PAGE);
            }
            let piece = write.part(done, length);
            done += length;
            self.files.confirm(piece.offset, piece.length, rows);
            match owner {
                _ if structure == Structure::InodeTable => {
                    let is_news = !self.logged.contains_key(&piece.offset);
                    let (causes, inode) =
                        self.inodes(piece.content, is_news, DEEPEST, &mut now, rows)?;
                    let part = Part {
                        causes,
                        inode,
                        ..Part::new(structure, Cause::Unknown)
                    };
                    self.files.add_waiting(&piece, part, rows);
                    if is_news && causes.has(Cause::InodeRemoved) {
                        self.files.forget(inode, rows);
                    }
                }
                Some(_) if self.logged.contains_key(&piece.offset) => {
                    self.files.add_owned(&piece, rows);
                }
                Some(owner) if is_read => {
                    self.files.add_owned(&piece, rows);
                    self.page(piece.offset, piece.content, owner, DEEPEST, &mut now, rows)?;
                }
                Some(_) if structure == Structure::Log => {
                    self.files.flush(rows);
                    self.files
                        .add(&piece, Part::new(structure, Cause::Log), rows);
                    self.log(&piece, now.disks, rows)?;
                }
                _ => self.files.add_owned(&piece, rows),
            }
            if is_clean(&piece) {
                self.files.commit(1, rows);
            }
        }
        Ok(())
    }
}

/// Whether the superblock is written of a file system that is not mounted any more (`FM_CLEAN`):
/// all else is on the disk before it (`jfs_umount`).
fn is_clean(write: &Write<'_>) -> bool {
    write.offset == SUPERBLOCK
        && write.content.starts_with(b"JFS1")
        && le32(write.content, STATE) == CLEAN
}

/// Where a node of a tree of names is.
enum Place {
    /// A page of its own.
    Page(u64),
    /// The inode.
    Root,
}

impl Jfs {
    /// A page of a map or of a tree.
    fn page(
        &mut self,
        at: u64,
        page: &[u8],
        owner: Owner,
        deepest: u32,
        now: &mut Now<'_, '_>,
        rows: &mut Rows,
    ) -> Result<()> {
        match owner.structure {
            Structure::InodeBitmap | Structure::BlockBitmap => {
                match self.own_pages.get(&at) {
                    Some(OwnPage::Inodes) => {}
                    Some(&OwnPage::Tree(file)) => {
                        return self.own_extents(file, page, deepest, now, rows);
                    }
                    None => return Ok(()),
                }
                let table = Owner {
                    inode: NO_INODE,
                    structure: Structure::InodeTable,
                };
                for number in 0..128 {
                    let extent = extent(page, MAP_EXTENTS + 8 * number);
                    if extent.1 > 0 {
                        self.own_read(extent, table, None, deepest, now, rows)?;
                    }
                }
                Ok(())
            }
            Structure::Directory => self.names(page, Place::Page(at), owner, deepest, now, rows),
            Structure::ExtentMap => self.extents(page, at, owner.inode, deepest, now, rows),
            _ => Ok(()),
        }
    }

    /// A node of a tree of extents, in this page, or 0 for the root.
    fn extents(
        &mut self,
        node: &[u8],
        place: u64,
        inode: u64,
        deepest: u32,
        now: &mut Now<'_, '_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let structure = self.kinds.get(&inode).copied();
        let structure = structure.unwrap_or(Structure::FileData);
        match tree::extents(node) {
            Node::Leaf(entries) => {
                let extents: Vec<_> = entries.iter().map(|entry| entry.extent).collect();
                self.hold(inode, place, &extents, rows);
                for extent in extents {
                    self.own(extent, inode, structure, rows);
                }
            }
            Node::Internal(pages) => {
                self.hold(inode, place, &[], rows);
                let owner = Owner {
                    inode,
                    structure: Structure::ExtentMap,
                };
                for page in pages {
                    self.own_read(page, owner, None, deepest, now, rows)?;
                }
            }
        }
        Ok(())
    }

    /// A node of a tree of names.
    fn names(
        &mut self,
        node: &[u8],
        place: Place,
        owner: Owner,
        deepest: u32,
        now: &mut Now<'_, '_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let key = match place {
            Place::Page(at) => (0, at),
            Place::Root => (1, owner.inode),
        };
        match tree::names(node, matches!(place, Place::Root)) {
            Node::Leaf(entries) => {
                let entries = entries
                    .iter()
                    .map(|(name, inode)| (name.as_bytes(), *inode));
                let entries: Vec<_> = entries.collect();
                self.files.name_at(key, owner.inode, &entries);
            }
            Node::Internal(pages) => {
                self.files.name_at(key, owner.inode, &[]);
                for page in pages {
                    self.own_read(page, owner, None, deepest, now, rows)?;
                }
            }
        }
        Ok(())
    }

    /// A page of inodes. Returns why it was written, and for which inode, if it is one. Its
    /// content is learned only if it `is_news`: otherwise the log already said something newer.
    fn inodes(
        &mut self,
        page: &[u8],
        is_news: bool,
        deepest: u32,
        now: &mut Now<'_, '_>,
        rows: &mut Rows,
    ) -> Result<(Causes, u64)> {
        let mut causes = Causes::NONE;
        let mut changed = Vec::new();
        for slot in page.chunks_exact(INODE) {
            let inode = u64::from(le32(slot, 8));
            match u64::from(le32(slot, 4)) {
                1 => {
                    let tree = part(slot, TREE, INODE);
                    self.own_extents(inode, tree, deepest, now, rows)?;
                    continue;
                }
                INODE_MAP_FILE => {}
                _ => continue,
            }
            if le32(slot, 40) == 0 {
                if self.inodes.remove(&inode).is_some() {
                    if is_news {
                        self.generations.remove(&inode);
                        self.files.forget(inode, rows);
                    }
                    causes = causes.with(Cause::InodeRemoved);
                    changed.push(inode);
                }
                continue;
            }
            let (generation, version) = (le32(slot, 12), fingerprints(slot));
            let why = match self.inodes.insert(inode, (generation, version)) {
                Some((of, before)) if of == generation && before == version => {
                    // What was written to where it still has its data is its: `diWrite` comes
                    // before its blocks are free (`txUpdateMap`).
                    if is_news && kind(slot) != Structure::Directory {
                        self.inode(inode, slot, deepest, now, rows)?;
                    }
                    continue;
                }
                Some((of, before)) if of == generation => version.causes(&before),
                Some(_) => {
                    if is_news {
                        self.files.forget(inode, rows);
                    }
                    Causes::one(Cause::NewInode)
                }
                None => Causes::one(Cause::NewInode),
            };
            causes = causes.and(why);
            changed.push(inode);
            if is_news {
                self.generations.insert(inode, generation);
                self.inode(inode, slot, deepest, now, rows)?;
            }
        }
        let causes = match causes.is_empty() {
            true => Causes::one(Cause::Unchanged),
            false => causes,
        };
        Ok(match changed[..] {
            [inode] => (causes, inode),
            _ => (causes, NO_INODE),
        })
    }

    /// Where an inode's data, names and attributes are.
    fn inode(
        &mut self,
        inode: u64,
        slot: &[u8],
        deepest: u32,
        now: &mut Now<'_, '_>,
        rows: &mut Rows,
    ) -> Result<()> {
        // DXD_EXTENT
        let attributes = (byte(slot, 104) & 0x20 != 0).then(|| extent(slot, 112));
        self.hold(inode, ATTRIBUTES, attributes.as_slice(), rows);
        if let Some(extent) = attributes {
            self.own(extent, inode, Structure::Xattr, rows);
        }
        let kind = kind(slot);
        let data = match kind {
            Structure::Directory => Structure::DirectoryIndex,
            other => other,
        };
        self.kinds.insert(inode, data);
        if kind != Structure::Directory {
            // A short target is in the place of the tree.
            if kind == Structure::Symlink && le64(slot, 24) < 256 {
                return Ok(());
            }
            return self.extents(part(slot, TREE, INODE), 0, inode, deepest, now, rows);
        }
        // A table of more names than fit here has a tree of extents in its place
        // (`jfs_dirtable_inline`; its numbers begin at 2).
        if le32(slot, 120) > 14 {
            let table = part(slot, DIRECTORY_TABLE, TREE);
            self.extents(table, 0, inode, deepest, now, rows)?;
        }
        let owner = Owner {
            inode,
            structure: Structure::Directory,
        };
        self.names(
            part(slot, TREE, INODE),
            Place::Root,
            owner,
            deepest,
            now,
            rows,
        )
    }
}

fn kind(slot: &[u8]) -> Structure {
    match le32(slot, 52) & 0xf000 {
        0x4000 => Structure::Directory,
        0xa000 => Structure::Symlink,
        _ => Structure::FileData,
    }
}

fn fingerprints(slot: &[u8]) -> Fingerprints {
    let body = of(slot, &[(120, INODE)]);
    let is_directory = kind(slot) == Structure::Directory;
    Fingerprints {
        atime: of(slot, &[(56, 64)]),
        times: of(slot, &[(64, 80)]),
        map: of(slot, &[(24, 40)]).wrapping_add(if is_directory { 0 } else { body }),
        names: if is_directory { body } else { 0 },
        attributes: of(slot, &[(40, 56), (88, 120)]),
        ..Fingerprints::default()
    }
}
