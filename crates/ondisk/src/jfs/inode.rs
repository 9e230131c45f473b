//! Inodes (fs/jfs/jfs_dinode.h), and the map of their extents (`struct iag`, fs/jfs/jfs_imap.h).

use super::tree::extent;
use crate::bytes::{byte, le32, le64, part};
use crate::fingerprints::{Fingerprints, of};
pub use crate::mode::Kind;

/// Size of an inode.
pub const BYTES: usize = 512;
/// Offset of the root of the inode's tree.
pub const TREE: usize = 224;
/// Offset of the directory table in a directory's inode.
pub const TABLE: usize = 128;
const MAP_EXTENTS: usize = 3072;
const EXTENTS_OF_MAP: usize = 128;

/// View of an inode.
#[derive(Debug, Clone, Copy)]
pub struct Inode<'b>(pub &'b [u8]);

impl<'b> Inode<'b> {
    /// Fileset: the file system's own file that maps the inode.
    pub fn fileset(self) -> u64 {
        u64::from(le32(self.0, 4))
    }

    /// Inode number.
    pub fn number(self) -> u64 {
        u64::from(le32(self.0, 8))
    }

    /// Generation, which tells apart the files that have had this inode number.
    pub fn generation(self) -> u32 {
        le32(self.0, 12)
    }

    /// Bytes of the inode's content.
    pub fn size(self) -> u64 {
        le64(self.0, 24)
    }

    /// Returns whether any name leads to the inode.
    pub fn is_linked(self) -> bool {
        le32(self.0, 40) != 0
    }

    /// Kind of the inode.
    pub fn kind(self) -> Kind {
        Kind::of_mode(le32(self.0, 52))
    }

    /// Blocks of the inode's extended attributes, if the inode does not hold them (`DXD_EXTENT`).
    pub fn attributes(self) -> Option<(u64, u64)> {
        (byte(self.0, 104) & 0x20 != 0).then(|| extent(self.0, 112))
    }

    /// Root of the inode's tree: of extents, or of a directory's names.
    pub fn tree(self) -> &'b [u8] {
        part(self.0, TREE, BYTES)
    }

    /// Extent tree of a directory's directory table. A table of few names takes its place
    /// (`jfs_dirtable_inline`; its numbers begin at 2).
    pub fn table(self) -> Option<&'b [u8]> {
        (le32(self.0, 120) > 14).then(|| part(self.0, TABLE, TREE))
    }

    /// Fingerprints of the parts of the inode.
    pub fn fingerprints(self) -> Fingerprints {
        let body = of(self.0, &[(120, BYTES)]);
        let is_directory = self.kind() == Kind::Directory;
        Fingerprints {
            atime: of(self.0, &[(56, 64)]),
            times: of(self.0, &[(64, 80)]),
            map: of(self.0, &[(24, 40)]).wrapping_add(if is_directory { 0 } else { body }),
            names: if is_directory { body } else { 0 },
            attributes: of(self.0, &[(40, 56), (88, 120)]),
            ..Fingerprints::default()
        }
    }
}

/// Returns the extents of inodes that a page of the map lists.
pub fn mapped(page: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    (0..EXTENTS_OF_MAP)
        .map(|number| extent(page, MAP_EXTENTS + 8 * number))
        .filter(|extent| extent.1 > 0)
}
