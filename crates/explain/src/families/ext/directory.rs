//! Blocks of names. Format: Linux `fs/ext4/ext4.h`, struct `ext4_dir_entry_2`; the index:
//! `fs/ext4/namei.c`, struct `dx_root`.

use crate::Structure;
use crate::bytes::{byte, le16, le32, part};

const TYPE_DIRECTORY: u8 = 2;

/// A name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry<'a> {
    /// The inode that it names.
    pub inode: u32,
    /// The name.
    pub name: &'a [u8],
    /// Whether that is a directory, or may be one.
    pub is_directory: bool,
}

/// The names in a block, without `.` and `..`, sorted; `None` if it is not a directory's.
pub fn entries(block: &[u8], has_file_types: bool) -> Option<Vec<Entry<'_>>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < block.len() {
        let inode = le32(block, at);
        let raw_length = usize::from(le16(block, at + 4));
        // A block of 64 KiB does not fit the field: `ext4_rec_len_from_disk`.
        let length = if block.len() > 65535 && (raw_length == 65535 || raw_length == 0) {
            block.len()
        } else {
            raw_length
        };
        let (name_length, kind) = if has_file_types {
            (usize::from(byte(block, at + 6)), byte(block, at + 7))
        } else {
            (usize::from(le16(block, at + 6)), 0)
        };
        if length < 8 || length % 4 != 0 || at + length > block.len() || name_length + 8 > length {
            return None;
        }
        let name = part(block, at + 8, at + 8 + name_length);
        if inode != 0 && !name.is_empty() && name != b"." && name != b".." {
            found.push(Entry {
                inode,
                name,
                is_directory: kind == TYPE_DIRECTORY || kind == 0,
            });
        }
        at += length;
    }
    found.sort_unstable();
    Some(found)
}

/// Whether a block is a directory's first: it begins with `.` and `..`.
pub fn is_first(block: &[u8]) -> bool {
    let begins = |at: usize, name: &[u8]| {
        le32(block, at) != 0
            && usize::from(byte(block, at + 6)) == name.len()
            && part(block, at + 8, at + 8 + name.len()) == name
    };
    le16(block, 4) == 12 && begins(0, b".") && begins(12, b"..")
}

/// Whether a block of a directory that has a hash tree is part of that tree: its root (after `.`
/// and `..`), or a node, which begins with an
/// entry over the whole block. Both hold a limit, which is what fits in the block (one less where
/// checksums are).
pub fn structure(block: &[u8], is_indexed: bool) -> Structure {
    let holds_limit = |at: usize| {
        let fits = block.len().saturating_sub(at) / 8;
        let limit = usize::from(le16(block, at));
        limit > 0 && (limit == fits || limit + 1 == fits)
    };
    let is_node =
        le32(block, 0) == 0 && usize::from(le16(block, 4)) == block.len() && holds_limit(8);
    let info_length = usize::from(byte(block, 0x1D));
    let is_root =
        usize::from(le16(block, 4)) == 12 && info_length == 8 && holds_limit(0x18 + info_length);
    if is_indexed && (is_node || is_root) {
        Structure::DirectoryIndex
    } else {
        Structure::Directory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(names: &[(u32, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, (inode, name)) in names.iter().enumerate() {
            let last = number + 1 == names.len();
            let length = if last {
                1024 - bytes.len()
            } else {
                (8 + name.len()).next_multiple_of(4)
            };
            let at = bytes.len();
            bytes.extend(inode.to_le_bytes());
            bytes.extend((length as u16).to_le_bytes());
            bytes.extend([name.len() as u8, 1]);
            bytes.extend(name.as_bytes());
            bytes.resize(at + length, 0);
        }
        bytes
    }

    #[test]
    fn the_first_block_begins_with_itself_and_the_one_above() {
        assert!(is_first(&block(&[(12, "."), (2, "..")])));
        assert!(is_first(&block(&[(12, "."), (2, ".."), (13, "a")])));
        assert!(!is_first(&block(&[(12, "a"), (2, "..")])));
        assert!(!is_first(&block(&[(12, "."), (2, "b")])));
        assert!(!is_first(&[7; 1024]));
    }

    #[test]
    fn names_are_found_but_not_the_dots() {
        let bytes = block(&[
            (2, "."),
            (2, ".."),
            (12, "b"),
            (0, "gone"),
            (13, "a-longer-name"),
        ]);
        let found = entries(&bytes, true).unwrap();
        let names: Vec<_> = found.iter().map(|e| (e.inode, e.name)).collect();
        assert_eq!(names, [(12, b"b".as_slice()), (13, b"a-longer-name")]);
    }

    #[test]
    fn what_is_no_directory_is_none() {
        assert_eq!(entries(&[0; 1024], true), None);
        assert_eq!(entries(&[0xFF; 1024], true), None);
        assert_eq!(entries(&block(&[(2, "."), (2, "..")])[..1000], true), None);
    }

    #[test]
    fn an_index_is_told_from_a_leaf() {
        let mut root = block(&[(2, "."), (2, "..")]);
        assert_eq!(structure(&root, true), Structure::Directory);
        root[0x1D] = 8;
        root[0x20..0x22].copy_from_slice(&124u16.to_le_bytes());
        assert_eq!(structure(&root, true), Structure::DirectoryIndex);
        assert_eq!(structure(&root, false), Structure::Directory);
        let mut node = vec![0; 1024];
        node[4..6].copy_from_slice(&1024u16.to_le_bytes());
        assert_eq!(structure(&node, true), Structure::Directory);
        node[8..10].copy_from_slice(&126u16.to_le_bytes());
        assert_eq!(structure(&node, true), Structure::DirectoryIndex);
    }
}
