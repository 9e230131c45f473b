//! jfs (fs/jfs/jfs_filsys.h): superblock, inodes, trees of extents and of names, and the log.

pub mod inode;
pub mod log;
pub mod superblock;
pub mod tree;
