//! Items of one transaction, assembled from its operations, and the changes that each describes
//! (fs/xfs/libxfs/xfs_log_format.h). Formats use the host's byte order: little-endian.

use super::log_record::{CONTINUED, CONTINUES, Operation};
pub use super::regions::Regions;
use super::superblock::BASIC_BLOCK;
use crate::bytes::checked::{be32, le16, le32, le64};
use std::ops::Range;

/// Magic number of a transaction's header (`XFS_TRANS_HEADER_MAGIC`), and the bytes of that header.
const TRANSACTION_MAGIC: u32 = 0x5452_414e;
const TRANSACTION_HEADER_BYTES: usize = 16;
/// Size limit: more than any item has. An item that claims more is not understood.
const MOST_ITEM_BYTES: usize = 4 << 20;
/// Limit for open transactions: more than the kernel has open at once.
pub const MOST_TRANSACTIONS: usize = 64;

/// Role of an operation in its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Header of the transaction, in this many bytes of the payload.
    Header(usize),
    /// Part of an item that is still incomplete.
    Item,
    /// Last part of an item: the item is complete, or longer than any valid item.
    LastOfItem,
}

/// Assembles the items of one transaction.
#[derive(Debug, Default)]
pub struct Items {
    header: usize,
    is_partial: bool,
    /// Regions of the current item. The reader of a complete item clears them.
    pub regions: Regions,
}

impl Items {
    /// Adds the next operation and returns its role.
    pub fn take(&mut self, operation: &Operation<'_>) -> Part {
        let (flags, payload) = (operation.flags, operation.payload);
        let is_continued = flags & CONTINUED != 0 && self.is_partial;
        self.is_partial = flags & CONTINUES != 0;
        if self.header < TRANSACTION_HEADER_BYTES {
            let begins = self.header > 0 || le32(payload, 0) == Some(TRANSACTION_MAGIC);
            let left = TRANSACTION_HEADER_BYTES - self.header;
            if begins {
                self.header += payload.len();
                return Part::Header(left.min(payload.len()));
            }
            self.header = TRANSACTION_HEADER_BYTES;
        }
        match is_continued {
            true => self.regions.extend(payload),
            false => self.regions.push(payload),
        }
        match self.is_whole() || self.regions.bytes().len() >= MOST_ITEM_BYTES {
            true => Part::LastOfItem,
            false => Part::Item,
        }
    }

    /// Returns whether all regions are present. Every format begins with its type and the number of
    /// regions.
    pub fn is_whole(&self) -> bool {
        let count = self.regions.get(0).and_then(|first| le16(first, 2));
        let has_all = count.is_some_and(|count| self.regions.count() >= usize::from(count));
        has_all && !self.is_partial
    }
}

/// Subject of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An inode: [`InodeItem`].
    Inode,
    /// A block: [`BufferItem`].
    Buffer,
    /// Free inodes that were created: [`InodesMade`].
    InodesMade,
    /// Extents to free, and extents freed (on the realtime device as well).
    FreeExtents,
    /// Block owners to record, and owners recorded.
    Rmap,
    /// Reference counts of blocks to change, and counts changed.
    Refcount,
    /// Mappings to change, or to exchange between files.
    Mappings,
    /// Attributes to set or remove: names and values.
    Attributes,
    /// A quota account: [`quota_account_at`].
    QuotaAccount,
    /// Deactivation of quota.
    QuotaOff,
    /// Inode without a name.
    Unlinked,
}

impl Kind {
    /// Returns the kind of the item that begins with this region.
    pub fn of(format: &[u8]) -> Option<Kind> {
        Some(match le16(format, 0)? {
            0x123b => Kind::Inode,
            0x123c => Kind::Buffer,
            0x123f => Kind::InodesMade,
            0x1236 | 0x1237 | 0x124a | 0x124b => Kind::FreeExtents,
            0x1240 | 0x1241 | 0x124c | 0x124d => Kind::Rmap,
            0x1242 | 0x1243 | 0x124e | 0x124f => Kind::Refcount,
            0x1244 | 0x1245 | 0x1248 | 0x1249 => Kind::Mappings,
            0x1246 | 0x1247 => Kind::Attributes,
            0x123d => Kind::QuotaAccount,
            0x123e => Kind::QuotaOff,
            0x1238 => Kind::Unlinked,
            _ => return None,
        })
    }
}

