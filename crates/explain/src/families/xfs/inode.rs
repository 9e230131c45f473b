//! Inodes: on disk big-endian (`xfs_dinode`), in the log the same fields of the host
//! (`xfs_log_dinode`), and what changed between two versions.

use super::bytes::{be16, be32, be64, fingerprint, le16, le32, le64};
use crate::{Cause, Causes};

/// Bytes of the inode before its forks.
pub const CORE_BYTES: usize = 176;

const LARGE_EXTENT_COUNTS: u64 = 1 << 4;
/// `XFS_DIFLAG2_REFLINK`.
const SHARES: u64 = 1 << 1;

/// How a fork holds what it holds (`xfs_dinode_fmt`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// In the inode itself.
    Local,
    /// A list of extents.
    Extents,
    /// The root of a tree of extents.
    Btree,
    /// A device number, or nothing.
    Other,
}

impl Format {
    fn from_number(number: u8) -> Format {
        match number {
            1 => Format::Local,
            2 => Format::Extents,
            3 => Format::Btree,
            _ => Format::Other,
        }
    }
}

/// What of an inode decides why it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Core {
    /// Type and permissions; 0 when free.
    pub mode: u16,
    /// Number of names.
    pub links: u32,
    /// Its generation: another when the number is used again.
    pub generation: u32,
    /// Bytes.
    pub size: u64,
    /// How its data fork holds what it holds.
    pub data_format: Format,
    /// How its attribute fork does.
    pub xattr_format: Format,
    /// Extents of the data fork.
    pub data_extents: u64,
    /// Extents of the attribute fork.
    pub xattr_extents: u32,
    /// Where the attribute fork begins in the forks' space; 0 when there is none.
    pub fork_offset: usize,
    /// The log's sequence number of the version that is at home (`di_lsn`).
    pub sequence: u64,
    atime: u64,
    /// Whether its data is on the realtime device.
    pub realtime: bool,
    /// Whether other inodes may have some of its blocks, too.
    pub shares: bool,
    times: [u64; 2],
    changes: u64,
    blocks: u64,
    owner: u32,
}

/// Integers of one byte order.
struct Order {
    u16: fn(&[u8], usize) -> Option<u16>,
    u32: fn(&[u8], usize) -> Option<u32>,
    u64: fn(&[u8], usize) -> Option<u64>,
}

impl Core {
    /// A slot of an inode block.
    pub fn on_disk(bytes: &[u8]) -> Option<Core> {
        let order = Order {
            u16: be16,
            u32: be32,
            u64: be64,
        };
        Core::parse(bytes, &order)
    }

    /// The second region of a log's inode item.
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
        let fork_offset = *bytes.get(82)?;
        let xattr_format = *bytes.get(83)?;
        Some(Core {
            mode: (order.u16)(bytes, 2)?,
            links: u32_at(16)?,
            generation: u32_at(92)?,
            size: u64_at(56)?,
            data_format: Format::from_number(*bytes.get(5)?),
            xattr_format: Format::from_number(xattr_format),
            data_extents,
            xattr_extents,
            fork_offset: usize::from(fork_offset) * 8,
            sequence: u64_at(112)?,
            atime: u64_at(32)?,
            realtime: (order.u16)(bytes, 90)? & 1 != 0,
            shares: flags2 & SHARES != 0,
            // mtime and ctime. The creation time never changes.
            times: [u64_at(40)?, u64_at(48)?],
            changes: u64_at(104)?,
            blocks: u64_at(64)?,
            // Owner, project, attribute fork, flags.
            owner: fingerprint(&[
                bytes.get(8..16)?,
                bytes.get(20..24)?,
                bytes.get(82..84)?,
                bytes.get(90..92)?,
                bytes.get(120..128)?,
                &xattr_extents.to_be_bytes(),
            ]),
        })
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }

    /// Whether it is a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }

    /// Data and attribute fork in the space behind the core (`bytes`: the whole slot).
    pub fn forks<'a>(&self, slot: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        let space = slot.get(CORE_BYTES..).unwrap_or_default();
        if self.fork_offset == 0 || self.fork_offset > space.len() {
            return (space, &[]);
        }
        space.split_at(self.fork_offset)
    }
}

/// One version of an inode: its core, and fingerprints of its forks (`None`: not seen).
#[derive(Debug, Clone, Copy)]
pub struct Version {
    /// The fields.
    pub core: Core,
    /// The data fork.
    pub data: Option<u32>,
    /// The attribute fork.
    pub xattr: Option<u32>,
}

impl Version {
    /// A slot of an inode block.
    pub fn on_disk(slot: &[u8]) -> Option<Version> {
        let core = Core::on_disk(slot)?;
        let (data, xattr) = core.forks(slot);
        Some(Version {
            core,
            data: Some(fingerprint(&[data])),
            xattr: Some(fingerprint(&[xattr])),
        })
    }

