//! Trees of extents (fs/jfs/jfs_xtree.h) and of names (fs/jfs/jfs_dtree.h), whose roots are in
//! inodes.

use crate::bytes::{byte, le16, le32, part};

const SLOT: usize = 32;
const EXTENT: usize = 16;
/// The slots before the first entry of a tree of extents are its header (`XTENTRYSTART`).
const FIRST_EXTENT: usize = 2;
const LEAF: u8 = 0x02;

/// Where blocks are: first and count (`pxd_t`).
pub fn extent(bytes: &[u8], at: usize) -> (u64, u64) {
    let length = le32(bytes, at);
    let high = u64::from(length >> 24);
    (
        high << 32 | u64::from(le32(bytes, at + 4)),
        u64::from(length & 0xff_ffff),
    )
}

/// What a node of a tree has.
pub enum Node<T> {
    /// Entries.
    Leaf(Vec<T>),
    /// Blocks of nodes below it.
    Internal(Vec<(u64, u64)>),
}

/// Part of a file: its place in it, and where it is, in blocks.
pub struct Mapped {
    pub at: u64,
    pub extent: (u64, u64),
}

/// A node of a tree of extents.
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

/// A node of a tree of names: of each, the inode. A root has its table of slots in another place.
pub fn names(node: &[u8], is_root: bool) -> Node<(String, u64)> {
    let slots = node.len() / SLOT;
    let count = usize::from(byte(node, 17)).min(slots);
    let table = match is_root {
        true => 24,
        false => usize::from(byte(node, 21)) * SLOT,
    };
    let entries = part(node, table, table + count).iter();
    let entries = entries.map(|&slot| {
        part(
            node,
            usize::from(slot) * SLOT,
            (usize::from(slot) + 1) * SLOT,
        )
    });
    if byte(node, 16) & LEAF == 0 {
        return Node::Internal(entries.map(|entry| extent(entry, 0)).collect());
    }
    let name = |entry: &[u8]| {
        let length = usize::from(byte(entry, 5));
        let mut units: Vec<u16> = part(entry, 6, 28)
            .chunks(2)
            .map(|unit| le16(unit, 0))
            .collect();
        let mut next = byte(entry, 4);
        // A name goes on in other slots; the last has a negative number for the next.
        while units.len() < length && usize::from(next) < slots && next < 128 {
            let more = part(
                node,
                usize::from(next) * SLOT,
                (usize::from(next) + 1) * SLOT,
            );
            units.extend(part(more, 2, SLOT).chunks(2).map(|unit| le16(unit, 0)));
            next = byte(more, 0);
        }
        units.truncate(length);
        String::from_utf16_lossy(&units)
    };
    Node::Leaf(
        entries
            .map(|entry| (name(entry), u64::from(le32(entry, 0))))
            .collect(),
    )
}
