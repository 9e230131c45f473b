//! btrfs. Formats: Linux `include/uapi/linux/btrfs_tree.h`, `fs/btrfs/fs.h`.

pub mod block;
pub mod chunk;
pub mod item;
pub mod superblock;
