//! Log items: what each says was changed, and why (fs/xfs/libxfs/xfs_log_format.h). Formats are of the host: little-endian.

use super::super::block::{Block, identify};
use super::super::bytes::{be32, fingerprint, le16, le32, le64};
use super::super::home::causes_of;
use super::super::inode::{Core, Version};
use super::super::metadata::{Late, Metadata};
use super::super::superblock::BASIC_BLOCK;
use crate::classify::{Cause, Causes, NO_INODE, Row, Rows, Structure};

/// `XFS_BLF_CHUNK`: changes of buffers are logged in steps of it.
const CHUNK: usize = 128;
const BUFFER_CANCELLED: u16 = 1 << 1;
const BUFFER_MAP_AT: usize = 20;
const DATA_FORK: u32 = 0x002 | 0x004 | 0x008;
const XATTR_FORK: u32 = 0x040 | 0x080 | 0x100;
/// Of the root of an extent tree, which is in the log in another form than in the inode.
const DATA_ROOT: u32 = 0x008;
const XATTR_ROOT: u32 = 0x100;

/// What a part of the log is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    home: Option<Structure>,
    causes: Causes,
    /// The inode, or [`NO_INODE`].
    pub inode: u64,
}

impl Explanation {
    /// The log's own: headers, padding.
    pub const OWN: Explanation = Explanation {
        home: None,
        causes: Causes::one(Cause::Log),
        inode: NO_INODE,
    };

    /// Not understood.
    pub const UNKNOWN: Explanation = Explanation {
        home: Some(Structure::Unknown),
        causes: Causes::one(Cause::Unknown),
        inode: NO_INODE,
    };

    /// Whether it is there for an access time alone.
    pub fn is_atime(&self) -> bool {
        self.causes.only() == Some(Cause::Atime)
    }

    /// Also for another reason.
    pub fn with(self, cause: Cause) -> Explanation {
        Explanation {
            causes: self.causes.with(cause),
            ..self
        }
    }

    /// For this reason only.
    pub fn because(self, cause: Cause) -> Explanation {
        Explanation {
            causes: Causes::one(cause),
            ..self
        }
    }

    fn of(home: Structure, causes: Causes) -> Explanation {
        Explanation {
            home: Some(home),
            causes,
            inode: NO_INODE,
        }
    }

    /// Say it in a row.
    pub fn apply(&self, row: &mut Row) {
        row.structure = Structure::Log;
        row.home = self.home;
        row.causes = self.causes;
        row.inode = self.inode;
    }
}

/// Explain an item, and learn from it.
pub fn explain(
    regions: &[Vec<u8>],
    metadata: &mut Metadata,
    rows: &mut Rows,
    late: &mut Late,
) -> Explanation {
    let Some((format, content)) = regions.split_first() else {
        return Explanation::UNKNOWN;
    };
    let about = |home, cause| Explanation::of(home, Causes::one(cause));
    let explanation = match le16(format, 0) {
        Some(0x123b) => inode(format, content, metadata, rows, late),
        Some(0x123c) => buffer(format, content, metadata, rows, late),
        Some(0x123f) => inodes_made(format, metadata),
        // Extents to free, and freed (of the realtime device, too).
        Some(0x1236 | 0x1237 | 0x124a | 0x124b) => {
            Some(about(Structure::FreeSpaceBtree, Cause::Allocation))
        }
        Some(0x1240 | 0x1241 | 0x124c | 0x124d) => {
            Some(about(Structure::RmapBtree, Cause::Allocation))
        }
        Some(0x1242 | 0x1243 | 0x124e | 0x124f) => {
            Some(about(Structure::RefcountBtree, Cause::Allocation))
        }
        // Mappings to change, and to exchange between files.
        Some(0x1244 | 0x1245 | 0x1248 | 0x1249) => {
            Some(about(Structure::ExtentMap, Cause::SizeOrMap))
        }
        Some(0x1246 | 0x1247) => Some(about(Structure::Xattr, Cause::LinksOrMode)),
        Some(0x123d | 0x123e) => Some(about(Structure::Quota, Cause::Accounting)),
        Some(0x1238) => Some(about(Structure::InodeChunk, Cause::InodeRemoved)),
        _ => None,
    };
    explanation.unwrap_or(Explanation::UNKNOWN)
}

/// `xfs_inode_log_format`, core, then the forks that changed since the inode was last written home.
fn inode(
    format: &[u8],
    content: &[Vec<u8>],
    metadata: &mut Metadata,
    rows: &mut Rows,
    late: &mut Late,
) -> Option<Explanation> {
    let fields = le32(format, 4)?;
    let inode = le64(format, 16)?;
    let core = Core::in_log(content.first()?)?;
    let mut forks = content.iter().skip(1).map(Vec::as_slice);
    let mut fork = |field: u32, size_at| {
        let logged = fields & field != 0 && le16(format, size_at) != Some(0);
        logged.then(|| forks.next()).flatten()
    };
    let data = fork(DATA_FORK, 10);
    let xattr = fork(XATTR_FORK, 8);
    let version = Version {
        core,
        data: data.map(|fork| fingerprint(&[fork])),
        xattr: xattr.map(|fork| fingerprint(&[fork])),
    };
    let data = data.filter(|_| fields & DATA_ROOT == 0);
    let xattr = xattr.filter(|_| fields & XATTR_ROOT == 0);
    let before = metadata.inode_logged(inode, version, data, xattr, rows, late);
    Some(Explanation {
        home: Some(Structure::InodeChunk),
        causes: version.causes(before.as_ref()),
        inode,
    })
}

