//! Private content of a leaf's items: names, targets, inline content, attribute values, data
//! checksums.

use super::Sums;
use crate::Secret;
use fscost_ondisk::btrfs::block::Header;
use fscost_ondisk::btrfs::item::{INLINE_AT, inode, is_inline, is_plain, kind, names, tree};
use std::collections::HashMap;

/// Name of the default subvolume in the directory of the root tree.
const DEFAULT: &[u8] = b"default";

/// Inodes that are symbolic links. Their targets look like inline content, and the items of one
/// inode may be in two leaves.
#[derive(Default)]
pub struct Links {
    /// Inode numbers, each with true if all inodes with that number are links. Each subvolume has
    /// its own numbering.
    known: HashMap<u64, bool>,
}

impl Links {
    /// Records the links in a leaf.
    pub fn read(&mut self, header: &Header, block: &[u8]) {
        let items = (0..header.len()).filter_map(|number| header.item(block, number));
        for (key, place) in items.filter(|(key, _)| key.kind == kind::INODE_ITEM) {
            let is_link = inode::is_symlink(&block[place]);
            *self.known.entry(key.objectid).or_insert(true) &= is_link;
        }
    }

    fn contain(&self, inode: u64) -> bool {
        self.known.get(&inode).copied().unwrap_or(false)
    }
}

/// Removes private content from a leaf, including leftovers of earlier items.
pub fn strip(
    header: &Header,
    block: &mut [u8],
    links: &Links,
    sums: Option<&Sums>,
    secret: &mut Secret,
) {
    let items = (0..header.len()).filter_map(|number| header.item(block, number));
    let mut items: Vec<_> = items.collect();
    items.sort_by_key(|(_, place)| place.start);
    let mut done = header.entries_end();
    for (key, place) in items {
        // Untrusted items may overlap: bytes already replaced stay replaced.
        let (start, end) = (place.start.max(done), place.end.max(done));
        secret.bytes(&mut block[done..start]);
        done = end;
        let bytes = &mut block[start..end];
        match key.kind {
            kind::INODE_REF
            | kind::INODE_EXTREF
            | kind::ROOT_REF
            | kind::ROOT_BACKREF
            | kind::DIR_ITEM
            | kind::DIR_INDEX => named(bytes, key.kind, header.owner == tree::ROOT, secret),
            kind::XATTR => values(bytes, secret),
            kind::EXTENT_DATA if is_inline(bytes) => {
                inline(bytes, links.contain(key.objectid), secret);
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

/// Strips an inline extent: content, or a link's target.
fn inline(item: &mut [u8], is_link: bool, secret: &mut Secret) {
    let is_target = is_link && is_plain(item);
    let content = item.get_mut(INLINE_AT..).unwrap_or_default();
    if is_target {
        secret.path(content);
    } else {
        secret.bytes(content);
    }
}

/// Strips names of files and subvolumes.
fn named(item: &mut [u8], kind: u8, of_roots: bool, secret: &mut Secret) {
    let found: Vec<_> = names(kind, item).collect();
    let of_roots = of_roots && matches!(kind, kind::DIR_ITEM | kind::DIR_INDEX);
    let mut done = 0;
    for found in found {
        done = found.value.end;
        if !(of_roots && &item[found.name.clone()] == DEFAULT) {
            secret.name(&mut item[found.name]);
        }
        secret.bytes(&mut item[found.value]);
    }
    secret.bytes(&mut item[done..]);
}

/// Strips the values of attributes and keeps their names.
fn values(item: &mut [u8], secret: &Secret) {
    let mut done = 0;
    let kept = names(kind::XATTR, item).map(|found| {
        let kept = done..found.value.start;
        done = found.value.end;
        kept
    });
    let kept: Vec<_> = kept.collect();
    secret.all_but(item, kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Names;
    use fscost_ondisk::btrfs::block::HEADER_BYTES;

    const ITEM_BYTES: usize = 25;
    const DIR_ITEM_BYTES: usize = 30;

    /// Builds a leaf with these items: inode, kind, content.
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

    fn header(block: &[u8]) -> Option<Header> {
        Header::parse(block, &[0; 16], 4096)
    }

    fn stripped(mut block: Vec<u8>, links: &Links, names: Names) -> Vec<u8> {
        let mut secret = Secret::new(&[5; 32], names);
        let header = header(&block).unwrap();
        strip(
            &header,
            &mut block,
            links,
            Some(&Sums::default()),
            &mut secret,
        );
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
            .for_each(|leaf| links.read(&header(leaf).unwrap(), leaf));
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
        let inodes = leaf(5, &[(257, kind::INODE_ITEM, &inode(0o12_0777))]);
        links.read(&header(&inodes).unwrap(), &inodes);
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
        // Now the name is longer than the available bytes.
        block[4096 - 6] = 200;
        assert!(!has(
            &stripped(block.clone(), &Links::default(), Names::Keep),
            b"name"
        ));
        // Now the item is outside the block.
        block[HEADER_BYTES + 19] = 0xFF;
        let kept = stripped(block, &Links::default(), Names::Keep);
        assert!(!has(&kept, b"name"));
    }
}
