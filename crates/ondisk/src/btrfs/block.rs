//! One tree block: `struct btrfs_header`, then items (leaf) or pointers (node);
//! include/uapi/linux/btrfs_tree.h.

use super::item::{KEY_BYTES, KEY_KIND, Key};
use crate::bytes::checked::{byte, le32, le64};
use std::ops::Range;
use std::sync::Arc;

/// Start of the bytes that the checksum at 0 covers.
pub const COVERED_AT: usize = 32;
/// Size of the header. Items or pointers follow it, and offsets of items are relative to its end.
pub const HEADER_BYTES: usize = 101;
const ITEM_BYTES: usize = KEY_BYTES + 8;
const POINTER_BYTES: usize = KEY_BYTES + 16;
/// `BTRFS_MAX_LEVEL`.
const MAX_LEVEL: u8 = 8;
/// `BTRFS_HEADER_FLAG_RELOC`.
const FLAG_RELOC: u64 = 1 << 1;

/// Header of a tree block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Logical address of the block itself.
    pub bytenr: u64,
    /// Flags.
    pub flags: u64,
    /// Generation of the transaction that wrote the block.
    pub generation: u64,
    /// Objectid of the root of the block's tree.
    pub owner: u64,
    /// Level in the tree; 0 for a leaf.
    pub level: u8,
    count: u32,
}

impl Header {
    /// Parses the header at the start of `bytes`; `None` if it cannot belong to the file system
    /// `fsid`.
    pub fn parse(bytes: &[u8], fsid: &[u8; 16], node_bytes: u32) -> Option<Header> {
        if bytes.get(COVERED_AT..48)? != fsid {
            return None;
        }
        let header = Header {
            bytenr: le64(bytes, 48)?,
            flags: le64(bytes, 56)?,
            generation: le64(bytes, 80)?,
            owner: le64(bytes, 88)?,
            level: byte(bytes, 100)?,
            count: le32(bytes, 96)?,
        };
        let space = (node_bytes as usize).saturating_sub(HEADER_BYTES);
        let fits = header.count as usize <= space / header.entry_bytes();
        (fits && header.level < MAX_LEVEL).then_some(header)
    }

    fn entry_bytes(&self) -> usize {
        match self.level {
            0 => ITEM_BYTES,
            _ => POINTER_BYTES,
        }
    }

    /// Number of items or pointers.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// End of the list of items or pointers. Free space and the contents of items follow it.
    pub fn entries_end(&self) -> usize {
        HEADER_BYTES + self.len() * self.entry_bytes()
    }

    fn entry<'a>(&self, block: &'a [u8], number: usize) -> Option<&'a [u8]> {
        if number >= self.len() {
            return None;
        }
        let bytes = self.entry_bytes();
        block.get(HEADER_BYTES + number * bytes..)?.get(..bytes)
    }

    /// Key of a leaf's item, and the range of its content in the block.
    pub fn item(&self, block: &[u8], number: usize) -> Option<(Key, Range<usize>)> {
        if self.level != 0 {
            return None;
        }
        let entry = self.entry(block, number)?;
        let start = HEADER_BYTES.checked_add(le32(entry, KEY_BYTES)? as usize)?;
        let end = start.checked_add(le32(entry, KEY_BYTES + 4)? as usize)?;
        (end <= block.len()).then_some((Key::parse(entry)?, start..end))
    }

    /// Returns whether balance is moving the block's tree.
    pub fn is_relocated(&self) -> bool {
        self.flags & FLAG_RELOC != 0
    }
}

/// A whole tree block.
#[derive(Debug)]
pub struct Block {
    /// Header of the block.
    pub header: Header,
    bytes: Box<[u8]>,
}

impl Block {
    /// Creates the block in `bytes`, which begin with `header`.
    pub fn new(header: Header, bytes: Box<[u8]>) -> Block {
        Block { header, bytes }
    }

    /// Returns whether the block equals `bytes`.
    pub fn is(&self, bytes: &[u8]) -> bool {
        *self.bytes == *bytes
    }

    /// Number of items or pointers.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.header.len()
    }

    fn entry(&self, number: usize) -> Option<&[u8]> {
        self.header.entry(&self.bytes, number)
    }

    /// Key of an item or pointer.
    pub fn key(&self, number: usize) -> Option<Key> {
        Key::parse(self.entry(number)?)
    }

    /// Logical address of the block that a node points to.
    pub fn child(&self, number: usize) -> Option<u64> {
        if self.header.level == 0 {
            return None;
        }
        le64(self.entry(number)?, KEY_BYTES)
    }

    /// Key and content of a leaf's item.
    pub fn item(&self, number: usize) -> Option<(Key, &[u8])> {
        let (key, place) = self.header.item(&self.bytes, number)?;
        Some((key, self.bytes.get(place)?))
    }

    /// Returns all items of a leaf that can be read.
    pub fn items(&self) -> impl Iterator<Item = (Key, &[u8])> {
        (0..self.len()).filter_map(|number| self.item(number))
    }

    /// Returns all items of one kind. Only the kind of other items is read.
    pub fn items_of(&self, kind: u8) -> impl Iterator<Item = (Key, &[u8])> {
        let is_of = move |&number: &usize| {
            let entry = self.entry(number);
            entry.and_then(|entry| byte(entry, KEY_KIND)) == Some(kind)
        };
        let numbers = (0..self.len()).filter(is_of);
        numbers.filter_map(|number| self.item(number))
    }

    /// Returns the logical addresses of all blocks that a node points to.
    pub fn children(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).filter_map(|number| self.child(number))
    }

    /// Number of keys smaller than `key`.
    pub fn position(&self, key: &Key) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle).is_some_and(|k| k < *key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns whether `key` lies between the block's first and last key, both included.
    pub fn spans(&self, key: &Key) -> bool {
        let is_begun = self.key(0).is_some_and(|first| first <= *key);
        is_begun && self.key(self.len() - 1).is_some_and(|last| *key <= last)
    }

    /// Returns the number of the child for the range that contains `key`: the last child with a key
    /// not greater than `key`, or the first child.
    pub fn child_for(&self, key: &Key) -> usize {
        let position = self.position(key);
        if self.key(position) == Some(*key) {
            position
        } else {
            position.saturating_sub(1)
        }
    }
}

/// Walk over the items of neighbouring leaves, in key order.
pub struct Cursor<'a> {
    leaves: &'a [Arc<Block>],
    number: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor before the first item with a key of at least `from`.
    pub fn new(leaves: &'a [Arc<Block>], from: &Key) -> Cursor<'a> {
        let number = leaves.first().map_or(0, |leaf| leaf.position(from));
        Cursor { leaves, number }
    }

    /// Returns the item with this key, if any. Keys must be requested in ascending order.
    pub fn find(&mut self, key: &Key) -> Option<&'a [u8]> {
        while let Some(leaf) = self.leaves.first() {
            match leaf.key(self.number) {
                None => (self.leaves, self.number) = (&self.leaves[1..], 0),
                Some(here) if here < *key => self.number += 1,
                Some(here) if here == *key => return leaf.item(self.number).map(|(_, item)| item),
                Some(_) => break,
            }
        }
        None
    }
}
