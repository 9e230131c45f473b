//! What the items of a leaf hold besides numbers: names, targets, inline content, values of
//! attributes, checksums of data.

use super::{HEADER_BYTES, Sums};
use crate::bytes::{le16, le32, le64};
use crate::families::btrfs::kind;
use crate::strip::Secret;
use std::collections::HashMap;
use std::ops::Range;

const ITEM_BYTES: usize = 25;
/// `struct btrfs_dir_item` before the name; the head of an inline extent.
const DIR_ITEM_BYTES: usize = 30;
const INLINE_AT: usize = 21;

/// The tree of roots has a directory in which the default subvolume is called so.
const ROOT_TREE: u64 = 1;
const DEFAULT: &[u8] = b"default";

/// One item of a leaf: where its key begins, and its bytes.
struct Item {
    key: usize,
    bytes: Range<usize>,
}

impl Item {
    fn inode(&self, block: &[u8]) -> u64 {
        le64(block, self.key)
    }

    fn kind(&self, block: &[u8]) -> u8 {
        block[self.key + 8]
    }
}

fn items(block: &[u8]) -> impl Iterator<Item = Item> {
    let count = le32(block, 96) as usize;
    let keys = (HEADER_BYTES..block.len()).step_by(ITEM_BYTES).take(count);
    keys.filter(|key| key + ITEM_BYTES <= block.len())
        .map(|key| {
            let start = HEADER_BYTES.saturating_add(le32(block, key + 17) as usize);
            let end = start.saturating_add(le32(block, key + 21) as usize);
            let bytes = start.min(block.len())..end.min(block.len());
            Item { key, bytes }
        })
}

/// Which inodes are symbolic links: their targets look like inline content, and an inode's items
/// may be in two leaves.
#[derive(Default)]
pub struct Links {
    /// By number, whether all inodes that have it are: each subvolume counts its own.
    known: HashMap<u64, bool>,
}

impl Links {
    /// A leaf is read.
    pub fn read(&mut self, block: &[u8]) {
        for item in items(block).filter(|item| item.kind(block) == kind::INODE_ITEM) {
            let mode = le32(&block[item.bytes.clone()], 52);
            let is_link = mode & 0o17_0000 == 0o12_0000;
            *self.known.entry(item.inode(block)).or_insert(true) &= is_link;
        }
    }

    fn contain(&self, inode: u64) -> bool {
        self.known.get(&inode).copied().unwrap_or(false)
    }
}

/// Take out what is private in a leaf, and what earlier items left behind.
pub fn strip(block: &mut [u8], links: &Links, sums: Option<&Sums>, secret: &mut Secret) {
    let owner = le64(block, 88);
    let count = le32(block, 96) as usize;
    let keys = HEADER_BYTES.saturating_add(count.saturating_mul(ITEM_BYTES));
    let mut done = keys.min(block.len());
    let mut items: Vec<Item> = items(block).collect();
    items.sort_by_key(|item| (item.bytes.start, item.key));
    for item in items {
        // Hostile items may lie in others: what was replaced stays so.
        let (start, end) = (item.bytes.start.max(done), item.bytes.end.max(done));
        secret.bytes(&mut block[done..start]);
        done = end;
        let (kind, inode) = (item.kind(block), item.inode(block));
        let bytes = &mut block[start..end];
        match kind {
            kind::INODE_REF => refs(bytes, 8, secret),
            kind::INODE_EXTREF => refs(bytes, 16, secret),
            // The directory's number, the name's place in it.
            kind::ROOT_REF | kind::ROOT_BACKREF => refs(bytes, 16, secret),
            kind::DIR_ITEM | kind::DIR_INDEX => dir_items(bytes, true, owner == ROOT_TREE, secret),
            kind::XATTR => dir_items(bytes, false, false, secret),
            kind::EXTENT_DATA if bytes.get(20) == Some(&0) => {
                inline(bytes, links.contain(inode), secret);
            }
            kind::CSUM => match sums {
                Some(sums) => sums.replace(bytes, secret),
                None => secret.bytes(bytes),
            },
            kind::VERITY_DESC | kind::VERITY_MERKLE | kind::STRING => secret.bytes(bytes),
            _ => {}
        }
    }
    secret.bytes(&mut block[done..]);
}

/// An inline extent: content, or a link's target, which is neither compressed nor encoded.
fn inline(item: &mut [u8], is_link: bool, secret: &mut Secret) {
    let is_plain = item[16..20] == [0; 4];
    let content = item.get_mut(INLINE_AT..).unwrap_or_default();
    if is_link && is_plain {
        secret.path(content);
    } else {
        secret.bytes(content);
    }
}

/// Names with their length of two bytes at `length_at` of each record.
fn refs(item: &mut [u8], length_at: usize, secret: &mut Secret) {
    let mut at = 0;
    while at < item.len() {
        let name = at + length_at + 2;
        let end = name + usize::from(le16(item, at + length_at));
        if end > item.len() {
            return secret.bytes(&mut item[at..]);
        }
        secret.name(&mut item[name..end]);
        at = end;
    }
}

