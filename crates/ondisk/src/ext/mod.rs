//! ext2, ext3, ext4. Formats: Linux `fs/ext4/ext4.h` and the files named in each module.

pub mod directory;
pub mod fast_commit;
pub mod inode;
pub mod journal;
pub mod layout;
pub mod map;
pub mod superblock;
pub mod xattr;
