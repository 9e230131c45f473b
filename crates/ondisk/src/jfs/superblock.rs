//! The superblock (`struct jfs_superblock`), and structures at fixed places (fs/jfs/jfs_filsys.h).

use super::tree::extent;
use crate::bytes::le32;

/// Block size: the only one that jfs supports.
pub const PAGE: u64 = 4096;
/// Offset of the superblock, in bytes.
pub const AT: u64 = 0x8000;
/// Bytes of the superblock that are read.
pub const BYTES: usize = 128;
/// Offset of the first page of the inode map for the file system's own files.
pub const INODE_MAP: u64 = 0x9000;
/// Offset of the inodes of the file system's own files.
pub const OWN_INODES: u64 = 0xb000;
/// Offset of the second superblock.
pub const BACKUP: u64 = 0xf000;
/// End of the structures at fixed places.
pub const OWN_END: u64 = 0x1_0000;
/// Offset of the log's superblock (`struct logsuper`) on a separate log device.
pub const LOG_AT: u64 = 4096;
const LOG_MAGIC: u32 = 0x8765_4321;
const CLEAN: u32 = 0;

/// View of a superblock.
#[derive(Debug, Clone, Copy)]
pub struct Superblock<'b>(&'b [u8]);

impl<'b> Superblock<'b> {
    /// Parses a superblock; `None` if these bytes are not one.
    pub fn parse(bytes: &'b [u8]) -> Option<Superblock<'b>> {
        bytes.starts_with(b"JFS1").then_some(Superblock(bytes))
    }

    /// Size of a block.
    pub fn block_bytes(self) -> u64 {
        u64::from(le32(self.0, 16))
    }

    /// Returns whether the file system was unmounted (`FM_CLEAN`).
    pub fn is_clean(self) -> bool {
        le32(self.0, 40) == CLEAN
    }

    /// Second table of the file system's own inodes: first block and count.
    pub fn own_inodes(self) -> (u64, u64) {
        extent(self.0, 48)
    }

    /// Second map of the file system's own inodes: first block and count.
    pub fn own_map(self) -> (u64, u64) {
        extent(self.0, 56)
    }

    /// Log: first block and count; no blocks if the log is on another disk.
    pub fn log(self) -> (u64, u64) {
        extent(self.0, 72)
    }

    /// Work space of fsck: first block and count.
    pub fn fsck(self) -> (u64, u64) {
        extent(self.0, 80)
    }
}

/// Returns whether a `struct logsuper` begins with these bytes.
pub fn is_log(bytes: &[u8]) -> bool {
    le32(bytes, 0) == LOG_MAGIC
}