/// Names of a directory's entries, or of attributes, and what they are for: their values.
fn dir_items(item: &mut [u8], names: bool, of_roots: bool, secret: &mut Secret) {
    let mut at = 0;
    while at < item.len() {
        let name = at + DIR_ITEM_BYTES;
        let value = name + usize::from(le16(item, at + 27));
        let end = value + usize::from(le16(item, at + 25));
        if end > item.len() {
            return secret.bytes(&mut item[at..]);
        }
        if names && !(of_roots && &item[name..value] == DEFAULT) {
            secret.name(&mut item[name..value]);
        }
        secret.bytes(&mut item[value..end]);
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strip::Names;

    /// A leaf with these items: inode, kind, content.
    fn leaf(owner: u64, items: &[(u64, u8, &[u8])]) -> Vec<u8> {
        let mut block = vec![0; 4096];
        block[88..96].copy_from_slice(&owner.to_le_bytes());
        block[96..100].copy_from_slice(&(items.len() as u32).to_le_bytes());
        let mut end = block.len();
        for (number, (inode, kind, content)) in items.iter().enumerate() {
            let key = HEADER_BYTES + number * ITEM_BYTES;
            end -= content.len();
            block[end..end + content.len()].copy_from_slice(content);
            block[key..key + 8].copy_from_slice(&inode.to_le_bytes());
            block[key + 8] = *kind;
            let place = (end - HEADER_BYTES) as u32;
            block[key + 17..key + 21].copy_from_slice(&place.to_le_bytes());
            block[key + 21..key + 25].copy_from_slice(&(content.len() as u32).to_le_bytes());
        }
        block
    }

    fn inode(mode: u32) -> [u8; 160] {
        let mut item = [0; 160];
        item[52..56].copy_from_slice(&mode.to_le_bytes());
        item
    }

    fn inline_extent(content: &[u8]) -> Vec<u8> {
        [&[0; INLINE_AT], content].concat()
    }

    fn stripped(mut block: Vec<u8>, links: &Links, names: Names) -> Vec<u8> {
        let mut secret = Secret::new(&[5; 32], names);
        strip(&mut block, links, Some(&Sums::default()), &mut secret);
        block
    }

    fn has(block: &[u8], word: &[u8]) -> bool {
        block.windows(word.len()).any(|place| place == word)
    }

    #[test]
    fn targets_of_links_are_names_and_content_is_not() {
        let (link, file) = (inode(0o12_0777), inode(0o10_0644));
        let content = inline_extent(b"somewhere/else");
        let inodes = leaf(
            5,
            &[
                (257, kind::INODE_ITEM, &link),
                (258, kind::INODE_ITEM, &file),
            ],
        );
        let both = leaf(5, &[(259, kind::INODE_ITEM, &link)]);
        let other = leaf(300, &[(259, kind::INODE_ITEM, &file)]);
        let mut links = Links::default();
        [inodes, both, other]
            .iter()
            .for_each(|leaf| links.read(leaf));
        for (number, stays) in [(257, true), (258, false), (259, false), (260, false)] {
            let block = leaf(5, &[(number, kind::EXTENT_DATA, &content)]);
            let kept = stripped(block.clone(), &links, Names::Keep);
            assert_eq!(has(&kept, b"somewhere/else"), stays, "{number}");
            let replaced = stripped(block, &links, Names::Replace);
            assert!(!has(&replaced, b"somewhere") && !has(&replaced, b"else"));
            assert!(!stays || replaced[4096 - 5] == b'/', "{number}");
        }
    }

    #[test]
    fn compressed_content_is_no_target() {
        let mut content = inline_extent(b"somewhere/else");
        content[16] = 1;
        let mut links = Links::default();
        links.read(&leaf(5, &[(257, kind::INODE_ITEM, &inode(0o12_0777))]));
        let block = leaf(5, &[(257, kind::EXTENT_DATA, &content)]);
        assert!(!has(&stripped(block, &links, Names::Keep), b"somewhere"));
    }

    #[test]
    fn names_of_attributes_stay_and_values_do_not() {
        let mut item = vec![0; DIR_ITEM_BYTES];
        item[25..27].copy_from_slice(&5u16.to_le_bytes());
        item[27..29].copy_from_slice(&9u16.to_le_bytes());
        item.extend_from_slice(b"user.namevalue");
        let block = leaf(5, &[(257, kind::XATTR, &item)]);
        let block = stripped(block, &Links::default(), Names::Replace);
        assert!(has(&block, b"user.name") && !has(&block, b"value"));
    }

    #[test]
    fn what_items_left_behind_and_broken_items_go() {
        let mut block = leaf(5, &[(257, kind::INODE_REF, b"12345678\x04\0name")]);
        block[2000..2004].copy_from_slice(b"past");
        let kept = stripped(block.clone(), &Links::default(), Names::Keep);
        assert!(has(&kept, b"name") && !has(&kept, b"past"));
        // Now the name's length is more than there is.
        block[4096 - 6] = 200;
        assert!(!has(
            &stripped(block.clone(), &Links::default(), Names::Keep),
            b"name"
        ));
        // And more items than a block can have.
        block[96..100].fill(0xFF);
        stripped(block, &Links::default(), Names::Keep);
    }
}
