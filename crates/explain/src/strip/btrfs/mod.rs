//! What is private in btrfs. Formats: Linux `include/uapi/linux/btrfs_tree.h`, `fs/btrfs/ctree.h`.
//!
//! Leaves are read before anything is written: which inodes are links is said elsewhere than what
//! they point to.

mod leaf;

use super::{Family, Part, Secret, checksum, formatted};
use crate::Structure;
use crate::bytes::{le16, le32, le64};
use fscost_recording::{Event, Recording, Result};
use leaf::Links;
use std::collections::HashMap;

const SUPER_AT: u64 = 64 << 10;
const SUPER_BYTES: usize = 4096;
const MAGIC: &[u8] = b"BHRfS_M";
const MAGIC_AT: usize = 0x41;
const HEADER_BYTES: usize = 101;
const LEVEL_AT: usize = 100;
/// What a checksum covers begins here; the checksum itself is at 0.
const COVERED_AT: usize = 32;
const INCOMPAT_METADATA_UUID: u64 = 1 << 10;

/// The file systems of a recording's disks.
pub fn detect(recording: &Recording) -> Result<Vec<Box<dyn Family>>> {
    let mut found: Vec<Btrfs> = Vec::new();
    for disk in 0..recording.header().disks.len() as u16 {
        let mut bytes = [0; SUPER_BYTES];
        formatted(recording, disk, SUPER_AT, &mut bytes)?;
        let Some(one) = Btrfs::parse(disk, &bytes) else {
            continue;
        };
        match found.iter_mut().find(|known| known.fsid == one.fsid) {
            Some(known) => known.disks.push(disk),
            None => found.push(one),
        }
    }
    Ok(found.into_iter().map(|one| Box::new(one) as _).collect())
}

struct Btrfs {
    disks: Vec<u16>,
    fsid: [u8; 16],
    node_bytes: usize,
    sector_bytes: usize,
    /// Whether checksums are CRC-32C; others stay as they are, and are wrong.
    has_crcs: bool,
    sums: Sums,
    links: Links,
}

/// Checksums of the data that was written, and of what was made of it. They come later than the
/// data.
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

impl Btrfs {
    fn parse(disk: u16, bytes: &[u8]) -> Option<Btrfs> {
        if bytes.get(MAGIC_AT..MAGIC_AT + MAGIC.len())? != MAGIC {
            return None;
        }
        let fsid_at = match le64(bytes, 0xBC) & INCOMPAT_METADATA_UUID {
            0 => 0x20,
            _ => 0x23B,
        };
        let (sector, node) = (le32(bytes, 0x90), le32(bytes, 0x94));
        let sane = |size: u32| size.is_power_of_two() && (4096..=65536).contains(&size);
        let fsid = *bytes.get(fsid_at..)?.first_chunk()?;
        (sane(sector) && sane(node)).then_some(Btrfs {
            disks: vec![disk],
            fsid,
            node_bytes: node as usize,
            sector_bytes: sector as usize,
            has_crcs: le16(bytes, 0xC4) == 0,
            sums: Sums::default(),
            links: Links::default(),
        })
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
        for at in (0..content.len()).step_by(self.sector_bytes) {
            let block = content.get(at..at + self.node_bytes).unwrap_or_default();
            if self.is_block(block) && block[LEVEL_AT] == 0 {
                self.links.read(block);
            }
        }
    }

    fn strip(&mut self, part: &Part, bytes: &mut [u8], secret: &mut Secret) {
        use Structure::*;
        match part.structure {
            Superblock | SuperblockBackup => superblock(bytes, secret),
            FileData | Unknown | Unused | Parity | FreeSpaceCache => self.data(bytes, secret),
            _ => {
                for block in bytes.chunks_mut(self.node_bytes) {
                    if self.is_block(block) {
                        self.block(block, secret);
                    } else {
                        secret.sectors(block);
                    }
                }
            }
        }
    }
}

impl Btrfs {
    /// Data, whose checksums will come.
    fn data(&mut self, bytes: &mut [u8], secret: &Secret) {
        for block in bytes.chunks_mut(self.sector_bytes) {
            let old = crc32c::crc32c(block);
            secret.sectors(block);
            let new = crc32c::crc32c(block);
            if old != new {
                self.sums.0.insert(old, new);
            }
        }
    }

    fn is_block(&self, block: &[u8]) -> bool {
        block.len() == self.node_bytes && block[COVERED_AT..].starts_with(&self.fsid)
    }

    /// A block of a tree.
    fn block(&self, block: &mut [u8], secret: &mut Secret) {
        let old = block.to_vec();
        if block[LEVEL_AT] == 0 {
            let sums = self.has_crcs.then_some(&self.sums);
            leaf::strip(block, &self.links, sums, secret);
        } else {
            // Pointers, of 33 bytes each.
            let count = le32(block, 96) as usize;
            let end = HEADER_BYTES.saturating_add(count.saturating_mul(33));
            secret.bytes(&mut block[end.min(old.len())..]);
        }
        if self.has_crcs {
            seal(&old, block);
        }
    }
}

/// Label, and nothing else: the rest are numbers and UUIDs.
fn superblock(bytes: &mut [u8], secret: &mut Secret) {
    let is_super = bytes.len() == SUPER_BYTES && bytes[MAGIC_AT..].starts_with(MAGIC);
    if !is_super {
        return secret.sectors(bytes);
    }
    let old = bytes.to_vec();
    secret.path(&mut bytes[0x12B..0x22B]);
    if le16(bytes, 0xC4) == 0 {
        seal(&old, bytes);
    }
}

fn seal(old: &[u8], new: &mut [u8]) {
    let change = checksum::change(&old[COVERED_AT..], &new[COVERED_AT..]);
    checksum::apply(new, 0, change);
}
