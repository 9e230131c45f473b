//! Inodes: big-endian on disk (`xfs_dinode`); the log has the same fields in the host's byte order
//! (`xfs_log_dinode`).

use super::block::unused_pointers;
use crate::bytes::checked::{be16, be32, be64, le16, le32, le64};
use crate::bytes::{self, fingerprint};
use crate::mode::Kind;
use std::ops::Range;

/// Offset of the checksum in an inode.
pub const CHECKSUM_AT: usize = 100;
/// Bytes of the inode before its forks.
pub const CORE_BYTES: usize = 176;

const LARGE_EXTENT_COUNTS: u64 = 1 << 4;
/// `XFS_DIFLAG2_REFLINK`.
const SHARES: u64 = 1 << 1;

/// Storage format of a fork (`xfs_dinode_fmt`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Content in the inode itself.
    Local,
    /// A list of extents.
    Extents,
    /// The root of a tree of extents.
    Btree,
    /// A device number.
    Device,
    /// Unknown format.
    Other,
}

impl Format {
    fn from_number(number: u8) -> Format {
        match number {
            0 => Format::Device,
            1 => Format::Local,
            2 => Format::Extents,
            3 => Format::Btree,
            _ => Format::Other,
        }
    }
}

/// Fields of an inode that determine why it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Core {
    /// Type and permissions; 0 if the inode is free.
    pub mode: u16,
    /// Number of names.
    pub links: u32,
    /// Generation; it changes when the inode number is reused.
    pub generation: u32,
    /// Size in bytes.
    pub size: u64,
    /// Format of the data fork.
    pub data_format: Format,
    /// Format of the attribute fork.
    pub xattr_format: Format,
    /// Number of extents in the data fork.
    pub data_extents: u64,
    /// Number of extents in the attribute fork.
    pub xattr_extents: u32,
    /// Offset of the attribute fork in the space for forks; 0 if there is none.
    pub fork_offset: usize,
    /// Log sequence number of the version that was last written home (`di_lsn`).
    pub sequence: u64,
    /// Time of the last read.
    pub atime: u64,
    /// True if the data is on the realtime device.
    pub realtime: bool,
    /// True if other inodes may share some of the blocks.
    pub shares: bool,
    /// Times of the last change of the data and of the other fields. The creation time never
    /// changes.
    pub times: [u64; 2],
    /// Number of changes.
    pub changes: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Fingerprint of owner, project, attribute fork and flags.
    pub owner: u32,
}

/// Readers for integers of one byte order.
struct Order {
    u16: fn(&[u8], usize) -> Option<u16>,
    u32: fn(&[u8], usize) -> Option<u32>,
    u64: fn(&[u8], usize) -> Option<u64>,
}

/// Fields that identify owner, project, attribute fork and flags, side by side: a log has millions
/// of cores, and one fingerprint is much faster than one for each field.
fn owner(bytes: &[u8], xattr_extents: u32) -> Option<[u8; 28]> {
    let mut fields = [0; 28];
    fields[..8].copy_from_slice(bytes.get(8..16)?);
    fields[8..12].copy_from_slice(bytes.get(20..24)?);
    fields[12..14].copy_from_slice(bytes.get(82..84)?);
    fields[14..16].copy_from_slice(bytes.get(90..92)?);
    fields[16..24].copy_from_slice(bytes.get(120..128)?);
    fields[24..].copy_from_slice(&xattr_extents.to_be_bytes());
    Some(fields)
}

impl Core {
    /// Parses a slot of an inode block.
    pub fn on_disk(bytes: &[u8]) -> Option<Core> {
        let order = Order {
            u16: be16,
            u32: be32,
            u64: be64,
        };
        Core::parse(bytes, &order)
    }

    /// Parses the second region of an inode item in the log.
    pub fn in_log(bytes: &[u8]) -> Option<Core> {
        let order = Order {
            u16: le16,
            u32: le32,
            u64: le64,
        };
        Core::parse(bytes, &order)
    }

