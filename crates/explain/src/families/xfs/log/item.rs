//! Log items: the change that each one describes, and its cause.

use super::super::block::identify;
use super::super::home::causes_of;
use super::super::inode::Core;
use super::super::log_item::{
    BufferItem, BufferKind, InodeItem, InodesMade, Kind, LoggedFork, Regions, quota_account_at,
};
use super::super::metadata::{Late, Metadata};
use super::super::version::Version;
use crate::bytes::fingerprint;
use crate::{Cause, Causes, NO_INODE, Row, Rows, Structure};

/// Explanation of a part of the log.
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
    /// Explanation of the log's own headers and padding.
    pub const OWN: Explanation = Explanation {
        home: None,
        home_offset: None,
        causes: Causes::one(Cause::Log),
        inode: NO_INODE,
    };

    /// Explanation of parts that are not understood.
    pub const UNKNOWN: Explanation = Explanation {
        home: Some(Structure::Unknown),
        home_offset: None,
        causes: Causes::one(Cause::Unknown),
        inode: NO_INODE,
    };

    /// Returns whether access times are the only cause.
    pub fn is_atime(&self) -> bool {
        self.causes.only() == Some(Cause::Atime)
    }

    /// Returns the explanation with `cause` as its only cause.
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

    /// Writes the explanation into a row.
    pub fn apply(&self, row: &mut Row) {
        row.structure = Structure::Log;
        row.home = self.home;
        row.home_offset = self.home_offset;
        row.causes = self.causes;
        row.inode = self.inode;
    }
}

/// Explains an item, and applies its changes to `metadata`.
pub fn explain(
    regions: &Regions,
    metadata: &mut Metadata,
    rows: &mut Rows,
    late: &mut Late,
) -> Explanation {
    let known = regions.get(0).and_then(|format| {
        let about = |home, cause| Some(Explanation::of(home, Causes::one(cause)));
        match Kind::of(format)? {
            Kind::Inode => inode(format, regions, metadata, rows, late),
            Kind::Buffer => buffer(format, regions, metadata, rows, late),
            Kind::InodesMade => inodes_made(format, metadata),
            Kind::FreeExtents => about(Structure::FreeSpaceBtree, Cause::Allocation),
            Kind::Rmap => about(Structure::RmapBtree, Cause::Allocation),
            Kind::Refcount => about(Structure::RefcountBtree, Cause::Allocation),
            Kind::Mappings => about(Structure::ExtentMap, Cause::SizeOrExtents),
            Kind::Attributes => about(Structure::Xattr, Cause::LinksOrMode),
            Kind::QuotaAccount => {
                let account = about(Structure::Quota, Cause::Accounting)?;
                Some(account.at(quota_account_at(format)?))
            }
            Kind::QuotaOff => about(Structure::Quota, Cause::Accounting),
            Kind::Unlinked => about(Structure::InodeChunk, Cause::InodeRemoved),
        }
    });
    known.unwrap_or(Explanation::UNKNOWN)
}

/// Explains an inode item: the inode, and the forks that changed since it was last written home.
fn inode(
    format: &[u8],
    regions: &Regions,
    metadata: &mut Metadata,
    rows: &mut Rows,
    late: &mut Late,
) -> Option<Explanation> {
    let item = InodeItem::parse(format)?;
    let core = Core::in_log(regions.get(1)?)?;
    let fork = |fork: Option<LoggedFork>| {
        let fork = fork.and_then(|fork| Some((regions.get(fork.region)?, fork.is_root)));
        let readable = fork
            .filter(|&(_, is_root)| !is_root)
            .map(|(bytes, _)| bytes);
        (fork.map(|(bytes, _)| fingerprint([bytes])), readable)
    };
    let (data, xattr) = (fork(item.data), fork(item.xattr));
    let version = Version {
        core,
        data: data.0,
        xattr: xattr.0,
    };
    metadata.mark(item.place, metadata.geometry.inode_bytes);
    let before = metadata.inode_logged(item.inode, version, data.1, xattr.1, rows, late);
    Some(Explanation {
        home: Some(Structure::InodeChunk),
        home_offset: Some(item.place),
        causes: version.causes(before.as_ref()),
        inode: item.inode,
    })
}

/// Explains an item that creates free inodes.
fn inodes_made(format: &[u8], metadata: &mut Metadata) -> Option<Explanation> {
    let made = InodesMade::parse(format)?;
    metadata.inodes_made(made.group, made.block, made.count);
    let place = metadata.geometry.block_in_group(made.group, made.block);
    let made = Explanation::of(Structure::InodeChunk, Causes::one(Cause::Allocation));
    Some(made.at(place.checked_mul(metadata.geometry.block_bytes)?))
}

