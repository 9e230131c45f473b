//! Private data in btrfs.
//!
//! All leaves are read before anything is written, because an inode and its link target are in
//! different items.

mod leaf;

use crate::{Family, Part, Secret, checksum};
use fscost_explain::{FormattedDisks, Structure};
use fscost_ondisk::btrfs::block::{COVERED_AT, Header};
use fscost_ondisk::btrfs::superblock::{LABEL, SUPER_BYTES, SUPER_OFFSETS, Super};
use fscost_ondisk::bytes::le32;
use fscost_recording::{Event, Result};
use leaf::Links;
use std::collections::HashMap;

/// Finds the btrfs file systems on a recording's disks.
pub fn detect(formatted: &FormattedDisks<'_>) -> Result<Vec<Box<dyn Family>>> {
    let mut found: Vec<Btrfs> = Vec::new();
    for disk in 0..formatted.count() {
        let mut bytes = [0; SUPER_BYTES as usize];
        crate::read(formatted, disk, SUPER_OFFSETS[0], &mut bytes)?;
        let Some(superblock) = Super::parse(&bytes) else {
            continue;
        };
        let mut known = found.iter_mut();
        match known.find(|known| known.superblock.fsid == superblock.fsid) {
            Some(known) => known.disks.push(disk),
            None => found.push(Btrfs {
                disks: vec![disk],
                has_crcs: Super::has_crc32c(&bytes),
                superblock,
                sums: Sums::default(),
                links: Links::default(),
            }),
        }
    }
    Ok(found.into_iter().map(|one| Box::new(one) as _).collect())
}

struct Btrfs {
    disks: Vec<u16>,
    superblock: Super,
    /// True if checksums are CRC-32C. Other checksums are left unchanged, and become wrong.
    has_crcs: bool,
    sums: Sums,
    links: Links,
}

/// Checksums of the original data, mapped to those of the stripped data. Checksums are written
/// after their data.
#[derive(Default)]
struct Sums(HashMap<u32, u32>);

impl Sums {
    fn replace(&self, sums: &mut [u8], secret: &Secret) {
        for sum in sums.chunks_exact_mut(4) {
            let old = le32(sum, 0);
            let new = self.0.get(&old).copied();
            let new = new.unwrap_or_else(|| secret.number(old));
            sum.copy_from_slice(&new.to_le_bytes());
        }
    }
}

impl Family for Btrfs {
    fn owns(&self, disk: u16) -> bool {
        self.disks.contains(&disk)
    }

    fn reads_ahead(&self) -> bool {
        true
    }

    fn read_ahead(&mut self, _number: u64, _event: &Event, content: &[u8], _secret: &mut Secret) {
        let node_bytes = self.superblock.node_bytes as usize;
        for at in (0..content.len()).step_by(self.superblock.sector_bytes as usize) {
            let block = content.get(at..at + node_bytes).unwrap_or_default();
            if let Some(header) = self.header(block) {
                self.links.read(&header, block);
            }
        }
    }

    fn strip(&mut self, part: &Part, bytes: &mut [u8], secret: &mut Secret) {
        use Structure::*;
        match part.structure {
            Superblock | SuperblockBackup => superblock(bytes, secret),
            FileData | Unknown | Unused | Parity | FreeSpaceCache => self.data(bytes, secret),
            _ => {
                for block in bytes.chunks_mut(self.superblock.node_bytes as usize) {
                    match self.header(block) {
                        Some(header) => self.block(&header, block, secret),
                        None => secret.sectors(block),
                    }
                }
            }
        }
    }
}

impl Btrfs {
    /// Strips data and records its new checksums for later.
    fn data(&mut self, bytes: &mut [u8], secret: &Secret) {
        for block in bytes.chunks_mut(self.superblock.sector_bytes as usize) {
            let old = crc32c::crc32c(block);
            secret.sectors(block);
            let new = crc32c::crc32c(block);
            if old != new {
                self.sums.0.insert(old, new);
            }
        }
    }

    fn header(&self, block: &[u8]) -> Option<Header> {
        let Super {
            fsid, node_bytes, ..
        } = &self.superblock;
        let header = Header::parse(block, fsid, *node_bytes);
        header.filter(|_| block.len() == *node_bytes as usize)
    }

    /// Strips a block of a tree.
    fn block(&self, header: &Header, block: &mut [u8], secret: &mut Secret) {
        let old = block.to_vec();
        if header.level == 0 {
            let sums = self.has_crcs.then_some(&self.sums);
            leaf::strip(header, block, &self.links, sums, secret);
        } else {
            secret.bytes(&mut block[header.entries_end()..]);
        }
        if self.has_crcs {
            checksum::update(block, 0, &old, COVERED_AT..);
        }
    }
}

/// Strips the label only: all other fields are numbers and UUIDs.
fn superblock(bytes: &mut [u8], secret: &mut Secret) {
    if bytes.len() as u64 != SUPER_BYTES || !Super::has_magic(bytes) {
        return secret.sectors(bytes);
    }
    let old = bytes.to_vec();
    secret.path(&mut bytes[LABEL]);
    if Super::has_crc32c(bytes) {
        checksum::update(bytes, 0, &old, COVERED_AT..);
    }
}
