//! Names in directories: a bitmap of slots, the entries, and the names in pieces of eight bytes
//! (`struct f2fs_dentry_block`).

use crate::bytes::{byte, le16, le32, part};

const ENTRY: usize = 11;
const SLOT: usize = 8;
/// Number of slots in a block (`NR_DENTRY_IN_BLOCK`).
pub const IN_BLOCK: usize = 214;

/// Number of slots that fit into `bytes` bytes of an inode (`NR_INLINE_DENTRY`). The remaining
/// bytes follow the bitmap.
pub fn inline_count(bytes: usize) -> usize {
    bytes * 8 / ((ENTRY + SLOT) * 8 + 1)
}

/// Returns the names in `block`, which has `slots` slots, with their inodes.
pub fn entries(block: &[u8], slots: usize) -> Vec<(&[u8], u64)> {
    let Some(entries_at) = block.len().checked_sub(slots * (ENTRY + SLOT)) else {
        return Vec::new();
    };
    let names_at = entries_at + slots * ENTRY;
    let mut entries = Vec::new();
    let mut slot = 0;
    while slot < slots {
        let entry = part(block, entries_at + slot * ENTRY, names_at);
        let length = usize::from(le16(entry, 8));
        let name_at = names_at + slot * SLOT;
        let name = part(block, name_at, name_at + length);
        let is_used = byte(block, slot / 8) >> (slot % 8) & 1 != 0;
        if is_used && length > 0 && name.len() == length && name != b"." {
            entries.push((name, u64::from(le32(entry, 4))));
        }
        slot += match is_used {
            true => length.div_ceil(SLOT).max(1),
            false => 1,
        };
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_takes_several_slots() {
        let (slots, name) = (4, b"of-twelve...");
        let mut block = vec![0; 1 + slots * (ENTRY + SLOT)];
        block[0] = 0b0111;
        for (slot, inode, length) in [(0, 8, name.len()), (1, 77, 3), (2, 9, 1)] {
            let at = 1 + slot * ENTRY;
            (block[at + 4], block[at + 8]) = (inode, length as u8);
        }
        let names_at = 1 + slots * ENTRY;
        block[names_at..][..name.len()].copy_from_slice(name);
        block[names_at + 2 * SLOT] = b'x';
        // The entry in the second slot is stale.
        let expected: [(&[u8], u64); 2] = [(name, 8), (b"x", 9)];
        assert_eq!(entries(&block, slots), expected);
    }
}
