//! Fingerprints of the parts of an inode, for comparison with its previous version.

use crate::bytes::{fingerprint, part};

/// Fingerprint of each part of an inode; 0 for missing parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fingerprints {
    /// The access time.
    pub atime: u32,
    /// Other times.
    pub times: u32,
    /// Size, and location of the blocks.
    pub map: u32,
    /// Data stored in the inode.
    pub data: u32,
    /// Names stored in the inode.
    pub names: u32,
    /// Mode, owner, links, flags, extended attributes.
    pub attributes: u32,
}

/// Fingerprint of these byte ranges.
pub fn of(bytes: &[u8], ranges: &[(usize, usize)]) -> u32 {
    fingerprint(ranges.iter().map(|&(from, to)| part(bytes, from, to)))
}
