//! What is private in btrfs. Formats: Linux `include/uapi/linux/btrfs_tree.h`, `fs/btrfs/ctree.h`.

use super::bytes::{le16, le32, le64};
use super::{Family, Part, Secret, checksum, formatted};
use crate::classify::Structure;
use fscost_recording::{Recording, Result};
use std::collections::HashMap;
use std::ops::Range;

const SUPER_AT: u64 = 64 << 10;
const SUPER_BYTES: usize = 4096;
const MAGIC: &[u8] = b"BHRfS_M";
const MAGIC_AT: usize = 0x41;
const HEADER_BYTES: usize = 101;
const ITEM_BYTES: usize = 25;
/// What a checksum covers begins here; the checksum itself is at 0.
const COVERED_AT: usize = 32;
const INCOMPAT_METADATA_UUID: u64 = 1 << 10;
/// `struct btrfs_dir_item` before the name; the head of an inline extent.
const DIR_ITEM_BYTES: usize = 30;
const INLINE_AT: usize = 21;

mod kind {
    pub const INODE_REF: u8 = 12;
    pub const INODE_EXTREF: u8 = 13;
    pub const XATTR: u8 = 24;
    pub const VERITY_DESC: u8 = 36;
    pub const VERITY_MERKLE: u8 = 37;
    pub const DIR_ITEM: u8 = 84;
    pub const DIR_INDEX: u8 = 96;
    pub const EXTENT_DATA: u8 = 108;
    pub const CSUM: u8 = 128;
    pub const ROOT_BACKREF: u8 = 144;
    pub const ROOT_REF: u8 = 156;
    pub const STRING: u8 = 253;
}

/// The tree of roots has a directory in which the default subvolume is called so.
const ROOT_TREE: u64 = 1;
const DEFAULT: &[u8] = b"default";

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
    /// Checksums of the data that was written, and of what was made of it. They come later than the data.
    sums: HashMap<u32, u32>,
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
            sums: HashMap::new(),
        })
    }
}

impl Family for Btrfs {
    fn owns(&self, disk: u16) -> bool {
        self.disks.contains(&disk)
    }

    fn strip(&mut self, part: &Part, bytes: &mut [u8], secret: &mut Secret) {
        use Structure::*;
        match part.structure {
            Superblock | SuperblockBackup => superblock(bytes, secret),
            FileData | Unknown | Unused | Parity | FreeSpaceCache => self.data(bytes, secret),
            _ => {
                for block in bytes.chunks_mut(self.node_bytes) {
                    let is_block = block.len() == self.node_bytes
                        && block[COVERED_AT..].starts_with(&self.fsid);
                    if is_block {
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
                self.sums.insert(old, new);
            }
        }
    }

    /// A block of a tree.
    fn block(&mut self, block: &mut [u8], secret: &mut Secret) {
        let old = block.to_vec();
        let count = le32(block, 96) as usize;
        if block[100] == 0 {
            self.leaf(block, count, secret);
        } else {
            // Pointers, of 33 bytes each.
            let end = HEADER_BYTES.saturating_add(count.saturating_mul(33));
            secret.bytes(&mut block[end.min(old.len())..]);
        }
        self.seal(&old, block);
    }

    fn seal(&self, old: &[u8], new: &mut [u8]) {
        if self.has_crcs {
            let change = checksum::change(&old[COVERED_AT..], &new[COVERED_AT..]);
            checksum::apply(new, 0, change);
        }
    }

    fn leaf(&mut self, block: &mut [u8], count: usize, secret: &mut Secret) {
        let owner = le64(block, 88);
        let entries = HEADER_BYTES.saturating_add(count.saturating_mul(ITEM_BYTES));
        let mut free = entries.min(block.len());
        let mut items: Vec<(Range<usize>, usize)> = (0..count.min(block.len() / ITEM_BYTES))
            .map(|number| HEADER_BYTES + number * ITEM_BYTES)
            .take_while(|at| at + ITEM_BYTES <= block.len())
            .map(|at| {
                let start = HEADER_BYTES.saturating_add(le32(block, at + 17) as usize);
                let end = start.saturating_add(le32(block, at + 21) as usize);
                (start.min(block.len())..end.min(block.len()), at)
            })
            .collect();
        items.sort_by_key(|(range, at)| (range.start, *at));
        for (range, at) in items {
            // Hostile items may lie in others: what was replaced stays so.
            let (start, end) = (range.start.max(free), range.end.max(free));
            secret.bytes(&mut block[free..start]);
            free = end;
            let kind = block[at + 8];
            self.item(kind, owner, &mut block[start..end], secret);
        }
        secret.bytes(&mut block[free..]);
    }

    fn item(&self, kind: u8, owner: u64, item: &mut [u8], secret: &mut Secret) {
        match kind {
            kind::INODE_REF => refs(item, 8, secret),
            kind::INODE_EXTREF => refs(item, 16, secret),
            // The directory's number, the name's place in it.
            kind::ROOT_REF | kind::ROOT_BACKREF => refs(item, 16, secret),
            kind::DIR_ITEM | kind::DIR_INDEX => dir_items(item, true, owner == ROOT_TREE, secret),
            kind::XATTR => dir_items(item, false, false, secret),
            kind::EXTENT_DATA if item.get(20) == Some(&0) => secret.bytes(&mut item[INLINE_AT..]),
            kind::CSUM if self.has_crcs => {
                for sum in item.chunks_exact_mut(4) {
                    let old = le32(sum, 0);
                    let new = self.sums.get(&old).copied();
                    let new = new.unwrap_or_else(|| secret.number(old));
                    sum.copy_from_slice(&new.to_le_bytes());
                }
            }
            kind::CSUM | kind::VERITY_DESC | kind::VERITY_MERKLE | kind::STRING => {
                secret.bytes(item)
            }
            _ => {}
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
        let change = checksum::change(&old[COVERED_AT..], &bytes[COVERED_AT..]);
        checksum::apply(bytes, 0, change);
    }
}

/// Names with their length of two bytes at `length_at` of each record.
fn refs(item: &mut [u8], length_at: usize, secret: &mut Secret) {
    let mut at = 0;
    while at < item.len() {
        let name = at + length_at + 2;
        let end = name + usize::from(le16(item, at + length_at));
        if end > item.len() {
            return secret.bytes(&mut item[at..]);
        }
        secret.name(&mut item[name..end]);
        at = end;
    }
}

/// Names of a directory's entries, or of attributes, and what they are for: their values.
fn dir_items(item: &mut [u8], names: bool, of_roots: bool, secret: &mut Secret) {
    let mut at = 0;
    while at < item.len() {
        let name = at + DIR_ITEM_BYTES;
        let value = name + usize::from(le16(item, at + 27));
        let end = value + usize::from(le16(item, at + 25));
        if end > item.len() {
            return secret.bytes(&mut item[at..]);
        }
        if names && !(of_roots && &item[name..value] == DEFAULT) {
            secret.name(&mut item[name..value]);
        }
        secret.bytes(&mut item[value..end]);
        at = end;
    }
}
