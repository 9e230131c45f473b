//! Parsers for the on-disk formats of file systems: they turn bytes into typed views.
//!
//! Each format is parsed only here. Callers decide what its blocks mean (why they were written,
//! which parts are private): this crate knows nothing about recordings.
//!
//! Content is untrusted. No function here panics, loops forever or allocates an amount that it read
//! without bounding it. Data that is not a structure of the expected kind yields `None`. A
//! truncated or damaged structure yields the part that can be read.

#![forbid(unsafe_code)]
// Libraries report errors; they never print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod btrfs;
pub mod bytes;
pub mod ext;
pub mod f2fs;
pub mod fat;
pub mod fingerprints;
pub mod jfs;
pub mod mode;
pub mod nilfs2;
pub mod ntfs;
pub mod reiserfs;
pub mod xfs;
