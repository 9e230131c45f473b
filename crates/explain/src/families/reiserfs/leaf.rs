//! Leaves: items with keys, whose bodies grow from the end (`struct item_head`).

use crate::bytes::{byte, le16, le32, part};
use crate::track::files::runs;
use crate::track::fingerprints::of;
use crate::track::names::Entry;
use crate::{Cause, Causes};
use std::collections::HashMap;

const HEAD: usize = 24;
const ITEM: usize = 24;
const KEY: usize = 16;

/// Kinds of items, as newer keys number them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Stat,
    Indirect,
    Direct,
    Directory,
}

/// An item of a leaf.
pub struct Item<'b> {
    object: u32,
    pub kind: Kind,
    /// Of a directory, how many names.
    entries: usize,
    body: &'b [u8],
}

/// Whether a block can be a node: what is free in it is as much as its items leave.
pub fn is_node(block: &[u8]) -> bool {
    let (level, count) = (le16(block, 0), usize::from(le16(block, 2)));
    let free = usize::from(le16(block, 4));
    let used = match level {
        1 => {
            let lengths =
                (0..count).map(|number| usize::from(le16(block, HEAD + number * ITEM + 18)));
            HEAD + count * ITEM + lengths.sum::<usize>()
        }
        // Keys, and pointers of eight bytes around them.
        _ => HEAD + count * KEY + (count + 1) * 8,
    };
    count > 0 && used + free == block.len()
}

/// The items of a leaf.
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
    pub fn inode(&self) -> u64 {
        u64::from(self.object)
    }

    /// Of an inode, what changes with the file that has its number (`struct stat_data`, or the
    /// older one without).
    pub fn generation(&self) -> Option<u32> {
        let is_one = self.kind == Kind::Stat && self.body.len() == 44;
        is_one.then(|| le32(self.body, 40))
    }

    /// Blocks of data that an indirect item points to.
    pub fn blocks(&self) -> Vec<(u64, u64)> {
        match self.kind {
            Kind::Indirect => runs(
                self.body
                    .chunks_exact(4)
                    .map(|word| u64::from(le32(word, 0))),
            ),
            _ => Vec::new(),
        }
    }

    /// Names of a directory's item: heads in order, names from the end (`struct reiserfs_de_head`).
    pub fn names(&self) -> Vec<Entry<'b>> {
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
            // A bit says that it is there.
            if le16(head, 14) & 0x4 != 0 && !name.is_empty() && name != b"." {
                names.push((name, u64::from(le32(head, 8))));
            }
        }
        names
    }
}

/// What is known of leaves: fingerprints for causes.
#[derive(Debug, Default)]
pub struct Leaves(HashMap<u64, Parts>);

/// Of a leaf's items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Parts {
    stat: u32,
    pointers: u32,
    data: u32,
    names: u32,
}

impl Leaves {
    /// Why a leaf was written over what was known of it.
    pub fn causes(&mut self, block: u64, content: &[u8]) -> Causes {
        let mut now = Parts::default();
        for item in items(content) {
            let field = match item.kind {
                Kind::Stat => &mut now.stat,
                Kind::Indirect => &mut now.pointers,
                Kind::Direct => &mut now.data,
                Kind::Directory => &mut now.names,
            };
            *field = field.rotate_left(1) ^ of(item.body, &[(0, usize::MAX)]) ^ item.object;
        }
        let before = self.0.insert(block, now).unwrap_or_default();
        let differs = [
            (now.pointers != before.pointers, Cause::SizeOrMap),
            (now.data != before.data, Cause::Data),
            (now.names != before.names, Cause::Names),
        ];
        let found = differs.into_iter().filter(|&(differs, _)| differs);
        let found = found.fold(Causes::NONE, |causes, (_, cause)| causes.with(cause));
        match (found.is_empty(), now.stat == before.stat) {
            (false, _) => found,
            // Times, sizes, links: one item has them all.
            (true, false) => Causes::one(Cause::Accounting),
            (true, true) => Causes::one(Cause::Unchanged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leaf with one item: its key's last eight bytes, how many names it has, the version of its
    /// key, its body.
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
                assert_eq!(item.blocks().is_empty(), kind != Kind::Indirect);
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
        let expected: [Entry<'_>; 1] = [(b"x", 20)];
        assert_eq!(names, expected);
    }
}
