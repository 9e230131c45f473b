//! nilfs2 (include/uapi/linux/nilfs2_ondisk.h): a log of partial segments. Each begins with a
//! summary of what its blocks are.

mod ifile;
mod summary;

use crate::bytes::{byte, le16, le32, le64, part};
use crate::track::files::{Files, Owner, Part, cause_of};
use crate::track::fingerprints::Fingerprints;
use crate::track::follower::Follower;
use crate::{Cause, Causes, Disks, Family, FormattedDisks, NO_INODE, Now, Rows, Structure, Write};
use fscost_recording::{Image, Result};
use ifile::Layout;
use std::collections::HashMap;
use std::ops::Range;
use summary::Summary;

const SUPERBLOCK_AT: u64 = 1024;
const MAGIC: u16 = 0x3434;
const ROOT: u64 = 2;
const DAT: u64 = 3;
const CPFILE: u64 = 4;
const SUFILE: u64 = 5;
const IFILE: u64 = 6;
/// So many blocks are remembered until the next checkpoint.
const MOST_OPEN: usize = 1 << 20;

/// Sizes and places.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Geometry {
    block_bytes: u64,
    segment_blocks: u64,
    first_block: u64,
    end_block: u64,
    backup_at: u64,
    inode_bytes: usize,
}

impl Geometry {
    fn parse(sb: &[u8], disk_bytes: u64) -> Option<Geometry> {
        let block_log = le32(sb, 0x14);
        let segment_blocks = u64::from(le32(sb, 0x30));
        let inode_bytes = usize::from(le16(sb, 0x90));
        if le16(sb, 6) != MAGIC || block_log > 6 || !(128..=1024).contains(&inode_bytes) {
            return None;
        }
        let block_bytes = 1024 << block_log;
        let end_block = le64(sb, 0x18).checked_mul(segment_blocks)?;
        let first_block = le64(sb, 0x28);
        let is_within =
            end_block.checked_mul(block_bytes)? <= disk_bytes && first_block <= end_block;
        (is_within && segment_blocks > 0).then_some(Geometry {
            block_bytes,
            segment_blocks,
            first_block,
            end_block,
            // NILFS_SB2_OFFSET_BYTES
            backup_at: (disk_bytes >> 12).saturating_sub(1) << 12,
            inode_bytes,
        })
    }

    /// Where the segment of a block ends.
    fn segment_end(&self, block: u64) -> u64 {
        (block / self.segment_blocks + 1) * self.segment_blocks
    }
}

/// The family that follows `disk`, if it holds one. `image` is the disk as mkfs left it.
pub fn detect(
    _formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let mut superblock = [0; 1024];
    if image.size_bytes() < 2 * SUPERBLOCK_AT {
        return Ok(None);
    }
    image.read_at(SUPERBLOCK_AT, &mut superblock)?;
    let geometry = Geometry::parse(&superblock, image.size_bytes());
    Ok(geometry.map(|geometry| {
        let family: Box<dyn Family> = Box::new(Nilfs2 {
            disk,
            files: Files::new(ROOT, Structure::Unknown),
            layout: Layout::new(geometry.block_bytes, geometry.inode_bytes),
            payload: 0..0,
            sequence: 0,
            offsets: HashMap::new(),
            kinds: HashMap::new(),
            open: HashMap::new(),
            open_blocks: 0,
            inodes: HashMap::new(),
            geometry,
        });
        family
    }))
}

struct Nilfs2 {
    disk: u16,
    geometry: Geometry,
    files: Files,
    layout: Layout,
    /// Blocks of the last partial segment, behind its summary.
    payload: Range<u64>,
    /// Its sequence number.
    sequence: u64,
    /// Of its blocks that are the ifile's, or may be a directory's, the places in the file.
    offsets: HashMap<u64, u64>,
    kinds: HashMap<u64, Structure>,
    /// Blocks since the last checkpoint, with their places in the file: the ifile may tell that their inode is of another kind by
    /// now.
    open: HashMap<u64, Vec<(u64, u64)>>,
    /// How many they are.
    open_blocks: usize,
    /// With their generations.
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

