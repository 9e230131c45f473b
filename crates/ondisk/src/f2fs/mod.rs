//! f2fs (include/linux/f2fs_fs.h): superblock, checkpoints, nodes and directories.

pub mod checkpoint;
pub mod directory;
pub mod node;
pub mod superblock;

/// Block size: the only one that most machines can mount (`F2FS_BLKSIZE`), equal to the page size.
pub const BLOCK: u64 = 4096;
