//! xfs (v5). Formats: Linux `fs/xfs/libxfs/xfs_format.h`, `xfs_da_format.h`, `xfs_log_format.h`.

pub mod block;
pub mod directory;
pub mod inode;
pub mod log_item;
pub mod log_record;
mod regions;
pub mod superblock;
pub mod xattr;