    fn follow(&mut self, write: &Write<'_>, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        let mut now = Now { write, disks };
        let Geometry {
            block_bytes,
            first_block,
            end_block,
            backup_at,
            ..
        } = self.geometry;
        let (begin, end) = (
            first_block * block_bytes,
            end_block.saturating_mul(block_bytes),
        );
        let mut done = 0;
        while done < write.length {
            let offset = write.offset + done;
            let until = |at: u64| at.saturating_sub(offset).min(write.length - done);
            let (structure, length) = match offset {
                _ if offset < 4096 => (Structure::Superblock, until(4096)),
                _ if offset < begin => (Structure::Unused, until(begin)),
                _ if offset < end && offset < backup_at => {
                    done +=
                        self.log(&write.part(done, until(end.min(backup_at))), &mut now, rows)?;
                    continue;
                }
                _ if offset < backup_at => (Structure::Unused, until(backup_at)),
                _ => (Structure::SuperblockBackup, until(u64::MAX)),
            };
            let part = Part::new(structure, cause_of(structure));
            self.files.add(&write.part(done, length), part, rows);
            done += length;
        }
        Ok(())
    }
}

impl Nilfs2 {
    /// A write to the segments, up to where something else begins. Gives how much was explained.
    fn log(&mut self, write: &Write<'_>, now: &mut Now<'_, '_>, rows: &mut Rows) -> Result<u64> {
        let block_bytes = self.geometry.block_bytes;
        let block = write.offset / block_bytes;
        let rest = write.length;
        if write.content.is_empty() {
            self.files.add_owned(write, rows);
            return Ok(rest);
        }
        if !self.payload.contains(&block)
            && write.offset.is_multiple_of(block_bytes)
            && let Some(summary) = self.summary(block, write.content)
        {
            let length = (summary.blocks * block_bytes).min(rest);
            let part = Part {
                transaction: Some(summary.checkpoint),
                ..Part::new(Structure::SegmentSummary, Cause::Accounting)
            };
            self.files.add(&write.part(0, length), part, rows);
            self.begin(block, &summary, rows);
            return Ok(length);
        }
        let (owner, length) = self.files.owner(write.offset, rest);
        let (inode, structure) =
            owner.map_or((NO_INODE, Structure::Unknown), |o| (o.inode, o.structure));
        match structure {
            Structure::InodeTable => {
                let length = (block_bytes - write.offset % block_bytes).min(rest);
                self.ifile(&write.part(0, length), now, rows)?;
                return Ok(length);
            }
            Structure::Directory => self.names(inode, block, write.part(0, length).content),
            _ => {}
        }
        // Behind the last partial segment, the next block may be a summary.
        let end = match self.payload.contains(&block) {
            true => self.payload.end * block_bytes,
            false => (block + 1) * block_bytes,
        };
        let length = length.min(end - write.offset);
        self.files.add_owned(&write.part(0, length), rows);
        if structure == Structure::Checkpoint && inode == NO_INODE {
            // The super root: all before it is on its way.
            self.open.clear();
            self.open_blocks = 0;
            self.files.commit(1, rows);
        }
        Ok(length)
    }

    /// The summary that begins here. Data may look like one, but hardly with the sequence number
    /// that is next.
    fn summary(&self, block: u64, content: &[u8]) -> Option<Summary> {
        let summary = Summary::parse(content, self.geometry.block_bytes as usize)?;
        let is_next =
            self.sequence == 0 || (self.sequence..=self.sequence + 1).contains(&summary.sequence);
        let is_within = block + summary.total <= self.geometry.segment_end(block);
        (is_next && is_within).then_some(summary)
    }

    /// What follows this summary is known.
    fn begin(&mut self, block: u64, summary: &Summary, rows: &mut Rows) {
        self.sequence = summary.sequence;
        self.files.set_new(!summary.has_data_alone);
        self.payload = block + summary.blocks..block + summary.total;
        self.offsets.clear();
        let mut at = self.payload.start;
        let mut give = |files: &mut Files, count: u64, inode: u64, structure: Structure| {
            let count = count.min((block + summary.total).saturating_sub(at));
            let (offset, length) = (
                at * self.geometry.block_bytes,
                count * self.geometry.block_bytes,
            );
            files.own(offset, length, Owner { inode, structure }, rows);
            let first = at;
            at += count;
            first..at
        };
        for file in &summary.files {
            let (inode, structure) = match file.inode {
                DAT => (NO_INODE, Structure::AddressTable),
                // No inode has this number: the super root is told from it by that.
                CPFILE => (CPFILE, Structure::Checkpoint),
                SUFILE => (NO_INODE, Structure::SegmentTable),
                IFILE => (NO_INODE, Structure::InodeTable),
                inode => {
                    let kind = self.kinds.get(&inode).copied();
                    (inode, kind.unwrap_or(Structure::FileData))
                }
            };
            let data = give(&mut self.files, file.data_blocks, inode, structure);
            let placed = data.zip(file.offsets.iter().copied());
            if self.kinds.get(&file.inode) != Some(&Structure::FileData) {
                self.offsets.extend(placed.clone());
            }
            if inode > IFILE || inode == ROOT {
                let most = MOST_OPEN - self.open_blocks;
                let open = self.open.entry(inode).or_default();
                let before = open.len();
                open.extend(placed.take(most));
                self.open_blocks += open.len() - before;
            }
            let structure = match file.inode {
                DAT..=SUFILE => structure,
                _ => Structure::ExtentMap,
            };
            let nodes = file.blocks.saturating_sub(file.data_blocks);
            give(&mut self.files, nodes, inode, structure);
        }
        if summary.has_super_root {
            let last = self.payload.end.saturating_sub(1) * self.geometry.block_bytes;
            let owner = Owner {
                inode: NO_INODE,
                structure: Structure::Checkpoint,
            };
            self.files.own(last, self.geometry.block_bytes, owner, rows);
        }
    }