/// Explains a buffer item: a block, and the chunks that changed since it was last written home.
fn buffer(
    format: &[u8],
    regions: &Regions,
    metadata: &mut Metadata,
    rows: &mut Rows,
    late: &mut Late,
) -> Option<Explanation> {
    let item = BufferItem::parse(format)?;
    let offset = item.offset;
    metadata.mark(offset, item.length as u64);
    let known = metadata.known(offset);
    if item.is_cancelled {
        metadata.forget_block(offset);
        let home = known.map_or(Structure::Unused, |k| k.structure);
        return Some(Explanation {
            inode: known.map_or(NO_INODE, |k| k.owner),
            ..Explanation::of(home, Causes::one(Cause::Allocation)).at(offset)
        });
    }
    let is = |home| Some(Explanation::of(home, causes_of(home)).at(offset));
    let by_kind = match item.kind {
        BufferKind::Agf => return is(Structure::Agf),
        BufferKind::Agfl => return is(Structure::Agfl),
        BufferKind::Agi => return is(Structure::Agi),
        BufferKind::Superblock => return is(Structure::Superblock),
        BufferKind::Inodes => {
            let causes = Causes::one(Cause::InodeRemoved);
            return Some(Explanation::of(Structure::InodeChunk, causes).at(offset));
        }
        BufferKind::Quota => Some(Structure::Quota),
        BufferKind::Symlink => Some(Structure::Symlink),
        BufferKind::Directory => Some(Structure::Directory),
        BufferKind::DirectoryIndex => Some(Structure::DirectoryIndex),
        BufferKind::Xattr => Some(Structure::Xattr),
        BufferKind::Realtime => Some(Structure::Realtime),
        BufferKind::Other => None,
    };
    let block = patch(&item, regions, metadata).and_then(|whole| {
        let block = identify(&metadata.geometry, offset, &whole)?;
        let structure = metadata.structure(offset, &block);
        metadata.know(offset, structure, block.owner, None);
        metadata.read_block(offset, &block, &whole, rows, late);
        Some((structure, block.owner))
    });
    let known = block.or(known.map(|k| (k.structure, k.owner)));
    let block_number = offset / metadata.geometry.block_bytes;
    let owner = metadata.owners.of(block_number, 1).0;
    let home = known
        .map(|(structure, _)| structure)
        .or(by_kind)
        .or(owner.map(|o| o.structure));
    let inode = known.map(|(_, owner)| owner).or(owner.map(|o| o.inode));
    let home = home.unwrap_or(Structure::Unknown);
    Some(Explanation {
        inode: inode.unwrap_or(NO_INODE),
        ..Explanation::of(home, causes_of(home)).at(offset)
    })
}

/// Returns the buffer with the logged chunks applied. The rest is the last known content.
fn patch(item: &BufferItem<'_>, regions: &Regions, metadata: &Metadata) -> Option<Vec<u8>> {
    let places = item.places(regions.from(1).map(<[u8]>::len))?;
    let mut whole = vec![0; item.length];
    if let Some(before) = metadata.content(item.offset) {
        let before = &before[..item.length.min(before.len())];
        whole[..before.len()].copy_from_slice(before);
    }
    for (place, region) in places.into_iter().zip(regions.from(1)) {
        let length = place.len();
        whole.get_mut(place)?.copy_from_slice(region.get(..length)?);
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::super::super::geometry;
    use super::*;

    /// Explains an item of one region, with `words` of 64 bits at these offsets after its type.
    fn explained(kind: u16, words: &[(usize, u64)]) -> Explanation {
        let mut metadata = Metadata::new(geometry());
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
                Cause::SizeOrExtents,
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
        // xfs_dq_logformat: disk address at 8; length at 16, offset in the buffer at 20.
        let account = explained(0x123d, &[(8, 96), (16, 272 << 32 | 8)]);
        let expected = Explanation::of(Structure::Quota, Causes::one(Cause::Accounting));
        assert_eq!(account, expected.at(96 * 512 + 272));
        assert_eq!(explained(0x123e, &[]), expected);
        // A buffer of newly created accounts (enum xfs_blft: user, project, group).
        for buffer in 1..=3_u64 {
            let made = explained(0x123c, &[(4, buffer << 11 | 8 << 16), (8, 96)]);
            assert_eq!(made, expected.at(96 * 512));
        }
    }
}
