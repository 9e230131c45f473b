//! Extended attributes: Linux `fs/ext4/xattr.h`.

use crate::bytes::{byte, le16, le32, part};
use std::ops::Range;

/// Magic number at the start of an attribute block and of the attributes in an inode.
pub const MAGIC: u32 = 0xEA02_0000;
const BLOCK_HEADER_BYTES: usize = 32;
const INODE_HEADER_BYTES: usize = 4;
/// Bytes of an entry before its name.
pub const ENTRY_BYTES: usize = 16;
/// The prefix `system.` of names (`EXT4_XATTR_INDEX_SYSTEM`).
const SYSTEM: u8 = 7;

/// One attribute. Its ranges lie within the bytes that it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Start of the entry; the name follows the entry's fields.
    pub at: usize,
    /// Name without its prefix.
    pub name: Range<usize>,
    /// True if the value is the content of the inode (`system.data`).
    pub is_content: bool,
    /// Inode that holds the value (`ea_inode`), or 0.
    pub inode: u32,
    /// Range of the value, meaningful if no other inode holds it.
    pub value: Range<usize>,
}

/// Returns the attributes in a block.
pub fn of_block(block: &[u8]) -> impl Iterator<Item = Attribute> {
    entries(block, BLOCK_HEADER_BYTES, 0)
}

/// Returns the attributes in an inode, after its fields.
pub fn of_inode(body: &[u8]) -> impl Iterator<Item = Attribute> {
    entries(body, INODE_HEADER_BYTES, INODE_HEADER_BYTES)
}

/// Offsets of values count from `base`.
fn entries(bytes: &[u8], mut at: usize, base: usize) -> impl Iterator<Item = Attribute> {
    let is_attributes = le32(bytes, 0) == MAGIC;
    std::iter::from_fn(move || {
        if !is_attributes || le32(bytes, at) == 0 || at + ENTRY_BYTES > bytes.len() {
            return None;
        }
        let from = at + ENTRY_BYTES;
        let to = from + usize::from(byte(bytes, at));
        let value_at = (base + usize::from(le16(bytes, at + 2))).min(bytes.len());
        let value_end = value_at.saturating_add(le32(bytes, at + 8) as usize);
        let found = Attribute {
            at,
            name: from..to.min(bytes.len()),
            is_content: byte(bytes, at + 1) == SYSTEM && part(bytes, from, to) == b"data",
            inode: le32(bytes, at + 4),
            value: value_at..value_end.min(bytes.len()),
        };
        at = to.next_multiple_of(4);
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(prefix: u8, name: &str, value: (u16, u32, u32)) -> Vec<u8> {
        let mut bytes = vec![name.len() as u8, prefix];
        bytes.extend(value.0.to_le_bytes());
        bytes.extend(value.1.to_le_bytes());
        bytes.extend(value.2.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(name.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn attributes_end_at_a_zero_or_with_the_bytes() {
        let mut body = MAGIC.to_le_bytes().to_vec();
        body.extend(entry(1, "large", (0, 77, 3000)));
        body.extend(entry(7, "data", (60, 0, 2)));
        let found = |body: &[u8]| {
            of_inode(body)
                .map(|a| (a.is_content, body[a.name].to_vec(), a.inode))
                .collect::<Vec<_>>()
        };
        let both = [(false, b"large".to_vec(), 77), (true, b"data".to_vec(), 0)];
        assert_eq!(found(&body), both);
        body.extend([0, 0, 0, 0, 9, 9]);
        assert_eq!(found(&body), both);
        body.resize(64, 0);
        body.extend(b"ab");
        let data = of_inode(&body).last().unwrap();
        assert_eq!(&body[data.value], b"ab");
        body[0] = 1;
        assert_eq!(found(&body), []);
    }
}
