//! One tree block: `struct btrfs_header`, then items (leaf) or pointers (node);
//! include/uapi/linux/btrfs_tree.h.

use super::bytes::{u8_at, u32_at, u64_at};
use super::key::{KEY_BYTES, KEY_KIND, Key};
use std::rc::Rc;

const HEADER_BYTES: usize = 101;
const ITEM_BYTES: usize = KEY_BYTES + 8;
const POINTER_BYTES: usize = KEY_BYTES + 16;
/// `BTRFS_MAX_LEVEL`.
const MAX_LEVEL: u8 = 8;
/// `BTRFS_HEADER_FLAG_RELOC`.
const FLAG_RELOC: u64 = 1 << 1;

/// What a tree block says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Its own logical address.
    pub bytenr: u64,
    pub flags: u64,
    pub generation: u64,
    /// Objectid of its tree's root.
    pub owner: u64,
    pub level: u8,
    count: u32,
}

impl Header {
    /// The header at the start of `bytes`, if it can be one of the file system `fsid`.
    pub fn parse(bytes: &[u8], fsid: &[u8; 16], node_bytes: u32) -> Option<Header> {
        if bytes.get(32..48)? != fsid {
            return None;
        }
        let header = Header {
            bytenr: u64_at(bytes, 48)?,
            flags: u64_at(bytes, 56)?,
            generation: u64_at(bytes, 80)?,
            owner: u64_at(bytes, 88)?,
            level: u8_at(bytes, 100)?,
            count: u32_at(bytes, 96)?,
        };
        let entry = if header.level == 0 {
            ITEM_BYTES
        } else {
            POINTER_BYTES
        };
        let fits = header.count as usize <= (node_bytes as usize - HEADER_BYTES) / entry;
        (fits && header.level < MAX_LEVEL).then_some(header)
    }

    /// Whether balance moves its tree.
    pub fn is_relocated(&self) -> bool {
        self.flags & FLAG_RELOC != 0
    }
}

/// A whole tree block.
#[derive(Debug)]
pub struct Block {
    pub header: Header,
    bytes: Box<[u8]>,
}

impl Block {
    /// The block in `bytes`, which begin with `header`.
    pub fn new(header: Header, bytes: Box<[u8]>) -> Block {
        Block { header, bytes }
    }

    /// Whether it is the same to the last byte.
    pub fn is(&self, bytes: &[u8]) -> bool {
        *self.bytes == *bytes
    }

    /// How many items or pointers it has.
    pub fn len(&self) -> usize {
        self.header.count as usize
    }

    fn entry(&self, number: usize) -> Option<&[u8]> {
        if number >= self.len() {
            return None;
        }
        let bytes = if self.header.level == 0 {
            ITEM_BYTES
        } else {
            POINTER_BYTES
        };
        self.bytes
            .get(HEADER_BYTES + number * bytes..)?
            .get(..bytes)
    }

    /// The key of an item or pointer.
    pub fn key(&self, number: usize) -> Option<Key> {
        Key::parse(self.entry(number)?)
    }

    /// The block that a node points to.
    pub fn child(&self, number: usize) -> Option<u64> {
        if self.header.level == 0 {
            return None;
        }
        u64_at(self.entry(number)?, KEY_BYTES)
    }

    /// An item of a leaf. Offsets count from the end of the header.
    pub fn item(&self, number: usize) -> Option<(Key, &[u8])> {
        if self.header.level != 0 {
            return None;
        }
        let entry = self.entry(number)?;
        let start = HEADER_BYTES.checked_add(u32_at(entry, KEY_BYTES)? as usize)?;
        let end = start.checked_add(u32_at(entry, KEY_BYTES + 4)? as usize)?;
        Some((Key::parse(entry)?, self.bytes.get(start..end)?))
    }

    /// All items of a leaf that can be read.
    pub fn items(&self) -> impl Iterator<Item = (Key, &[u8])> {
        (0..self.len()).filter_map(|number| self.item(number))
    }

    /// All items of one kind: of the others nothing but their kind is looked at.
    pub fn items_of(&self, kind: u8) -> impl Iterator<Item = (Key, &[u8])> {
        let is_of = move |&number: &usize| {
            let entry = self.entry(number);
            entry.and_then(|entry| u8_at(entry, KEY_KIND)) == Some(kind)
        };
        (0..self.len())
            .filter(is_of)
            .filter_map(|number| self.item(number))
    }

    /// All blocks that a node points to.
    pub fn children(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).filter_map(|number| self.child(number))
    }

    /// How many keys are smaller than `key`.
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

    /// Whether `key` is neither before its first nor behind its last.
    pub fn spans(&self, key: &Key) -> bool {
        let is_begun = self.key(0).is_some_and(|first| first <= *key);
        is_begun && self.key(self.len() - 1).is_some_and(|last| *key <= last)
    }

    /// The child in whose range `key` is: the last whose key is not greater, or the first.
    pub fn child_for(&self, key: &Key) -> usize {
        let position = self.position(key);
        if self.key(position) == Some(*key) {
            position
        } else {
            position.saturating_sub(1)
        }
    }
}

/// A walk over the items of neighbouring leaves, in the order of keys.
pub struct Cursor<'a> {
    leaves: &'a [Rc<Block>],
    number: usize,
}

impl<'a> Cursor<'a> {
    /// Before the first item with a key of at least `from`.
    pub fn new(leaves: &'a [Rc<Block>], from: &Key) -> Cursor<'a> {
        let number = leaves.first().map_or(0, |leaf| leaf.position(from));
        Cursor { leaves, number }
    }

    /// The item with this key, if there is one. Keys must be asked for in their order.
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
