//! Extended attributes: within the inode (short form), and in leaf blocks
//! (fs/xfs/libxfs/xfs_da_format.h).

use crate::bytes::{be16, byte};
use std::ops::Range;

const SHORT_HEADER_BYTES: usize = 4;
const LEAF_HEADER_BYTES: usize = 80;
const LEAF_ENTRY_BYTES: usize = 8;
/// `XFS_ATTR_LOCAL`: the value is next to the name.
const LOCAL: u8 = 1;

/// One attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Start of the lengths; the name follows them.
    pub at: usize,
    /// Range of the value, after the name; empty if other blocks hold the value.
    pub value: Range<usize>,
}

/// Bytes of the header of attributes that fit into the inode (`fork`), and the attributes.
pub fn short_form(fork: &[u8]) -> (usize, impl Iterator<Item = Attribute>) {
    let mut at = SHORT_HEADER_BYTES;
    let attributes = (0..byte(fork, 2)).map_while(move |_| {
        // Lengths of name and value, flags, name, value.
        let (name, value) = (*fork.get(at)?, *fork.get(at + 1)?);
        let value_at = at + 3 + usize::from(name);
        let end = value_at + usize::from(value);
        let found = Attribute {
            at,
            value: value_at..end,
        };
        at = end;
        (end <= fork.len()).then_some(found)
    });
    (SHORT_HEADER_BYTES.min(fork.len()), attributes)
}

/// End of the list of a leaf's attributes, and the attributes in the order of their places. Names
/// and values grow from the end of the block.
pub fn leaf(block: &[u8]) -> (usize, Vec<Attribute>) {
    let count = usize::from(be16(block, 56));
    let end = (LEAF_HEADER_BYTES + LEAF_ENTRY_BYTES * count).min(block.len());
    let entries = (LEAF_HEADER_BYTES..end).step_by(LEAF_ENTRY_BYTES);
    let attributes = entries.map(|entry| {
        let at = usize::from(be16(block, entry + 4));
        let is_local = byte(block, entry + 6) & LOCAL != 0;
        // A local attribute begins with two lengths, a remote one with block, length and length of
        // the name.
        let name_at = if is_local { at + 3 } else { at + 9 };
        let value_at = name_at + usize::from(byte(block, name_at - 1));
        let value_bytes = if is_local { be16(block, at) } else { 0 };
        Attribute {
            at,
            value: value_at..value_at + usize::from(value_bytes),
        }
    });
    let mut attributes: Vec<_> = attributes.collect();
    attributes.sort_unstable_by_key(|attribute| attribute.at);
    (end, attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_behind_names() {
        let mut fork = vec![0, 0, 2, 0];
        fork.extend(b"\x01\x02\0aVV\x02\x03\0bbVVV");
        let values = |fork: &[u8]| short_form(fork).1.map(|a| a.value).collect::<Vec<_>>();
        assert_eq!(values(&fork), [8..10, 15..18]);
        fork.pop();
        assert_eq!(values(&fork).len(), 1);
    }

    #[test]
    fn a_leaf_lists_local_and_remote_attributes() {
        let mut block = vec![0; 1024];
        block[57] = 2;
        // Place of each attribute, and the flag of the local one.
        (block[84], block[85], block[86]) = (3, 240, LOCAL);
        (block[92], block[93]) = (3, 200);
        let (local, remote) = (1008, 968);
        (block[local + 1], block[local + 2]) = (5, 4);
        block[remote + 8] = 6;
        let (end, found) = leaf(&block);
        let of = |at, value| Attribute { at, value };
        assert_eq!(end, 96);
        assert_eq!(
            found,
            [of(remote, 983..983), of(local, local + 7..local + 12)]
        );
    }
}