/// Byte offset on disk of `offset` bytes into the buffer at a disk address.
fn place_in_buffer(address: u64, offset: u32) -> Option<u64> {
    let buffer = address.checked_mul(BASIC_BLOCK)?;
    buffer.checked_add(u64::from(offset))
}

/// An inode (`xfs_inode_log_format`). The region after the format holds its core. The forks that
/// changed since the inode was last written home follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InodeItem {
    /// Inode number.
    pub inode: u64,
    /// Byte offset of the inode's slot.
    pub place: u64,
    /// Data fork, if present.
    pub data: Option<LoggedFork>,
    /// Attribute fork, if present.
    pub xattr: Option<LoggedFork>,
}

/// A fork in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedFork {
    /// Number of the region that holds the fork.
    pub region: usize,
    /// True if the fork itself holds names, a target or attributes.
    pub is_local: bool,
    /// True if the fork is the root of a tree, which has a different form in the inode.
    pub is_root: bool,
}

/// Field flags of an inode item: a fork that is local, a list of extents, or the root of a tree.
const DATA_FORK: [u32; 3] = [0x002, 0x004, 0x008];
const XATTR_FORK: [u32; 3] = [0x040, 0x080, 0x100];

impl InodeItem {
    /// Parses the first region of an item.
    pub fn parse(format: &[u8]) -> Option<InodeItem> {
        let fields = le32(format, 4)?;
        let mut regions = 2..;
        let mut fork = |[local, extents, root]: [u32; 3], size_at| {
            let is_there = fields & (local | extents | root) != 0;
            let is_there = is_there && le16(format, size_at) != Some(0);
            Some(LoggedFork {
                region: is_there.then(|| regions.next()).flatten()?,
                is_local: fields & local != 0,
                is_root: fields & root != 0,
            })
        };
        let (data, xattr) = (fork(DATA_FORK, 10), fork(XATTR_FORK, 8));
        Some(InodeItem {
            inode: le64(format, 16)?,
            place: place_in_buffer(le64(format, 40)?, le32(format, 52)?)?,
            data,
            xattr,
        })
    }
}

/// Byte offset of a quota account (`xfs_dq_logformat`), from the first region of an item.
pub fn quota_account_at(format: &[u8]) -> Option<u64> {
    place_in_buffer(le64(format, 8)?, le32(format, 20)?)
}

/// Free inodes that were created (`xfs_icreate_log`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InodesMade {
    /// Number of the group.
    pub group: u32,
    /// First block in the group.
    pub block: u32,
    /// Number of inodes.
    pub count: u32,
}

impl InodesMade {
    /// Parses the first region of an item.
    pub fn parse(format: &[u8]) -> Option<InodesMade> {
        Some(InodesMade {
            group: be32(format, 4)?,
            block: be32(format, 8)?,
            count: be32(format, 12)?,
        })
    }
}

/// `XFS_BLF_CHUNK`: unit in which changes to buffers are logged, in bytes.
const CHUNK: usize = 128;
const BUFFER_CANCELLED: u16 = 1 << 1;
const BUFFER_MAP_AT: usize = 20;
/// Maximum length of a buffer: that of a directory block.
pub const MOST_BUFFER_BYTES: usize = 1 << 16;

/// Type of a buffer (`enum xfs_blft`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferKind {
    /// Quota accounts.
    Quota,
    /// The header of a group's free space.
    Agf,
    /// The list of a group's free blocks.
    Agfl,
    /// The header of a group's inodes.
    Agi,
    /// Inodes, which have their own items: only the list of inodes removed while open is in the
    /// buffer.
    Inodes,
    /// The target of a symbolic link.
    Symlink,
    /// Names of a directory.
    Directory,
    /// Hashes and free space lists of a directory.
    DirectoryIndex,
    /// Attributes, or the value of an attribute.
    Xattr,
    /// The superblock.
    Superblock,
    /// Bitmap and summary of the realtime device.
    Realtime,
    /// A block of a tree, or of another kind.
    Other,
}