/// `xfs_icreate_log`: free inodes were made.
fn inodes_made(format: &[u8], metadata: &mut Metadata) -> Option<Explanation> {
    let (group, block, count) = (be32(format, 4)?, be32(format, 8)?, be32(format, 12)?);
    metadata.inodes_made(group, block, count);
    Some(Explanation::of(
        Structure::InodeChunk,
        Causes::one(Cause::Allocation),
    ))
}

/// `xfs_buf_log_format`, then the chunks that changed since the buffer was last written home.
fn buffer(
    format: &[u8],
    content: &[Vec<u8>],
    metadata: &mut Metadata,
    rows: &mut Rows,
    late: &mut Late,
) -> Option<Explanation> {
    let flags = le16(format, 4)?;
    let length = usize::from(le16(format, 6)?) * BASIC_BLOCK as usize;
    let offset = le64(format, 8)?.checked_mul(BASIC_BLOCK)?;
    let known = metadata.known(offset);
    if flags & BUFFER_CANCELLED != 0 {
        metadata.forget_block(offset);
        let home = known.map_or(Structure::Unused, |k| k.structure);
        return Some(Explanation {
            inode: known.map_or(NO_INODE, |k| k.owner),
            ..Explanation::of(home, Causes::one(Cause::Allocation))
        });
    }
    // enum xfs_blft.
    let by_kind = match flags >> 11 {
        1..=3 => Some(Structure::Quota),
        5 => Some(Structure::Agf),
        6 => Some(Structure::Agfl),
        7 => Some(Structure::Agi),
        8 => Some(Structure::InodeChunk),
        9 => Some(Structure::Symlink),
        10 | 11 => Some(Structure::Directory),
        12..=14 => Some(Structure::DirectoryIndex),
        16 | 17 => Some(Structure::Xattr),
        18 => Some(Structure::Superblock),
        19 | 20 => Some(Structure::Realtime),
        _ => None,
    };
    if let Some(
        home @ (Structure::Agf | Structure::Agfl | Structure::Agi | Structure::Superblock),
    ) = by_kind
    {
        return Some(Explanation::of(home, causes_of(home)));
    }
    if by_kind == Some(Structure::InodeChunk) {
        // Inodes log themselves: this is the list of those that were removed while open.
        return Some(Explanation::of(
            Structure::InodeChunk,
            Causes::one(Cause::InodeRemoved),
        ));
    }
    let block = patch(format, content, offset, length, metadata).and_then(|whole| {
        let block = identify(&metadata.geometry, offset, &whole)?;
        let block = metadata.settle(offset, &whole, block);
        metadata.know(offset, &block, None);
        metadata.read_block(offset, &whole, rows, late);
        Some(block)
    });
    let known = block.or(known.map(|k| Block::new(k.structure, k.owner)));
    let block_number = offset / metadata.geometry.block_bytes;
    let owner = metadata.owners.of(block_number, 1).0;
    let home = known
        .map(|k| k.structure)
        .or(by_kind)
        .or(owner.map(|o| o.structure));
    let inode = known.map(|k| k.owner).or(owner.map(|o| o.inode));
    let home = home.unwrap_or(Structure::Unknown);
    Some(Explanation {
        inode: inode.unwrap_or(NO_INODE),
        ..Explanation::of(home, causes_of(home))
    })
}

/// The buffer as it is with the logged chunks in it: all that is known of the rest is from before.
fn patch(
    format: &[u8],
    content: &[Vec<u8>],
    offset: u64,
    length: usize,
    metadata: &Metadata,
) -> Option<Vec<u8>> {
    let words = usize::try_from(le32(format, 16)?).ok()?;
    let map = format.get(BUFFER_MAP_AT..)?;
    let is_logged = |bit: usize| {
        bit / 32 < words && le32(map, bit / 32 * 4).is_some_and(|word| word >> (bit % 32) & 1 != 0)
    };
    // No buffer is longer than a directory block.
    if length > 1 << 16 {
        return None;
    }
    let mut whole = vec![0; length];
    if let Some(before) = metadata
        .content(offset)
        .and_then(|c| c.get(..length.min(c.len())))
    {
        whole[..before.len()].copy_from_slice(before);
    }
    let chunks = length / CHUNK;
    let mut bit = 0;
    for region in content {
        bit = (bit..chunks).find(|&b| is_logged(b))?;
        let count = (bit..chunks)
            .take_while(|&b| is_logged(b))
            .count()
            .min(region.len() / CHUNK);
        if count == 0 {
            return None;
        }
        let bytes = count * CHUNK;
        whole
            .get_mut(bit * CHUNK..bit * CHUNK + bytes)?
            .copy_from_slice(&region[..bytes]);
        bit += count;
    }
    Some(whole)
}
