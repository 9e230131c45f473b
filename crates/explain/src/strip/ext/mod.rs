//! What is private in ext2, ext3 and ext4. Formats: Linux `fs/ext4/ext4.h`,
//! `fs/ext4/ext4_extents.h`, `fs/ext4/xattr.h`.

mod directory;
mod inode;
mod superblock;
mod xattr;

use super::{Family, Part, Secret, checksum, formatted};
use crate::Structure;
use crate::bytes::{le16, le32};
use fscost_recording::{Recording, Result};

const SUPERBLOCK_AT: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 1024;
const EXTENT_MAGIC: u16 = 0xF30A;
const INCOMPAT_JOURNAL_DEVICE: u32 = 8;

/// The file systems of a recording's disks. What is copied to a journal on a disk of its own is
/// read as it is where it comes from.
pub fn detect(recording: &Recording) -> Result<Vec<Box<dyn Family>>> {
    let (mut found, mut journals): (Vec<Ext>, Vec<(u16, [u8; 16])>) = (Vec::new(), Vec::new());
    for disk in 0..recording.header().disks.len() as u16 {
        let mut bytes = [0; SUPERBLOCK_BYTES];
        formatted(recording, disk, SUPERBLOCK_AT, &mut bytes)?;
        let Some(shape) = Shape::parse(&bytes) else {
            continue;
        };
        let is_journal = le32(&bytes, 0x60) & INCOMPAT_JOURNAL_DEVICE != 0;
        if is_journal {
            journals.push((disk, uuid(&bytes, 0x68)));
        }
        found.push(Ext {
            disks: vec![disk],
            journal: (!is_journal).then(|| uuid(&bytes, 0xD0)),
            shape,
        });
    }
    for (disk, uuid) in journals {
        if let Some(user) = found.iter_mut().find(|ext| ext.journal == Some(uuid)) {
            user.disks.push(disk);
            found.retain(|ext| ext.disks[0] != disk);
        }
    }
    Ok(found.into_iter().map(|ext| Box::new(ext) as _).collect())
}

fn uuid(superblock: &[u8; SUPERBLOCK_BYTES], at: usize) -> [u8; 16] {
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&superblock[at..at + 16]);
    uuid
}

/// What of a superblock decides how metadata is read.
#[derive(Debug, Clone, Copy)]
struct Shape {
    block_bytes: usize,
    inode_bytes: usize,
    /// `metadata_csum`: metadata carries checksums.
    has_checksums: bool,
    /// `filetype`: a name's length is one byte.
    has_file_types: bool,
}

impl Shape {
    fn parse(superblock: &[u8]) -> Option<Shape> {
        let block_bytes = 1024usize.checked_shl(le32(superblock, 0x18))?;
        let old = le32(superblock, 0x4C) == 0;
        let inode_bytes = if old {
            128
        } else {
            usize::from(le16(superblock, 0x58))
        };
        let sane = le16(superblock, 0x38) == 0xEF53 && (1024..=65536).contains(&block_bytes);
        sane.then_some(Shape {
            block_bytes,
            inode_bytes: inode_bytes.clamp(128, block_bytes),
            has_checksums: le32(superblock, 0x64) & 0x400 != 0,
            has_file_types: le32(superblock, 0x60) & 2 != 0,
        })
    }
}

struct Ext {
    disks: Vec<u16>,
    /// The UUID of its journal's disk; none where this is such a disk.
    journal: Option<[u8; 16]>,
    shape: Shape,
}

impl Family for Ext {
    fn owns(&self, disk: u16) -> bool {
        self.disks.contains(&disk)
    }

    fn strip(&mut self, part: &Part, bytes: &mut [u8], secret: &mut Secret) {
        if matches!(
            part.structure,
            Structure::Superblock | Structure::SuperblockBackup
        ) {
            return self.superblock(part.offset, bytes, secret);
        }
        let size = self.shape.block_bytes as u64;
        if !part.offset.is_multiple_of(size) {
            return secret.sectors(bytes); // metadata is written in whole blocks
        }
        for block in bytes.chunks_mut(size as usize) {
            if block.len() < size as usize {
                secret.sectors(block);
            } else {
                self.block(part.structure, block, secret);
            }
        }
    }
}

impl Ext {
    /// A whole block, or a journal's copy of one.
    fn block(&self, structure: Structure, block: &mut [u8], secret: &mut Secret) {
        use Structure::*;
        let shape = &self.shape;
        match structure {
            GroupDescriptors | BlockBitmap | InodeBitmap | OrphanFile | Quota => {}
            JournalDescriptor | JournalRevoke | JournalCommit => {}
            JournalSuperblock => secret.sectors(&mut block[SUPERBLOCK_BYTES..]),
            InodeTable => {
                for slot in block.chunks_exact_mut(shape.inode_bytes) {
                    inode::strip(slot, shape, secret);
                }
            }
            Directory | DirectoryIndex => directory::block(block, shape, secret),
            ExtentMap => map(block, shape, secret),
            Xattr => xattr::block(block, shape, secret),
            Symlink => secret.path(block),
            Mmp => superblock::mmp(block, shape, secret),
            _ => secret.sectors(block),
        }
    }

    /// Superblocks, and what lies in their blocks beside them: the primary one is the second KiB of
    /// the disk, copies begin their blocks. A journal's
    /// copy is of a whole block.
    fn superblock(&self, offset: u64, bytes: &mut [u8], secret: &mut Secret) {
        let mut at = offset;
        for piece in bytes.chunks_mut(SUPERBLOCK_BYTES) {
            let within = at % self.shape.block_bytes as u64;
            let whole = piece.len() == SUPERBLOCK_BYTES && le16(piece, 0x38) == 0xEF53;
            if whole && (within == 0 || within == SUPERBLOCK_AT) {
                superblock::strip(piece, &self.shape, secret);
            } else {
                secret.sectors(piece);
            }
            at += SUPERBLOCK_BYTES as u64;
        }
    }
}

/// A node of an extent tree, or a block of pointers.
fn map(block: &mut [u8], shape: &Shape, secret: &Secret) {
    if le16(block, 0) != EXTENT_MAGIC {
        return; // numbers of blocks
    }
    let old = block.to_vec();
    let covered = extents(block, secret);
    if shape.has_checksums {
        let change = checksum::change(&old[..covered], &block[..covered]);
        checksum::apply(block, covered, change);
    }
}

/// Take out what lies behind the entries of a node. Returns where there is no space for more of
/// them: there a block has its checksum.
fn extents(node: &mut [u8], secret: &Secret) -> usize {
    let end = |count: u16| (12 + 12 * usize::from(count)).min(node.len());
    let (used, space) = (end(le16(node, 2)), end(le16(node, 4)));
    secret.bytes(&mut node[used.min(space)..space]);
    // Behind the checksum there is nothing.
    let rest = (space + 4).min(node.len());
    secret.bytes(&mut node[rest..]);
    space
}
