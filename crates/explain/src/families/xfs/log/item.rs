//! Log items: what each says was changed, and why (fs/xfs/libxfs/xfs_log_format.h). Formats are of
//! the host: little-endian.

use super::super::block::{Block, identify};
use super::super::bytes::{be32, fingerprint, le16, le32, le64};
use super::super::home::causes_of;
use super::super::inode::{Core, Version};
use super::super::metadata::{Late, Metadata};
use super::super::superblock::BASIC_BLOCK;
use super::regions::Regions;
use crate::{Cause, Causes, NO_INODE, Row, Rows, Structure};

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
    /// Byte offset on the main disk of the block or inode that the item describes.
    home_offset: Option<u64>,
    causes: Causes,
    /// The inode, or [`NO_INODE`].
    pub inode: u64,
}

impl Explanation {
    /// The log's own: headers, padding.
    pub const OWN: Explanation = Explanation {
        home: None,
        home_offset: None,
        causes: Causes::one(Cause::Log),
        inode: NO_INODE,
    };

    /// Not understood.
    pub const UNKNOWN: Explanation = Explanation {
        home: Some(Structure::Unknown),
        home_offset: None,
        causes: Causes::one(Cause::Unknown),
        inode: NO_INODE,
    };

    /// Whether it is there for an access time alone.
    pub fn is_atime(&self) -> bool {
        self.causes.only() == Some(Cause::Atime)
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
            home_offset: None,
            causes,
            inode: NO_INODE,
        }
    }

    fn at(self, offset: u64) -> Explanation {
        Explanation {
            home_offset: Some(offset),
            ..self
        }
    }

    /// Say it in a row.
    pub fn apply(&self, row: &mut Row) {
        row.structure = Structure::Log;
        row.home = self.home;
        row.home_offset = self.home_offset;
        row.causes = self.causes;
        row.inode = self.inode;
    }
}

/// Explain an item, and learn from it.
pub fn explain(
    regions: &Regions,
    metadata: &mut Metadata,
    rows: &mut Rows,
    late: &mut Late,
) -> Explanation {
    let Some(format) = regions.get(0) else {
        return Explanation::UNKNOWN;
    };
    let about = |home, cause| Explanation::of(home, Causes::one(cause));
    let explanation = match le16(format, 0) {
        Some(0x123b) => inode(format, regions, metadata, rows, late),
        Some(0x123c) => buffer(format, regions, metadata, rows, late),
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
        Some(0x123d) => quota_account(format),
        Some(0x123e) => Some(about(Structure::Quota, Cause::Accounting)),
        Some(0x1238) => Some(about(Structure::InodeChunk, Cause::InodeRemoved)),
        _ => None,
    };
    explanation.unwrap_or(Explanation::UNKNOWN)
}

/// `xfs_inode_log_format`, core, then the forks that changed since the inode was last written home.
fn inode(
    format: &[u8],
    regions: &Regions,
    metadata: &mut Metadata,
    rows: &mut Rows,
    late: &mut Late,
) -> Option<Explanation> {
    let fields = le32(format, 4)?;
    let inode = le64(format, 16)?;
    let place = place_in_buffer(le64(format, 40)?, le32(format, 52)?)?;
    let core = Core::in_log(regions.get(1)?)?;
    let mut forks = regions.from(2);
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
        home_offset: Some(place),
        causes: version.causes(before.as_ref()),
        inode,
    })
}

/// Byte offset of what lies this far into the buffer at a disk address.
fn place_in_buffer(address: u64, offset: u32) -> Option<u64> {
    let buffer = address.checked_mul(BASIC_BLOCK)?;
    buffer.checked_add(u64::from(offset))
}

/// `xfs_dq_logformat`: an account changed.
fn quota_account(format: &[u8]) -> Option<Explanation> {
    let place = place_in_buffer(le64(format, 8)?, le32(format, 20)?)?;
    let account = Explanation::of(Structure::Quota, Causes::one(Cause::Accounting));
    Some(account.at(place))
}

