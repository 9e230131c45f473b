//! reiserfs (fs/reiserfs/reiserfs.h). A leaf holds items with keys; the bodies of items grow from
//! the end of the leaf (`struct item_head`).

pub mod journal;
pub mod superblock;

use crate::bytes::{byte, le16, le32, part};

const HEAD: usize = 24;
const ITEM: usize = 24;
const KEY: usize = 16;

/// Kinds of items, numbered as in newer keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An inode.
    Stat,
    /// Pointers to data blocks.
    Indirect,
    /// Data.
    Direct,
    /// Names.
    Directory,
}

/// An item of a leaf.
pub struct Item<'b> {
    /// Inode number.
    pub object: u32,
    /// Structure of the content.
    pub kind: Kind,
    /// Number of names in a directory.
    entries: usize,
    /// Content of the item.
    pub body: &'b [u8],
}

/// Returns whether a block can be a node: its free space equals the space that its items leave.
pub fn is_node(block: &[u8]) -> bool {
    let (level, count) = (le16(block, 0), usize::from(le16(block, 2)));
    let free = usize::from(le16(block, 4));
    let used = match level {
        1 => {
            let length = |number| usize::from(le16(block, HEAD + number * ITEM + 18));
            HEAD + count * ITEM + (0..count).map(length).sum::<usize>()
        }
        // Keys, with pointers of eight bytes around them.
        _ => HEAD + count * KEY + (count + 1) * 8,
    };
    count > 0 && used + free == block.len()
}

/// Returns the items of a leaf.
pub fn items(block: &[u8]) -> impl Iterator<Item = Item<'_>> {
    let count = usize::from(le16(block, 2)).min(block.len() / ITEM);
    (0..count).filter_map(move |number| {
        let head = part(block, HEAD + number * ITEM, HEAD + (number + 1) * ITEM);
        let (length, at) = (usize::from(le16(head, 18)), usize::from(le16(head, 20)));
        let body = block.get(at..at + length)?;
        let kind = match le16(head, 22) {
            // Offset and kind share eight bytes.
            1 => match byte(head, 15) >> 4 {
                0 => Kind::Stat,
                1 => Kind::Indirect,
                2 => Kind::Direct,
                3 => Kind::Directory,
                _ => return None,
            },
            _ => match le32(head, 12) {
                0 => Kind::Stat,
                0xffff_fffe => Kind::Indirect,
                0xffff_ffff => Kind::Direct,
                500 => Kind::Directory,
                _ => return None,
            },
        };
        Some(Item {
            object: le32(head, 4),
            kind,
            entries: usize::from(le16(head, 16)),
            body,
        })
    })
}

impl<'b> Item<'b> {
    /// Inode that the item belongs to.
    pub fn inode(&self) -> u64 {
        u64::from(self.object)
    }

    /// Value of an inode that changes when its number is reused (`struct stat_data`). It is `None`
    /// for other items and for the older inode format, which has no such value.
    pub fn generation(&self) -> Option<u32> {
        let is_one = self.kind == Kind::Stat && self.body.len() == 44;
        is_one.then(|| le32(self.body, 40))
    }

    /// Returns the data blocks that an indirect item points to, in order.
    pub fn blocks(&self) -> impl Iterator<Item = u64> + use<'b> {
        let words = match self.kind {
            Kind::Indirect => self.body,
            _ => &[],
        };
        words.chunks_exact(4).map(|word| u64::from(le32(word, 0)))
    }

    /// Returns the names in a directory item: heads in order, names from the end (`struct
    /// reiserfs_de_head`).
    pub fn names(&self) -> Vec<(&'b [u8], u64)> {
        const ENTRY: usize = 16;
        let mut names = Vec::new();
        if self.kind != Kind::Directory {
            return names;
        }
        let mut end = self.body.len();
        for number in 0..self.entries.min(self.body.len() / ENTRY) {
            let head = part(self.body, number * ENTRY, (number + 1) * ENTRY);
            let at = usize::from(le16(head, 12));
            let name = part(self.body, at, end);
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            end = at;
            // A bit marks the entries that exist.
            if le16(head, 14) & 0x4 != 0 && !name.is_empty() && name != b"." {
                names.push((name, u64::from(le32(head, 8))));
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a leaf with one item, from the last eight bytes of its key, its number of names, the
    /// version of its key, and its body.
    fn leaf(key: u64, entries: u8, version: u8, body: &[u8]) -> Vec<u8> {
        let mut block = vec![0; 4096];
        let at = block.len() - body.len();
        block[at..].copy_from_slice(body);
        (block[0], block[2]) = (1, 1);
        let free = (at - HEAD - ITEM) as u16;
        block[4..6].copy_from_slice(&free.to_le_bytes());
        let head = &mut block[HEAD..HEAD + ITEM];
        head[4] = 7;
        head[8..16].copy_from_slice(&key.to_le_bytes());
        (head[16], head[18], head[22]) = (entries, body.len() as u8, version);
        head[20..22].copy_from_slice(&(at as u16).to_le_bytes());
        assert!(is_node(&block));
        block
    }

    #[test]
    fn both_kinds_of_keys() {
        for (kind, old, new) in [
            (Kind::Stat, 0, 0),
            (Kind::Indirect, 0xffff_fffe, 1),
            (Kind::Direct, 0xffff_ffff, 2),
            (Kind::Directory, 500, 3),
        ] {
            for block in [
                leaf(old << 32 | 1, 0, 0, &[9, 0, 0, 0]),
                leaf(new << 60 | 1, 0, 1, &[9, 0, 0, 0]),
            ] {
                let [item] = &items(&block).collect::<Vec<_>>()[..] else {
                    panic!("{kind:?}")
                };
                assert_eq!((item.kind, item.inode()), (kind, 7));
                assert_eq!(item.blocks().next().is_none(), kind != Kind::Indirect);
            }
        }
    }

    #[test]
    fn a_name_that_is_gone_is_none() {
        let mut body = vec![0; 2 * 16];
        (body[8], body[12], body[14]) = (20, 33, 4);
        (body[16 + 8], body[16 + 12]) = (21, 32);
        body.extend(b"yx");
        let block = leaf(3 << 60 | 1, 2, 1, &body);
        let names: Vec<_> = items(&block).flat_map(|item| item.names()).collect();
        let expected: [(&[u8], u64); 1] = [(b"x", 20)];
        assert_eq!(names, expected);
    }
}
