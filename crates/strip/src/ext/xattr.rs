//! Values of extended attributes; names are kept.

use super::directory;
use crate::{Secret, checksum};
use fscost_ondisk::bytes::le32;
use fscost_ondisk::ext::superblock::Superblock;
use fscost_ondisk::ext::xattr::{Attribute, MAGIC, of_block, of_inode};

/// Offsets of the hash and the checksum of a block of attributes.
const HASH_AT: usize = 0xC;
const CHECKSUM_AT: usize = 0x10;
/// Offset of an entry's hash of name and value.
const ENTRY_HASH_AT: usize = 12;

/// Strips a block of attributes, or of an attribute's value.
pub fn block(block: &mut [u8], superblock: &Superblock, secret: &mut Secret) {
    if le32(block, 0) != MAGIC {
        return secret.sectors(block);
    }
    let old = block.to_vec();
    let hashes = attributes(block, 32, of_block(&old).collect(), None, secret);
    // The block's own hash is computed from the hashes of its entries; it is 0 if an entry has none
    // (`ext4_xattr_rehash`).
    let hashed = hashes.iter();
    let all = hashed.fold(0u32, |all, hash| all.rotate_left(16) ^ hash);
    let all = if hashes.contains(&0) { 0 } else { all };
    if le32(block, HASH_AT) != 0 {
        block[HASH_AT..HASH_AT + 4].copy_from_slice(&all.to_le_bytes());
    }
    if superblock.has_checksums() {
        checksum::update(block, CHECKSUM_AT, &old, ..);
    }
}

/// Strips the space after an inode's fields. `has_names` is true for a directory with inline names.
pub fn in_inode(bytes: &mut [u8], has_names: bool, superblock: &Superblock, secret: &mut Secret) {
    if le32(bytes, 0) != MAGIC {
        return secret.bytes(bytes);
    }
    let found = of_inode(bytes).collect();
    attributes(bytes, 4, found, has_names.then_some(superblock), secret);
}

/// Strips values, and all bytes outside header, entries and values. Returns the hashes of the
/// entries.
fn attributes(
    bytes: &mut [u8],
    header_bytes: usize,
    mut found: Vec<Attribute>,
    names: Option<&Superblock>,
    secret: &mut Secret,
) -> Vec<u32> {
    let entries_end = found.last().map_or(header_bytes, |last| last.name.end);
    for attribute in found.iter_mut().filter(|attribute| attribute.inode != 0) {
        attribute.value.end = attribute.value.start;
    }
    // Four zero bytes end the entries. Untrusted values may overlap these or each other: bytes
    // already replaced stay replaced.
    let mut done = (entries_end.next_multiple_of(4) + 4).min(bytes.len());
    found.sort_by_key(|attribute| (attribute.value.start, attribute.at));
    for attribute in &found {
        let (start, end) = (
            attribute.value.start.max(done),
            attribute.value.end.max(done),
        );
        secret.bytes(&mut bytes[done..start]);
        let value = &mut bytes[start..end];
        match names.filter(|_| attribute.is_content) {
            Some(superblock) if directory::entries(value, superblock, secret) => {}
            _ => secret.bytes(value),
        }
        // Values are padded with zeros to a multiple of four bytes.
        done = end.next_multiple_of(4).min(bytes.len());
        bytes[end..done].fill(0);
    }
    secret.bytes(&mut bytes[done..]);
    found.sort_by_key(|attribute| attribute.at);
    let found = found.iter();
    found.map(|attribute| rehash(bytes, attribute)).collect()
}

/// Updates an entry's hash of name and value (`ext4_xattr_hash_entry`), if it has one. If the value
/// is in another inode, the hash does not cover bytes here.
fn rehash(bytes: &mut [u8], attribute: &Attribute) -> u32 {
    let at = attribute.at + ENTRY_HASH_AT;
    let old = le32(bytes, at);
    if old == 0 || attribute.inode != 0 {
        return old;
    }
    let name = bytes[attribute.name.clone()].iter();
    let name = name.fold(0u32, |hash, &byte| hash.rotate_left(5) ^ u32::from(byte));
    let words = attribute.value.clone().step_by(4);
    let hash = words.fold(name, |hash, word| hash.rotate_left(16) ^ le32(bytes, word));
    bytes[at..at + 4].copy_from_slice(&hash.to_le_bytes());
    hash
}