/// `xfs_icreate_log`: free inodes were made.
fn inodes_made(format: &[u8], metadata: &mut Metadata) -> Option<Explanation> {
    let (group, block, count) = (be32(format, 4)?, be32(format, 8)?, be32(format, 12)?);
    metadata.inodes_made(group, block, count);
    let place = metadata.geometry.block_in_group(group, block);
    let made = Explanation::of(Structure::InodeChunk, Causes::one(Cause::Allocation));
    Some(made.at(place.checked_mul(metadata.geometry.block_bytes)?))
}

/// `xfs_buf_log_format`, then the chunks that changed since the buffer was last written home.
fn buffer(
    format: &[u8],
    regions: &Regions,
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
            ..Explanation::of(home, Causes::one(Cause::Allocation)).at(offset)
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
        return Some(Explanation::of(home, causes_of(home)).at(offset));
    }
    if by_kind == Some(Structure::InodeChunk) {
        // Inodes log themselves: this is the list of those that were removed while open.
        let removed = Explanation::of(Structure::InodeChunk, Causes::one(Cause::InodeRemoved));
        return Some(removed.at(offset));
    }
    let block = patch(format, regions, offset, length, metadata).and_then(|whole| {
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
        ..Explanation::of(home, causes_of(home)).at(offset)
    })
}

/// The buffer as it is with the logged chunks in it: all that is known of the rest is from before.
fn patch(
    format: &[u8],
    regions: &Regions,
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
    for region in regions.from(1) {
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

#[cfg(test)]
mod tests {
    use super::super::super::superblock::Geometry;
    use super::*;

    /// What an item of one region says: where `words` are, 64 bits each, behind its type.
    fn explained(kind: u16, words: &[(usize, u64)]) -> Explanation {
        let mut metadata = Metadata::new(Geometry::example());
        let mut format = vec![0; 64];
        format[..2].copy_from_slice(&kind.to_le_bytes());
        format[2] = 1;
        for (at, word) in words {
            format[*at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let mut regions = Regions::default();
        regions.push(&format);
        let (mut rows, mut late) = (Rows::default(), Late::new());
        explain(&regions, &mut metadata, &mut rows, &mut late)
    }

    #[test]
    fn intents_and_what_is_done_of_them_say_what_they_are_for() {
        let cases = [
            (
                [0x1236, 0x1237, 0x124a, 0x124b],
                Structure::FreeSpaceBtree,
                Cause::Allocation,
            ),
            (
                [0x1240, 0x1241, 0x124c, 0x124d],
                Structure::RmapBtree,
                Cause::Allocation,
            ),
            (
                [0x1242, 0x1243, 0x124e, 0x124f],
                Structure::RefcountBtree,
                Cause::Allocation,
            ),
            (
                [0x1244, 0x1245, 0x1248, 0x1249],
                Structure::ExtentMap,
                Cause::SizeOrMap,
            ),
            (
                [0x1246, 0x1247, 0x1246, 0x1247],
                Structure::Xattr,
                Cause::LinksOrMode,
            ),
        ];
        for (kinds, home, cause) in cases {
            for kind in kinds {
                let expected = Explanation::of(home, Causes::one(cause));
                assert_eq!(explained(kind, &[]), expected, "{kind:#x}");
            }
        }
        assert_eq!(explained(0x1250, &[]), Explanation::UNKNOWN);
    }

    #[test]
    fn a_quota_account_is_where_its_buffer_is() {
        // xfs_dq_logformat: disk address at 8; length at 16, place in the buffer at 20.
        let account = explained(0x123d, &[(8, 96), (16, 272 << 32 | 8)]);
        let expected = Explanation::of(Structure::Quota, Causes::one(Cause::Accounting));
        assert_eq!(account, expected.at(96 * 512 + 272));
        assert_eq!(explained(0x123e, &[]), expected);
        // A buffer of accounts that were made (enum xfs_blft: user, project, group).
        for buffer in 1..=3_u64 {
            let made = explained(0x123c, &[(4, buffer << 11 | 8 << 16), (8, 96)]);
            assert_eq!(made, expected.at(96 * 512));
        }
    }
}
