//! Names in directories, and what earlier names left in their blocks.

use super::{Shape, checksum};
use crate::bytes::{le16, le32};
use crate::strip::Secret;
use std::ops::Range;

/// What a checksum needs at the end of a block: an entry of no inode with this type
/// (`ext4_dir_entry_tail`).
const TAIL_BYTES: usize = 12;
const TAIL_TYPE: u8 = 0xDE;

/// A block of a directory.
pub fn block(block: &mut [u8], shape: &Shape, secret: &mut Secret) {
    let tail = tail(block, shape);
    if let Some(used) = index(block) {
        // Entries, their checksum behind the space for more of them; before it, what was there when
        // this was no index.
        let limit = block.len() - block.len() % 8 - if shape.has_checksums { 8 } else { 0 };
        secret.bytes(&mut block[used.min(limit)..limit]);
        return;
    }
    let old = block.to_vec();
    let end = tail.unwrap_or(block.len());
    if !entries(&mut block[..end], shape, secret) {
        secret.sectors(block);
        return;
    }
    if tail.is_some() {
        let change = checksum::change(&old[..end], &block[..end]);
        checksum::apply(block, end + 8, change);
    }
}

/// Where the checksum's entry begins.
fn tail(block: &[u8], shape: &Shape) -> Option<usize> {
    let at = block.len().checked_sub(TAIL_BYTES)?;
    let is_tail = le32(block, at) == 0 && le16(block, at + 4) == 12 && block[at + 7] == TAIL_TYPE;
    (shape.has_checksums && is_tail).then_some(at)
}

/// Where the entries of a hash tree's root or node end (`struct dx_root`, `dx_node`); `None` if the
/// block is neither. Hashes of names stay: their order
/// is the tree's.
fn index(block: &[u8]) -> Option<usize> {
    let count = |at: usize| {
        let (limit, count) = (
            usize::from(le16(block, at)),
            usize::from(le16(block, at + 2)),
        );
        let fits = block.len().saturating_sub(at) / 8;
        ((limit == fits || limit + 1 == fits) && count <= limit).then(|| at + 8 * count)
    };
    if le32(block, 0) == 0 && usize::from(le16(block, 4)) == block.len() {
        return count(8);
    }
    // After `.` and `..`: four zeros, the hash's version, its length of 8.
    let is_root =
        le16(block, 4) == 12 && block.get(8..10)? == b".\0" && block.get(0x1D) == Some(&8);
    is_root.then(|| count(0x20)).flatten()
}

/// Entries that fill `bytes`; `false` if they are none.
pub fn entries(bytes: &mut [u8], shape: &Shape, secret: &mut Secret) -> bool {
    let Some(found) = places(bytes, shape) else {
        return false;
    };
    for (name, rest) in found {
        secret.name(&mut bytes[name]);
        secret.bytes(&mut bytes[rest]);
    }
    true
}

/// Where each name is, and what lies behind it up to the next entry.
fn places(bytes: &[u8], shape: &Shape) -> Option<Vec<(Range<usize>, Range<usize>)>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = match usize::from(le16(bytes, at + 4)) {
            0 | 65535 if bytes.len() > 65535 - TAIL_BYTES => bytes.len() - at,
            length => length,
        };
        let name_bytes = match (le32(bytes, at), shape.has_file_types) {
            (0, _) => 0, // what was removed, or never was
            (_, true) => usize::from(*bytes.get(at + 6)?),
            (_, false) => usize::from(le16(bytes, at + 6)),
        };
        let end = at + length;
        if length < 8 || end > bytes.len() || name_bytes + 8 > length {
            return None;
        }
        let name = at + 8..at + 8 + name_bytes;
        found.push((name.clone(), name.end..end));
        at = end;
    }
    Some(found)
}
