//! Extended attributes: Linux `fs/ext4/xattr.h`.

use crate::bytes::{byte, le16, le32, part};

/// With which a block of attributes begins, and those in an inode.
pub const MAGIC: u32 = 0xEA02_0000;
const BLOCK_HEADER_BYTES: usize = 32;
const INODE_HEADER_BYTES: usize = 4;
const ENTRY_BYTES: usize = 16;

/// One attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'b> {
    /// The number of the name's prefix.
    pub prefix: u8,
    /// The name behind it.
    pub name: &'b [u8],
    /// The inode that holds the value (`ea_inode`), or 0.
    pub inode: u32,
    /// Else where the value lies: in a block from its beginning, in an inode from the first
    /// attribute.
    pub value_at: usize,
    /// Bytes of the value.
    pub value_bytes: usize,
}

/// Those in a block.
pub fn of_block(block: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    entries(block, BLOCK_HEADER_BYTES)
}

/// Those in an inode, behind its fields.
pub fn of_inode(body: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    entries(body, INODE_HEADER_BYTES)
}

/// The value, where it is among an inode's attributes.
pub fn value_in_inode<'b>(body: &'b [u8], attribute: &Attribute<'_>) -> &'b [u8] {
    let from = INODE_HEADER_BYTES + attribute.value_at;
    part(body, from, from.saturating_add(attribute.value_bytes))
}

fn entries(bytes: &[u8], mut at: usize) -> impl Iterator<Item = Attribute<'_>> {
    let is_attributes = le32(bytes, 0) == MAGIC;
    std::iter::from_fn(move || {
        if !is_attributes || le32(bytes, at) == 0 || at + ENTRY_BYTES > bytes.len() {
            return None;
        }
        let from = at + ENTRY_BYTES;
        let to = from + usize::from(byte(bytes, at));
        let found = Attribute {
            prefix: byte(bytes, at + 1),
            name: part(bytes, from, to),
            inode: le32(bytes, at + 4),
            value_at: usize::from(le16(bytes, at + 2)),
            value_bytes: le32(bytes, at + 8) as usize,
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
                .map(|a| (a.prefix, a.name.to_vec(), a.inode))
                .collect::<Vec<_>>()
        };
        let both = [(1, b"large".to_vec(), 77), (7, b"data".to_vec(), 0)];
        assert_eq!(found(&body), both);
        body.extend([0, 0, 0, 0, 9, 9]);
        assert_eq!(found(&body), both);
        body.resize(64, 0);
        body.extend(b"ab");
        let data = of_inode(&body).last().unwrap();
        assert_eq!(value_in_inode(&body, &data), b"ab");
        body[0] = 1;
        assert_eq!(found(&body), []);
    }
}
