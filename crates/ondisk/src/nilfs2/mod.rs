//! nilfs2 (include/uapi/linux/nilfs2_ondisk.h): superblock, summaries of partial segments, the
//! ifile, and directories.

pub mod directory;
pub mod ifile;
pub mod summary;
pub mod superblock;

/// Inode of the file of disk addresses (DAT).
pub const DAT: u64 = 3;
/// Inode of the checkpoint file.
pub const CPFILE: u64 = 4;
/// Inode of the segment usage file.
pub const SUFILE: u64 = 5;
/// Inode of the inode file.
pub const IFILE: u64 = 6;
