//! Directory blocks. Format: Linux `fs/ext4/ext4.h`, struct `ext4_dir_entry_2`; the index:
//! `fs/ext4/namei.c`, struct `dx_root`.

use crate::bytes::{byte, le16, le32, part};

const TYPE_DIRECTORY: u8 = 2;
/// Checksum entry at the end of a block: an entry without an inode and of this type
/// (`ext4_dir_entry_tail`).
const TAIL_BYTES: usize = 12;
const TAIL_TYPE: u8 = 0xDE;
const INDEX_ENTRY_BYTES: usize = 8;

/// A name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry<'a> {
    /// Inode that the entry names.
    pub inode: u32,
    /// The name.
    pub name: &'a [u8],
    /// True if the inode is a directory, or may be one.
    pub is_directory: bool,
}

/// An entry at its place in a block, in use or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Inode that the entry names, or 0.
    pub inode: u32,
    /// Start of the name.
    pub name_at: usize,
    /// Current or former name.
    pub name: &'a [u8],
    /// Start of the next entry.
    pub end: usize,
    kind: u8,
}

/// Returns the entries that fill a block from start to end. If they do not fill it, the last item
/// is `None`.
pub fn records(
    block: &[u8],
    has_file_types: bool,
) -> impl Iterator<Item = Option<Record<'_>>> + use<'_> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < block.len()).then(|| {
            let found = record(block, at, has_file_types);
            at = found.map_or(block.len(), |record| record.end);
            found
        })
    })
}

fn record(block: &[u8], at: usize, has_file_types: bool) -> Option<Record<'_>> {
    let length = match usize::from(le16(block, at + 4)) {
        // A block of 64 KiB does not fit the field: `ext4_rec_len_from_disk`.
        0 | 65535 if block.len() > 65535 => block.len(),
        length => length,
    };
    let (name_length, kind) = match has_file_types {
        true => (usize::from(byte(block, at + 6)), byte(block, at + 7)),
        false => (usize::from(le16(block, at + 6)), 0),
    };
    if length < 8 || length % 4 != 0 || at + length > block.len() || name_length + 8 > length {
        return None;
    }
    Some(Record {
        inode: le32(block, at),
        name_at: at + 8,
        name: part(block, at + 8, at + 8 + name_length),
        end: at + length,
        kind,
    })
}

/// Returns the names in a block, sorted, without `.` and `..`; `None` if the block does not belong
/// to a directory.
pub fn entries(block: &[u8], has_file_types: bool) -> Option<Vec<Entry<'_>>> {
    let mut found = Vec::new();
    for record in records(block, has_file_types) {
        let record = record?;
        let (inode, name) = (record.inode, record.name);
        if inode != 0 && !name.is_empty() && name != b"." && name != b".." {
            found.push(Entry {
                inode,
                name,
                is_directory: matches!(record.kind, 0 | TYPE_DIRECTORY),
            });
        }
    }
    found.sort_unstable();
    Some(found)
}

/// Start of the entry that holds the block's checksum. Other entries fill the space before it.
pub fn tail(block: &[u8]) -> Option<usize> {
    let at = block.len().checked_sub(TAIL_BYTES)?;
    let is_tail = le32(block, at) == 0
        && usize::from(le16(block, at + 4)) == TAIL_BYTES
        && byte(block, at + 7) == TAIL_TYPE;
    is_tail.then_some(at)
}

/// Returns whether a block is the first of a directory: it begins with `.` and `..`.
pub fn is_first(block: &[u8]) -> bool {
    let begins = |at: usize, name: &[u8]| {
        le32(block, at) != 0
            && usize::from(byte(block, at + 6)) == name.len()
            && part(block, at + 8, at + 8 + name.len()) == name
    };
    le16(block, 4) == 12 && begins(0, b".") && begins(12, b"..")
}

/// Returns the parent that `..` names, if a block is the first of a directory.
pub fn parent(block: &[u8]) -> Option<u32> {
    is_first(block).then(|| le32(block, 12))
}

/// Returns the end of the entries in the root or a node of a hash tree; `None` if the block has the
/// form of neither. In a root they follow `.` and `..`; a node begins with an entry over the whole
/// block. Both hold a limit: the number of entries that fit in the block (one less with checksums).
pub fn index_end(block: &[u8]) -> Option<usize> {
    let end = |at: usize| {
        let fits = block.len().saturating_sub(at) / INDEX_ENTRY_BYTES;
        let (limit, count) = (le16(block, at), le16(block, at + 2));
        let (limit, count) = (usize::from(limit), usize::from(count));
        let is_limit = limit > 0 && (limit == fits || limit + 1 == fits);
        is_limit.then(|| at + INDEX_ENTRY_BYTES * count.min(limit))
    };
    if le32(block, 0) == 0 && usize::from(le16(block, 4)) == block.len() {
        return end(8);
    }
    let info_length = usize::from(byte(block, 0x1D));
    let is_root = le16(block, 4) == 12 && part(block, 8, 10) == b".\0" && info_length == 8;
    is_root.then(|| end(0x18 + info_length)).flatten()
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
        assert_eq!(index_end(&root), None);
        root[0x1D] = 8;
        root[0x20..0x22].copy_from_slice(&124u16.to_le_bytes());
        root[0x22] = 3;
        assert_eq!(index_end(&root), Some(0x20 + 3 * 8));
        let mut node = vec![0; 1024];
        node[4..6].copy_from_slice(&1024u16.to_le_bytes());
        assert_eq!(index_end(&node), None);
        node[8..10].copy_from_slice(&126u16.to_le_bytes());
        assert_eq!(index_end(&node), Some(8));
        node[10..12].fill(0xFF);
        assert_eq!(index_end(&node), Some(8 + 126 * 8));
    }

    #[test]
    fn entries_fill_the_block_up_to_the_checksum() {
        let mut bytes = block(&[(2, "."), (12, "name")]);
        assert_eq!(tail(&bytes), None);
        bytes[16] -= 12;
        bytes[1016..1020].copy_from_slice(&[12, 0, 0, TAIL_TYPE]);
        let at = tail(&bytes).unwrap();
        let found: Option<Vec<_>> = records(&bytes[..at], true).collect();
        let found = found.unwrap().into_iter();
        let places: Vec<_> = found.map(|r| (r.inode, r.name_at, r.end)).collect();
        assert_eq!(places, [(2, 8, 12), (12, 20, at)]);
        let broken: Vec<_> = records(&[0; 1024], true).collect();
        assert_eq!(broken, [None]);
    }
}
