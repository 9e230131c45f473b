//! FAT and exFAT: the boot sector and directories.

pub mod directory;
pub mod layout;
