//! Trees of extents (fs/jfs/jfs_xtree.h) and of names (fs/jfs/jfs_dtree.h). Inodes hold their
//! roots.

use crate::bytes::{byte, le16, le32, part, utf16};

const SLOT: usize = 32;
const EXTENT: usize = 16;
/// Number of the first entry in a tree of extents: the slots before it are the header
/// (`XTENTRYSTART`).
const FIRST_EXTENT: usize = 2;
const LEAF: u8 = 0x02;

/// Location of blocks: first block and count (`pxd_t`).
pub fn extent(bytes: &[u8], at: usize) -> (u64, u64) {
    let length = le32(bytes, at);
    let first = u64::from(length >> 24) << 32 | u64::from(le32(bytes, at + 4));
    (first, u64::from(length & 0xff_ffff))
}

/// Content of a tree node.
pub enum Node<T> {
    /// Entries.
    Leaf(Vec<T>),
    /// Blocks of the nodes below.
    Internal(Vec<(u64, u64)>),
}

/// Part of a file: its location in the file and on the disk, in blocks.
pub struct Mapped {
    /// First block in the file.
    pub at: u64,
    /// First block on the disk, and number of blocks.
    pub extent: (u64, u64),
}

/// Parses a node of a tree of extents.
pub fn extents(node: &[u8]) -> Node<Mapped> {
    let last = usize::from(le16(node, 18)).min(node.len() / EXTENT);
    let entries = (FIRST_EXTENT..last).map(|number| {
        let entry = part(node, number * EXTENT, (number + 1) * EXTENT);
        Mapped {
            at: u64::from(byte(entry, 3)) << 32 | u64::from(le32(entry, 4)),
            extent: extent(entry, 8),
        }
    });
    match byte(node, 16) & LEAF {
        0 => Node::Internal(entries.map(|entry| entry.extent).collect()),
        _ => Node::Leaf(entries.collect()),
    }
}

/// Parses a node of a tree of names; each name comes with its inode. A root has its slot table at a
/// different place.
pub fn names(node: &[u8], is_root: bool) -> Node<(String, u64)> {
    let slots = node.len() / SLOT;
    let count = usize::from(byte(node, 17)).min(slots);
    let table = match is_root {
        true => 24,
        false => usize::from(byte(node, 21)) * SLOT,
    };
    let slot = |number: u8| {
        part(
            node,
            usize::from(number) * SLOT,
            (usize::from(number) + 1) * SLOT,
        )
    };
    let entries = part(node, table, table + count).iter();
    let entries = entries.map(|&number| slot(number));
    if byte(node, 16) & LEAF == 0 {
        return Node::Internal(entries.map(|entry| extent(entry, 0)).collect());
    }
    let name = |entry: &[u8]| {
        let length = usize::from(byte(entry, 5));
        let mut units: Vec<_> = utf16(part(entry, 6, 28)).collect();
        let mut next = byte(entry, 4);
        // A name continues in other slots; in the last slot, the number of the next is negative.
        while units.len() < length && usize::from(next) < slots && next < 128 {
            let more = slot(next);
            units.extend(utf16(part(more, 2, SLOT)));
            next = byte(more, 0);
        }
        units.truncate(length);
        String::from_utf16_lossy(&units)
    };
    let named = entries.map(|entry| (name(entry), le32(entry, 0).into()));
    Node::Leaf(named.collect())
}