/// A block (`xfs_buf_log_format`). The regions after the format are the chunks that changed since
/// the block was last written home.
#[derive(Debug, Clone, Copy)]
pub struct BufferItem<'a> {
    /// Type of the buffer.
    pub kind: BufferKind,
    /// True if the block was freed.
    pub is_cancelled: bool,
    /// Byte offset on disk.
    pub offset: u64,
    /// Length in bytes.
    pub length: usize,
    format: &'a [u8],
}

impl BufferItem<'_> {
    /// Parses the first region of an item.
    pub fn parse(format: &[u8]) -> Option<BufferItem<'_>> {
        let flags = le16(format, 4)?;
        Some(BufferItem {
            kind: match flags >> 11 {
                1..=3 => BufferKind::Quota,
                5 => BufferKind::Agf,
                6 => BufferKind::Agfl,
                7 => BufferKind::Agi,
                8 => BufferKind::Inodes,
                9 => BufferKind::Symlink,
                10 | 11 => BufferKind::Directory,
                12..=14 => BufferKind::DirectoryIndex,
                16 | 17 => BufferKind::Xattr,
                18 => BufferKind::Superblock,
                19 | 20 => BufferKind::Realtime,
                _ => BufferKind::Other,
            },
            is_cancelled: flags & BUFFER_CANCELLED != 0,
            length: usize::from(le16(format, 6)?) * BASIC_BLOCK as usize,
            offset: le64(format, 8)?.checked_mul(BASIC_BLOCK)?,
            format,
        })
    }

    /// Returns the byte ranges of the buffer at the start of regions of these lengths. Each bit of
    /// the map stands for a chunk, and each region is a run of chunks.
    pub fn places(&self, lengths: impl Iterator<Item = usize>) -> Option<Vec<Range<usize>>> {
        let words = usize::try_from(le32(self.format, 16)?).ok()?;
        let map = self.format.get(BUFFER_MAP_AT..)?;
        if self.length > MOST_BUFFER_BYTES {
            return None;
        }
        let is_logged = |&bit: &usize| {
            bit / 32 < words
                && le32(map, bit / 32 * 4).is_some_and(|word| word >> (bit % 32) & 1 != 0)
        };
        let (chunks, mut next) = (self.length / CHUNK, 0);
        let place = |length: usize| {
            let first = (next..chunks).find(is_logged)?;
            let run = (first..chunks).take_while(is_logged).count();
            let count = run.min(length / CHUNK);
            next = first + count;
            (count > 0).then_some(first * CHUNK..next * CHUNK)
        };
        lengths.map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_runs_of_chunks() {
        let mut format = vec![0; 24];
        // The buffer has eight sectors, or 32 chunks; the second to fourth and the last are logged.
        (format[6], format[16], format[20], format[23]) = (8, 1, 0b1110, 0x80);
        let places = |lengths: &[usize]| {
            let item = BufferItem::parse(&format).unwrap();
            item.places(lengths.iter().copied())
        };
        let three = vec![128..256, 256..512, 3968..4096];
        assert_eq!(places(&[CHUNK, 2 * CHUNK, 5 * CHUNK]), Some(three));
        assert_eq!(places(&[3 * CHUNK, CHUNK, CHUNK]), None);
        assert_eq!(places(&[CHUNK - 1]), None);
    }

    #[test]
    fn forks_are_in_the_order_of_their_regions() {
        let mut format = vec![0; 56];
        (format[4], format[8], format[16]) = (0x42, 8, 131);
        let parse = |format: &[u8]| InodeItem::parse(format).unwrap();
        let local = |region| LoggedFork {
            region,
            is_local: true,
            is_root: false,
        };
        // A data fork of length 0 is absent.
        assert_eq!(
            (parse(&format).data, parse(&format).xattr),
            (None, Some(local(2)))
        );
        format[10] = 8;
        let item = parse(&format);
        assert_eq!(
            (item.inode, item.data, item.xattr),
            (131, Some(local(2)), Some(local(3)))
        );
        assert_eq!(InodeItem::parse(&format[..55]), None);
    }
}
