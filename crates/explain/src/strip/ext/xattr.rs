//! Values of extended attributes; their names stay.

use super::{Shape, checksum, directory};
use crate::bytes::{le16, le32};
use crate::strip::Secret;
use std::ops::Range;

const MAGIC: u32 = 0xEA02_0000;
const BLOCK_HEADER_BYTES: usize = 32;
const ENTRY_BYTES: usize = 16;
/// `EXT4_XATTR_INDEX_SYSTEM`
const SYSTEM: u8 = 7;

/// One attribute, by its places among the attributes' bytes.
struct Attribute {
    at: usize,
    name: Range<usize>,
    value: Range<usize>,
}

/// A block of attributes, or of an attribute's value.
pub fn block(block: &mut [u8], shape: &Shape, secret: &mut Secret) {
    if le32(block, 0) != MAGIC {
        return secret.sectors(block);
    }
    let old = block.to_vec();
    let hashes = attributes(block, BLOCK_HEADER_BYTES, 0, None, secret);
    // The block's own hash is of its entries'; 0 if one has none (`ext4_xattr_rehash`).
    let all = hashes
        .iter()
        .fold(0u32, |all, hash| all.rotate_left(16) ^ hash);
    let all = if hashes.contains(&0) { 0 } else { all };
    if le32(block, 0xC) != 0 {
        block[0xC..0x10].copy_from_slice(&all.to_le_bytes());
    }
    if shape.has_checksums {
        let change = checksum::change(&old, block);
        checksum::apply(block, 0x10, change);
    }
}

/// What lies behind an inode's fields. `inline`: of a directory whose names are in its inode.
pub fn in_inode(bytes: &mut [u8], inline: bool, shape: &Shape, secret: &mut Secret) {
    if le32(bytes, 0) != MAGIC {
        return secret.bytes(bytes);
    }
    attributes(bytes, 4, 4, inline.then_some(shape), secret);
}

/// Replace values, and all that is neither entry nor value. Values are counted from `base`. Returns
/// the entries' hashes.
fn attributes(
    bytes: &mut [u8],
    first: usize,
    base: usize,
    inline: Option<&Shape>,
    secret: &mut Secret,
) -> Vec<u32> {
    let (mut found, mut at) = (Vec::new(), first);
    while at + ENTRY_BYTES <= bytes.len() && le32(bytes, at) != 0 {
        let name = at + ENTRY_BYTES..at + ENTRY_BYTES + usize::from(bytes[at]);
        if name.end > bytes.len() {
            break;
        }
        let in_inode = le32(bytes, at + 4) != 0; // another inode's content is the value
        let size = if in_inode {
            0
        } else {
            le32(bytes, at + 8) as usize
        };
        let start = (base + usize::from(le16(bytes, at + 2))).min(bytes.len());
        let value = start..start.saturating_add(size).min(bytes.len());
        let next = name.end.next_multiple_of(4);
        found.push(Attribute { at, name, value });
        at = next;
    }
    // Hostile values may lie in entries, or in each other: what was replaced stays so.
    let entries_end = at.saturating_add(4).min(bytes.len());
    let mut values: Vec<_> = found.iter().map(|a| (a.value.clone(), a.at)).collect();
    values.sort_by_key(|(value, at)| (value.start, *at));
    let mut done = entries_end;
    for (value, at) in values {
        let (start, end) = (value.start.max(done), value.end.max(done));
        secret.bytes(&mut bytes[done..start]);
        let is_names = bytes[at + 1] == SYSTEM && bytes.get(at + 16..at + 20) == Some(b"data");
        let value = &mut bytes[start..end];
        match inline.filter(|_| is_names) {
            Some(shape) if directory::entries(value, shape, secret) => {}
            _ => secret.bytes(value),
        }
        // Values are rounded up to four bytes with zeros.
        done = end.next_multiple_of(4).min(bytes.len());
        bytes[end..done].fill(0);
    }
    secret.bytes(&mut bytes[done..]);
    found.iter().map(|a| rehash(bytes, a)).collect()
}

/// An entry's hash of name and value (`ext4_xattr_hash_entry`), where it has one. That of a value
/// in another inode is not of the value here.
fn rehash(bytes: &mut [u8], attribute: &Attribute) -> u32 {
    let at = attribute.at + 12;
    let old = le32(bytes, at);
    if old == 0 || le32(bytes, attribute.at + 4) != 0 {
        return old;
    }
    let name = bytes[attribute.name.clone()].iter();
    let name = name.fold(0u32, |hash, &byte| hash.rotate_left(5) ^ u32::from(byte));
    let words = (attribute.value.start..attribute.value.end).step_by(4);
    let hash = words.fold(name, |hash, word| hash.rotate_left(16) ^ le32(bytes, word));
    bytes[at..at + 4].copy_from_slice(&hash.to_le_bytes());
    hash
}