    /// Why this was written over `before`. The strongest reason stands alone: times change with
    /// everything, so that they are a reason only where nothing
    /// else is, and an access time only where nothing but it changed.
    pub fn causes(&self, before: Option<&Version>) -> Causes {
        let (new, old) = match before {
            None if self.core.mode == 0 => return Causes::one(Cause::Allocation),
            None => return Causes::one(Cause::NewInode),
            Some(old) => (&self.core, &old.core),
        };
        if new.mode == 0 || new.links == 0 {
            let gone = old.mode == 0 || old.links == 0;
            let same = (new.mode, new.size, new.blocks) == (old.mode, old.size, old.blocks);
            return Causes::one(if gone && same {
                Cause::Unchanged
            } else {
                Cause::InodeRemoved
            });
        }
        if old.mode == 0 || new.generation != old.generation {
            return Causes::one(Cause::NewInode);
        }
        let differs = |a: Option<u32>, b: Option<u32>| a.is_some() && a != b;
        let data = before.is_some_and(|b| differs(self.data, b.data));
        let xattr = before.is_some_and(|b| differs(self.xattr, b.xattr));
        let mut causes = Causes::NONE;
        let map = |core: &Core| (core.size, core.blocks, core.data_extents, core.data_format);
        if map(new) != map(old) || data {
            let names = new.is_directory();
            causes = causes.with(if names {
                Cause::Names
            } else {
                Cause::SizeOrMap
            });
        }
        if new.mode != old.mode || new.links != old.links || new.owner != old.owner || xattr {
            causes = causes.with(Cause::LinksOrMode);
        }
        if !causes.is_empty() {
            return causes;
        }
        // The kernel counts an access as a change, too, once somebody has looked at the counter
        // (fs/xfs/libxfs/xfs_trans_inode.c).
        Causes::one(if new.times != old.times {
            Cause::Times
        } else if new.atime != old.atime {
            Cause::Atime
        } else if new.changes != old.changes {
            Cause::Times
        } else {
            Cause::Unchanged
        })
    }

    /// Whether its forks are those of `before`, as far as this says.
    pub fn has_forks_of(&self, before: &Version) -> bool {
        let shape = |core: &Core| {
            let formats = (core.data_format, core.xattr_format);
            let counts = (core.data_extents, core.xattr_extents);
            (formats, counts, core.mode, core.generation, core.realtime)
        };
        let same = |new: Option<u32>, old: Option<u32>| new.is_none() || new == old;
        shape(&self.core) == shape(&before.core)
            && same(self.data, before.data)
            && same(self.xattr, before.xattr)
    }

    /// This, with what it does not say taken from `before`.
    pub fn over(self, before: Option<&Version>) -> Version {
        let before = before.filter(|b| b.core.generation == self.core.generation);
        Version {
            data: self.data.or(before.and_then(|b| b.data)),
            xattr: self.xattr.or(before.and_then(|b| b.xattr)),
            ..self
        }
    }
}

/// Blocks of a file: where they begin in the file, on the disk (as a block number with its group),
/// and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First block in the file.
    pub file_block: u64,
    /// First block on the disk, group in the upper bits.
    pub fs_block: u64,
    /// Blocks.
    pub blocks: u64,
}

/// At most `count` packed extents (`xfs_bmbt_rec`: flag 1 bit, offset 54, block 52, count 21).
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A slot of a regular file.
    fn slot() -> Vec<u8> {
        let mut slot = vec![0; 512];
        slot[..2].copy_from_slice(b"IN");
        slot[2..4].copy_from_slice(&0o100_644_u16.to_be_bytes());
        slot[4] = 3;
        slot[5] = 2;
        slot[19] = 1;
        slot
    }

    fn causes(change: impl Fn(&mut [u8])) -> String {
        let old = Version::on_disk(&slot()).unwrap();
        let mut new = slot();
        change(&mut new);
        Version::on_disk(&new)
            .unwrap()
            .causes(Some(&old))
            .to_string()
    }

    #[test]
    fn the_strongest_change_is_the_cause() {
        assert_eq!(causes(|_| {}), "unchanged");
        assert_eq!(causes(|s| s[39] = 1), "atime");
        assert_eq!(causes(|s| (s[39], s[111]) = (1, 1)), "atime");
        assert_eq!(causes(|s| s[111] = 1), "times");
        assert_eq!(causes(|s| (s[39], s[47]) = (1, 1)), "times");
        assert_eq!(causes(|s| (s[47], s[63]) = (1, 1)), "size_or_map");
        assert_eq!(causes(|s| s[200] = 1), "size_or_map");
        assert_eq!(
            causes(|s| (s[63], s[15]) = (1, 1)),
            "size_or_map+links_or_mode"
        );
        assert_eq!(causes(|s| s[19] = 0), "inode_removed");
        assert_eq!(causes(|s| s[95] = 1), "new_inode");
    }

    #[test]
    fn checksum_and_sequence_number_are_no_change() {
        assert_eq!(causes(|s| (s[100], s[119]) = (1, 1)), "unchanged");
    }

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
