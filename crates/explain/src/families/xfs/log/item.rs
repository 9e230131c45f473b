//! Log items: the change that each one describes, and its cause.

use super::super::block::identify;
use super::super::home::cause_of;
use super::super::inode::Core;
use super::super::log_item::{
    BufferItem, BufferKind, InodeItem, InodesMade, Kind, LoggedFork, Regions, quota_account_at,
};
use super::super::metadata::{Metadata, structure_of};
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
    /// Explanation of the log's own headers.
    pub const OWN: Explanation = Explanation {
        home: None,
        home_offset: None,
        causes: Causes::one(Cause::Log),
        inode: NO_INODE,
    };

    /// Explanation of the bytes that fill a record up to the log's unit: a sector, or the log
    /// stripe unit (`xlog_calc_iclog_size`, `l_iclog_roundoff`).
    pub const PADDING: Explanation = Explanation::OWN.because(Cause::Padding);

    /// Explanation of parts that are not understood.
    pub const UNKNOWN: Explanation = Explanation::of(Structure::Unknown, Cause::Unknown);

    /// Returns whether access times are the only cause.
    pub fn is_atime(&self) -> bool {
        self.causes.only() == Some(Cause::Atime)
    }

    /// Returns the explanation with `cause` as its only cause.
    pub const fn because(self, cause: Cause) -> Explanation {
        Explanation {
            causes: Causes::one(cause),
            ..self
        }
    }

    const fn of(home: Structure, cause: Cause) -> Explanation {
        Explanation {
            home: Some(home),
            causes: Causes::one(cause),
            ..Explanation::OWN
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
pub fn explain(regions: &Regions, metadata: &mut Metadata, rows: &mut Rows) -> Explanation {
    let known = regions.get(0).and_then(|format| {
        let about = |home, cause| Some(Explanation::of(home, cause));
        match Kind::of(format)? {
            Kind::Inode => inode(regions, metadata, rows),
            Kind::Buffer => buffer(regions, metadata, rows),
            Kind::InodesMade => inodes_made(format, metadata),
            Kind::FreeExtents => about(Structure::FreeSpaceBtree, Cause::Allocation),
            Kind::Rmap => about(Structure::RmapBtree, Cause::Allocation),
            Kind::Refcount => about(Structure::RefcountBtree, Cause::Allocation),
            Kind::Mappings => about(Structure::ExtentMap, Cause::SizeOrExtents),
            Kind::Attributes => {
                metadata.has_xattr_blocks = true;
                about(Structure::Xattr, Cause::LinksOrMode)
            }
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
fn inode(regions: &Regions, metadata: &mut Metadata, rows: &mut Rows) -> Option<Explanation> {
    let item = InodeItem::parse(regions.get(0)?)?;
    let core = Core::in_log(regions.get(1)?)?;
    let content = |fork: Option<LoggedFork>| regions.get(fork?.region);
    let is_readable = |fork: &LoggedFork| !fork.is_root;
    let version = Version {
        core,
        data: content(item.data).map(|bytes| fingerprint([bytes])),
        xattr: content(item.xattr).map(|bytes| fingerprint([bytes])),
    };
    metadata.mark(item.place, metadata.geometry.inode_bytes);
    let forks = [item.data, item.xattr].map(|fork| content(fork.filter(is_readable)));
    Some(Explanation {
        home: Some(Structure::InodeChunk),
        home_offset: Some(item.place),
        causes: metadata.inode_logged(item.inode, version, forks, rows),
        inode: item.inode,
    })
}

/// Explains an item that creates free inodes.
fn inodes_made(format: &[u8], metadata: &mut Metadata) -> Option<Explanation> {
    let made = InodesMade::parse(format)?;
    metadata.inodes_made(made.group, made.block, made.count);
    let place = metadata.geometry.block_in_group(made.group, made.block);
    let made = Explanation::of(Structure::InodeChunk, Cause::Allocation);
    Some(made.at(place.checked_mul(metadata.geometry.block_bytes)?))
}

/// Explains a buffer item: a block, and the chunks that changed since it was last written home.
fn buffer(regions: &Regions, metadata: &mut Metadata, rows: &mut Rows) -> Option<Explanation> {
    let item = BufferItem::parse(regions.get(0)?)?;
    let offset = item.offset;
    metadata.mark(offset, item.length as u64);
    metadata.has_xattr_blocks |= item.kind == BufferKind::Xattr;
    if item.is_cancelled {
        let known = metadata.known(offset);
        metadata.forget_block(offset, rows);
        let home = known.map_or(Structure::Unused, |k| k.structure);
        return Some(Explanation {
            inode: known.map_or(NO_INODE, |k| k.owner),
            ..Explanation::of(home, Cause::Allocation).at(offset)
        });
    }
    let about = |home| Explanation::of(home, cause_of(home)).at(offset);
    let by_kind = match item.kind {
        BufferKind::Agf => return Some(about(Structure::Agf)),
        BufferKind::Agfl => return Some(about(Structure::Agfl)),
        BufferKind::Agi => return Some(about(Structure::Agi)),
        BufferKind::Superblock => return Some(about(Structure::Superblock)),
        BufferKind::Inodes => {
            let removed = Explanation::of(Structure::InodeChunk, Cause::InodeRemoved);
            return Some(removed.at(offset));
        }
        BufferKind::Quota => Some(Structure::Quota),
        BufferKind::Symlink => Some(Structure::Symlink),
        BufferKind::Directory => Some(Structure::Directory),
        BufferKind::DirectoryIndex => Some(Structure::DirectoryIndex),
        BufferKind::Xattr => Some(Structure::Xattr),
        BufferKind::Realtime => Some(Structure::Realtime),
        BufferKind::Other => None,
    };
    if let Some(whole) = patch(&item, regions, metadata)
        && let Some(block) = identify(&metadata.geometry, offset, &whole)
    {
        let structure = structure_of(block.kind);
        metadata.know(offset, structure, block.owner, None);
        metadata.read_block(offset, &block, &whole, rows);
    }
    let known = metadata.known(offset);
    let block_number = offset / metadata.geometry.block_bytes;
    let owner = metadata.owners.of(block_number, 1).0;
    let home = known.map(|k| k.structure).or(by_kind);
    let home = home.or(owner.map(|o| o.structure));
    let inode = known.map(|k| k.owner).or(owner.map(|o| o.inode));
    Some(Explanation {
        inode: inode.unwrap_or(NO_INODE),
        ..about(home.unwrap_or(Structure::Unknown))
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
        explain(&regions, &mut metadata, &mut Rows::default())
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
                let expected = Explanation::of(home, cause);
                assert_eq!(explained(kind, &[]), expected, "{kind:#x}");
            }
        }
        assert_eq!(explained(0x1250, &[]), Explanation::UNKNOWN);
    }

    #[test]
    fn a_quota_account_is_where_its_buffer_is() {
        // xfs_dq_logformat: disk address at 8; length at 16, offset in the buffer at 20.
        let account = explained(0x123d, &[(8, 96), (16, 272 << 32 | 8)]);
        let expected = Explanation::of(Structure::Quota, Cause::Accounting);
        assert_eq!(account, expected.at(96 * 512 + 272));
        assert_eq!(explained(0x123e, &[]), expected);
        // A buffer of newly created accounts (enum xfs_blft: user, project, group).
        for buffer in 1..=3_u64 {
            let made = explained(0x123c, &[(4, buffer << 11 | 8 << 16), (8, 96)]);
            assert_eq!(made, expected.at(96 * 512));
        }
    }
}