    fn parse(bytes: &[u8], order: &Order) -> Option<Core> {
        if (order.u16)(bytes, 0)? != 0x494e {
            return None;
        }
        let u32_at = |at| (order.u32)(bytes, at);
        let u64_at = |at| (order.u64)(bytes, at);
        let flags2 = u64_at(120)?;
        let (data_extents, xattr_extents) = if flags2 & LARGE_EXTENT_COUNTS != 0 {
            (u64_at(24)?, u32_at(76)?)
        } else {
            (u64::from(u32_at(76)?), u32::from((order.u16)(bytes, 80)?))
        };
        Some(Core {
            mode: (order.u16)(bytes, 2)?,
            links: u32_at(16)?,
            generation: u32_at(92)?,
            size: u64_at(56)?,
            data_format: Format::from_number(*bytes.get(5)?),
            xattr_format: Format::from_number(*bytes.get(83)?),
            data_extents,
            xattr_extents,
            fork_offset: usize::from(*bytes.get(82)?) * 8,
            sequence: u64_at(112)?,
            atime: u64_at(32)?,
            realtime: (order.u16)(bytes, 90)? & 1 != 0,
            shares: flags2 & SHARES != 0,
            times: [u64_at(40)?, u64_at(48)?],
            changes: u64_at(104)?,
            blocks: u64_at(64)?,
            owner: fingerprint([&owner(bytes, xattr_extents)?[..]]),
        })
    }

    /// Returns whether the inode is a directory.
    pub fn is_directory(&self) -> bool {
        Kind::of_mode(self.mode.into()) == Kind::Directory
    }

    /// Returns whether the inode is a symbolic link.
    pub fn is_symlink(&self) -> bool {
        Kind::of_mode(self.mode.into()) == Kind::Symlink
    }

    /// Data fork and attribute fork in the space after the core. `slot` is the whole inode.
    pub fn forks<'a>(&self, slot: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let space = slot.get(CORE_BYTES..).unwrap_or_default();
        space.split_at(self.data_fork_bytes(space.len()))
    }

    /// Bytes of the data fork if both forks share `space` bytes.
    pub fn data_fork_bytes(&self, space: usize) -> usize {
        match self.fork_offset {
            0 => space,
            offset => offset.min(space),
        }
    }
}

/// Blocks of a file: the start in the file, the start on disk (a block number with its group), and
/// the number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First block in the file.
    pub file_block: u64,
    /// First block on disk, with the group in the upper bits.
    pub fs_block: u64,
    /// Number of blocks.
    pub blocks: u64,
}

/// Returns up to `count` packed extents (`xfs_bmbt_rec`: flag 1 bit, offset 54, block 52, count
/// 21).
pub fn extents(bytes: &[u8], count: u64) -> impl Iterator<Item = Extent> + '_ {
    let records = bytes.as_chunks::<16>().0.iter();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    records.take(count).map(|record| {
        let packed = u128::from_be_bytes(*record);
        Extent {
            file_block: (packed >> 73) as u64 & ((1 << 54) - 1),
            fs_block: (packed >> 21) as u64 & ((1 << 52) - 1),
            blocks: packed as u64 & ((1 << 21) - 1),
        }
    })
}

/// Returns the extents in a block of an extent tree, if the block is a leaf (`xfs_btree_lblock`).
pub fn leaf_extents(block: &[u8]) -> Option<impl Iterator<Item = Extent> + '_> {
    let count = be16(block, 6).map_or(0, u64::from);
    let is_leaf = be16(block, 4) == Some(0);
    is_leaf.then(|| extents(block.get(72..).unwrap_or_default(), count))
}

/// Ranges of a fork that no extent, key or pointer uses. In any other format, everything except a
/// device number is unused.
pub fn unused(fork: &[u8], format: Format, count: u64) -> [Range<usize>; 2] {
    let used = match format {
        Format::Device => 8,
        Format::Extents => count.saturating_mul(16).try_into().unwrap_or(usize::MAX),
        // xfs_bmdr_block: level, count, then keys and pointers.
        Format::Btree if fork.len() >= 4 => {
            let count = usize::from(bytes::be16(fork, 2));
            return unused_pointers(fork.len(), 4, (8, 8), count);
        }
        _ => 0,
    };
    [used.min(fork.len())..fork.len(), 0..0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_unpacks() {
        let packed = (1u128 << 127) | (7u128 << 73) | (524_297u128 << 21) | 3;
        let found: Vec<_> = extents(&packed.to_be_bytes(), 9).collect();
        let expected = Extent {
            file_block: 7,
            fs_block: 524_297,
            blocks: 3,
        };
        assert_eq!(found, [expected]);
    }
}