    /// A block of inodes.
    fn ifile(&mut self, write: &Write<'_>, now: &mut Now<'_, '_>, rows: &mut Rows) -> Result<()> {
        let mut causes = Causes::NONE;
        let mut changed = Vec::new();
        let offset = self
            .offsets
            .get(&(write.offset / self.geometry.block_bytes));
        let first = offset.and_then(|&offset| self.layout.first_inode(offset));
        if let Some(first) = first {
            for (number, slot) in write
                .content
                .chunks_exact(self.geometry.inode_bytes)
                .enumerate()
            {
                let inode = first + number as u64;
                let Some(version) = ifile::fingerprints(slot) else {
                    if self.inodes.remove(&inode).is_some() {
                        causes = causes.with(Cause::InodeRemoved);
                        changed.push(inode);
                        self.kinds.remove(&inode);
                        self.files.forget(inode, rows);
                    }
                    continue;
                };
                let generation = ifile::generation(slot);
                let why = match self.inodes.insert(inode, (generation, version)) {
                    Some((of, before)) if of == generation => match before == version {
                        true => continue,
                        false => version.causes(&before),
                    },
                    before => {
                        if before.is_some() {
                            self.files.forget(inode, rows);
                        }
                        Causes::one(Cause::NewInode)
                    }
                };
                causes = causes.and(why);
                changed.push(inode);
                self.learn_kind(inode, slot, now, rows)?;
            }
        }
        let part = Part {
            causes: match (first, causes.is_empty()) {
                (None, _) => Causes::one(Cause::Allocation),
                (Some(_), true) => Causes::one(Cause::Unchanged),
                (Some(_), false) => causes,
            },
            inode: match changed[..] {
                [inode] => inode,
                _ => NO_INODE,
            },
            ..Part::new(Structure::InodeTable, Cause::Unknown)
        };
        self.files.add(write, part, rows);
        Ok(())
    }

    /// What an inode's blocks are. Those that were written before it was known may hold names.
    fn learn_kind(
        &mut self,
        inode: u64,
        slot: &[u8],
        now: &mut Now<'_, '_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let structure = ifile::kind(slot);
        let before = self.kinds.insert(inode, structure);
        if before.unwrap_or(Structure::FileData) == structure {
            return Ok(());
        }
        let mut content = vec![0; self.geometry.block_bytes as usize];
        for (block, place) in self.open.remove(&inode).unwrap_or_default() {
            let offset = block * self.geometry.block_bytes;
            let owner = Owner { inode, structure };
            self.files
                .own(offset, self.geometry.block_bytes, owner, rows);
            if structure == Structure::Directory {
                now.read(offset, &mut content)?;
                self.offsets.insert(block, place);
                self.names(inode, block, &content);
            }
        }
        Ok(())
    }

    /// A directory's blocks: entries as those of ext2, with longer numbers of inodes (`struct
    /// nilfs_dir_entry`).
    fn names(&mut self, directory: u64, first: u64, content: &[u8]) {
        for (number, block) in (first..).zip(content.chunks(self.geometry.block_bytes as usize)) {
            let mut entries = Vec::new();
            let mut at = 0;
            while at + 12 <= block.len() {
                let length = usize::from(le16(block, at + 8));
                let name = part(block, at + 12, at + 12 + usize::from(byte(block, at + 10)));
                if le64(block, at) != 0 && !name.is_empty() && name != b"." {
                    entries.push((name, le64(block, at)));
                }
                if length < 12 {
                    break;
                }
                at += length;
            }
            match self.offsets.get(&number) {
                Some(&place) => self.files.name_at((directory, place), directory, &entries),
                None => self.files.name(directory, &entries),
            }
        }
    }
}
