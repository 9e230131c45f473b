//! Private data in ext2, ext3 and ext4.

mod directory;
mod inode;
mod xattr;

use crate::{Family, Part, Secret, checksum};
use fscost_explain::{FormattedDisks, Structure};
use fscost_ondisk::bytes::le16;
use fscost_ondisk::ext::map::{EXTENT_MAGIC, extents_end};
use fscost_ondisk::ext::superblock::{self, CHECKSUM_AT, MMP_TEXTS, Superblock, TEXTS};
use fscost_recording::Result;
use std::ops::Range;

/// Finds the ext file systems on a recording's disks. Blocks copied to an external journal are
/// parsed according to the file system they come from.
pub fn detect(formatted: &FormattedDisks<'_>) -> Result<Vec<Box<dyn Family>>> {
    let (mut found, mut journals): (Vec<Ext>, Vec<_>) = (Vec::new(), Vec::new());
    for disk in 0..formatted.count() {
        let mut bytes = [0; superblock::BYTES];
        crate::read(formatted, disk, superblock::AT, &mut bytes)?;
        match Superblock::parse(&bytes) {
            Some(journal) if journal.is_journal_device() => journals.push((disk, journal.uuid)),
            Some(superblock) => found.push(Ext {
                disks: vec![disk],
                superblock,
            }),
            None => {}
        }
    }
    for (disk, uuid) in journals {
        let mut users = found.iter_mut();
        if let Some(user) = users.find(|ext| ext.superblock.journal_uuid == uuid) {
            user.disks.push(disk);
        }
    }
    Ok(found.into_iter().map(|ext| Box::new(ext) as _).collect())
}

struct Ext {
    disks: Vec<u16>,
    superblock: Superblock,
}

impl Family for Ext {
    fn owns(&self, disk: u16) -> bool {
        self.disks.contains(&disk)
    }

    fn strip(&mut self, part: &Part, bytes: &mut [u8], secret: &mut Secret) {
        use Structure::*;
        if matches!(part.structure, Superblock | SuperblockBackup) {
            return self.superblocks(part.offset, bytes, secret);
        }
        let size = self.superblock.block_bytes as usize;
        if !part.offset.is_multiple_of(size as u64) {
            return secret.sectors(bytes); // metadata is written in whole blocks
        }
        for block in bytes.chunks_mut(size) {
            if block.len() < size {
                secret.sectors(block);
            } else {
                self.block(part.structure, block, secret);
            }
        }
    }
}

impl Ext {
    /// Strips a whole block, or a journal's copy of one.
    fn block(&self, structure: Structure, block: &mut [u8], secret: &mut Secret) {
        use Structure::*;
        let superblock = &self.superblock;
        match structure {
            GroupDescriptors | BlockBitmap | InodeBitmap | OrphanFile | Quota => {}
            JournalDescriptor | JournalRevoke | JournalCommit => {}
            JournalSuperblock => secret.sectors(&mut block[superblock::BYTES..]),
            InodeTable => {
                for slot in block.chunks_exact_mut(superblock.inode_bytes as usize) {
                    inode::strip(slot, superblock, secret);
                }
            }
            Directory | DirectoryIndex => directory::block(block, superblock, secret),
            ExtentMap => self.map(block, secret),
            Xattr => xattr::block(block, superblock, secret),
            Symlink => secret.path(block),
            Mmp => {
                self.texts(block, &MMP_TEXTS, secret);
                secret.bytes(&mut block[CHECKSUM_AT + 4..]);
            }
            _ => secret.sectors(block),
        }
    }

    /// Strips superblocks and the rest of their blocks. The primary superblock is the second KiB of
    /// the disk; backup superblocks start at the beginning of their blocks. A journal's copy covers
    /// a whole block.
    fn superblocks(&self, offset: u64, bytes: &mut [u8], secret: &mut Secret) {
        let mut at = offset;
        for piece in bytes.chunks_mut(superblock::BYTES) {
            let within = at % u64::from(self.superblock.block_bytes);
            if superblock::has_magic(piece) && (within == 0 || within == superblock::AT) {
                self.texts(piece, &TEXTS, secret);
            } else {
                secret.sectors(piece);
            }
            at += superblock::BYTES as u64;
        }
    }

    /// Strips text fields that may identify people or machines, in a superblock or a block of
    /// multiple mount protection. The UUID stays: it is a random number that mkfs generated for
    /// this disk, and the seed of all checksums.
    fn texts(&self, bytes: &mut [u8], texts: &[Range<usize>], secret: &mut Secret) {
        let old = bytes.to_vec();
        for text in texts {
            secret.path(&mut bytes[text.clone()]);
        }
        if self.superblock.has_checksums() {
            checksum::update(bytes, CHECKSUM_AT, &old, ..CHECKSUM_AT);
        }
    }

    /// Strips a node of an extent tree, or a block of pointers.
    fn map(&self, block: &mut [u8], secret: &Secret) {
        if le16(block, 0) != EXTENT_MAGIC {
            return; // numbers of blocks
        }
        let old = block.to_vec();
        let Some(covered) = extents(block, secret) else {
            return secret.sectors(block);
        };
        if self.superblock.has_checksums() {
            checksum::update(block, covered, &old, ..covered);
        }
    }
}

/// Strips the space after the entries of a node. Returns the offset at which the space for entries
/// ends; a block has its checksum there.
fn extents(node: &mut [u8], secret: &Secret) -> Option<usize> {
    let (used, space) = extents_end(node)?;
    let checksum = space..space + 4;
    secret.all_but(node, [0..used, checksum]);
    Some(space)
}
