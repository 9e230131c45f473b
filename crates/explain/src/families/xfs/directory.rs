//! Names in directories: within the inode (short form), and in data blocks
//! (fs/xfs/libxfs/xfs_da_format.h).

use super::bytes::{be16, be32, be64};
use crate::track::names::{Entry, Names};

/// Names of a directory that fits into its inode, with its parent's inode.
pub fn short_form(fork: &[u8]) -> Option<(u64, Vec<Entry<'_>>)> {
    let count = *fork.first()?;
    let wide = *fork.get(1)? > 0;
    let inode = |at| {
        if wide {
            be64(fork, at)
        } else {
            be32(fork, at).map(u64::from)
        }
    };
    let parent = inode(2)?;
    let inode_bytes = if wide { 8 } else { 4 };
    let mut at = 2 + inode_bytes;
    let mut entries = Vec::new();
    for _ in 0..count {
        let Some(&length) = fork.get(at) else { break };
        // Length, two bytes of offset, name, a byte of file type (v5 always has it), inode.
        let name_at = at + 3;
        let inode_at = name_at + usize::from(length) + 1;
        let (Some(name), Some(child)) = (fork.get(name_at..inode_at - 1), inode(inode_at)) else {
            break;
        };
        entries.push((name, child));
        at = inode_at + inode_bytes;
    }
    Some((parent, entries))
}

/// A directory's block held `before`, and holds `after`; either may be empty.
pub fn replace(names: &mut Names, before: &[u8], after: &[u8]) {
    let of = |block| owner(block).unwrap_or(0);
    names.replace(
        of(before),
        &data_block(before),
        of(after),
        &data_block(after),
    );
}

/// The directory that a data block belongs to.
fn owner(block: &[u8]) -> Option<u64> {
    be64(block, 40)
}

/// Names in a data block (`XDB3` or `XDD3`), without `.`, with `..` if it is there.
pub fn data_block(block: &[u8]) -> Vec<Entry<'_>> {
    let mut end = block.len();
    if block.get(..4) == Some(b"XDB3") {
        // Hash entries of 8 bytes, then their count and that of stale ones.
        let leaf = end.checked_sub(8).and_then(|tail| {
            let count = be32(block, tail)?;
            tail.checked_sub(usize::try_from(count).ok()?.checked_mul(8)?)
        });
        end = leaf.unwrap_or(end);
    }
    let mut entries = Vec::new();
    let mut at = 64;
    while at + 12 <= end {
        if be16(block, at) == Some(0xffff) {
            let free = usize::from(be16(block, at + 2).unwrap_or(0));
            if free < 8 {
                break;
            }
            at += free;
            continue;
        }
        let (Some(inode), Some(&length)) = (be64(block, at), block.get(at + 8)) else {
            break;
        };
        let Some(name) = block.get(at + 9..at + 9 + usize::from(length)) else {
            break;
        };
        if length == 0 {
            break;
        }
        if name != b"." {
            entries.push((name, inode));
        }
        // Inode, length, name, file type, tag: in steps of 8 bytes.
        at += (8 + 1 + usize::from(length) + 1 + 2).next_multiple_of(8);
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_form_names() {
        let mut fork = vec![2, 0, 0, 0, 0, 128];
        for (name, inode) in [(&b"ab"[..], 131_u32), (b"c", 132)] {
            fork.extend([name.len() as u8, 0, 0]);
            fork.extend(name);
            fork.push(1);
            fork.extend(inode.to_be_bytes());
        }
        let (parent, entries) = short_form(&fork).unwrap();
        assert_eq!(parent, 128);
        assert_eq!(entries, [(&b"ab"[..], 131), (b"c", 132)]);
        fork.truncate(12);
        assert!(short_form(&fork).unwrap().1.is_empty());
    }

    #[test]
    fn block_names_stop_at_the_hash_entries() {
        let mut block = vec![0; 1024];
        block[..4].copy_from_slice(b"XDB3");
        block[64..68].copy_from_slice(&[0xff, 0xff, 0, 16]);
        block[80..88].copy_from_slice(&200_u64.to_be_bytes());
        block[88] = 3;
        block[89..92].copy_from_slice(b"abc");
        block[1016..1020].copy_from_slice(&115_u32.to_be_bytes());
        assert_eq!(data_block(&block), [(&b"abc"[..], 200)]);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..600)) {
            let _ = (short_form(&bytes), data_block(&bytes));
        }
    }
}
