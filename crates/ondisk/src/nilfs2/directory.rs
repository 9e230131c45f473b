//! Names in directories: entries like those of ext2, with wider inode numbers (`struct
//! nilfs_dir_entry`).

use crate::bytes::{byte, le16, le64, part};

const HEAD: usize = 12;

/// Returns the names in a block and their inodes, without the directory's own name `.`.
pub fn entries(block: &[u8]) -> Vec<(&[u8], u64)> {
    let mut entries = Vec::new();
    let mut at = 0;
    while at + HEAD <= block.len() {
        let length = usize::from(le16(block, at + 8));
        let (begin, bytes) = (at + HEAD, usize::from(byte(block, at + 10)));
        let name = part(block, begin, begin + bytes);
        if le64(block, at) != 0 && !name.is_empty() && name != b"." {
            entries.push((name, le64(block, at)));
        }
        if length < HEAD {
            break;
        }
        at += length;
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_without_a_length_is_the_last() {
        let entry = |inode: u8, length: u8, name: &[u8; 4]| {
            let mut bytes = [0; 16];
            (bytes[0], bytes[8], bytes[10]) = (inode, length, 4);
            bytes[12..].copy_from_slice(name);
            bytes
        };
        let block = [
            entry(7, 16, b"name"),
            entry(0, 16, b"gone"),
            entry(9, 0, b"last"),
            entry(8, 16, b"none"),
        ];
        let found = entries(block.as_flattened());
        assert_eq!(found, [(&b"name"[..], 7), (&b"last"[..], 9)]);
        assert_eq!(entries(&block.as_flattened()[..15]), [(&b"nam"[..], 7)]);
    }
}
