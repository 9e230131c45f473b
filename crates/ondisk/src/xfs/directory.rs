//! Names in directories: within the inode (short form), and in data blocks
//! (fs/xfs/libxfs/xfs_da_format.h).

use super::block::DIRECTORY_AT;
pub use super::block::LEAVES_AT;
use crate::bytes::checked::{be16, be32, be64};

/// A name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The name.
    pub name: &'a [u8],
    /// Offset of the name.
    pub name_at: usize,
    /// Inode that the entry names.
    pub inode: u64,
    /// End of the entry.
    pub end: usize,
}

/// Bytes of the header of a directory that fits into its inode (`fork`): number of names, width of
/// inode numbers, parent inode.
pub fn short_header_bytes(fork: &[u8]) -> Option<usize> {
    Some(2 + short_inode_bytes(*fork.get(1)?)).filter(|&bytes| bytes <= fork.len())
}

fn short_inode_bytes(wide: u8) -> usize {
    if wide > 0 { 8 } else { 4 }
}

/// Returns the names of a directory that fits into its inode, as far as they can be read.
pub fn short_form(fork: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let count = fork.first().copied().unwrap_or(0);
    let inode_bytes = short_inode_bytes(fork.get(1).copied().unwrap_or(0));
    let mut at = 2 + inode_bytes;
    (0..count).map_while(move |_| {
        let length = usize::from(*fork.get(at)?);
        // Length, two bytes of offset, name, a byte of file type (v5 always has it), inode.
        let name_at = at + 3;
        let inode_at = name_at + length + 1;
        let inode = match inode_bytes {
            8 => be64(fork, inode_at)?,
            _ => u64::from(be32(fork, inode_at)?),
        };
        at = inode_at + inode_bytes;
        Some(Entry {
            name: fork.get(name_at..name_at + length)?,
            name_at,
            inode,
            end: at,
        })
    })
}

/// Entry of a data block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// A name.
    Name(Entry<'a>),
    /// Free space, with a length before its bytes and a tag after them.
    Free {
        /// Start of the free bytes.
        at: usize,
        /// End of the free space, tag included.
        end: usize,
    },
}

/// Bytes of the tag at the end of every record: the record's own start.
pub const TAG_BYTES: usize = 2;
/// Minimum length of a record. Free space may be this short; a name is longer.
const LEAST_BYTES: usize = 8;

/// Inode of the directory that a data block belongs to.
pub fn owner(block: &[u8]) -> u64 {
    be64(block, 40).unwrap_or(0)
}

/// Start and end of the records in a data block. If the directory has only this block (`XDB3`),
/// hashes of the names follow.
pub fn bounds(block: &[u8]) -> (usize, usize) {
    let begin = DIRECTORY_AT.min(block.len());
    if !block.starts_with(b"XDB3") {
        return (begin, block.len());
    }
    // Hash entries of 8 bytes, followed by their number and the number of stale entries.
    let tail = block.len().saturating_sub(8);
    let count = be32(block, tail).unwrap_or(0) as usize;
    let hashes = count.saturating_mul(8);
    (begin, tail.saturating_sub(hashes).max(begin))
}

/// Returns the names and free space in a data block (`XDB3` or `XDD3`), as far as they can be read.
pub fn records(block: &[u8]) -> impl Iterator<Item = Record<'_>> {
    let (mut at, end) = bounds(block);
    std::iter::from_fn(move || {
        let found = if at + LEAST_BYTES > end {
            None
        } else if be16(block, at) == Some(0xffff) {
            free(block, at)
        } else {
            name(block, at)
        };
        let (record, next) = found.filter(|&(_, next)| next <= end)?;
        at = next;
        Some(record)
    })
}

fn free(block: &[u8], at: usize) -> Option<(Record<'_>, usize)> {
    let length = usize::from(be16(block, at + 2)?);
    let end = at + length;
    (length >= LEAST_BYTES).then_some((Record::Free { at: at + 4, end }, end))
}

fn name(block: &[u8], at: usize) -> Option<(Record<'_>, usize)> {
    let length = usize::from(*block.get(at + 8)?);
    let name_at = at + 9;
    // Inode, length, name, file type and tag, rounded up to 8 bytes.
    let end = at + (9 + length + 1 + TAG_BYTES).next_multiple_of(8);
    let entry = Entry {
        name: block.get(name_at..name_at + length)?,
        name_at,
        inode: be64(block, at)?,
        end,
    };
    (length > 0).then_some((Record::Name(entry), end))
}

/// Returns the names in a data block, without `.` but with `..` if present.
pub fn names(block: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    records(block).filter_map(|record| match record {
        Record::Name(entry) => Some(entry).filter(|entry| entry.name != b"."),
        Record::Free { .. } => None,
    })
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
        assert_eq!(short_header_bytes(&fork), Some(6));
        let found: Vec<_> = short_form(&fork)
            .map(|e| (e.name_at, e.name, e.inode, e.end))
            .collect();
        let whole = fork.len();
        assert_eq!(found, [(9, &b"ab"[..], 131, 16), (19, b"c", 132, whole)]);
        fork.truncate(12);
        assert_eq!(short_form(&fork).count(), 0);
        assert_eq!(short_header_bytes(&fork[..5]), None);
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
        assert_eq!(bounds(&block), (64, 96));
        let name = Entry {
            name: b"abc",
            name_at: 89,
            inode: 200,
            end: 96,
        };
        let free = Record::Free { at: 68, end: 80 };
        assert!(records(&block).eq([free, Record::Name(name)]));
        assert!(names(&block).eq([name]));
    }

    #[test]
    fn free_space_at_the_end_may_be_as_short_as_a_record_is() {
        let mut block = vec![0; 80];
        block[..4].copy_from_slice(b"XDD3");
        block[64..68].copy_from_slice(&[0xff, 0xff, 0, 8]);
        block[72..76].copy_from_slice(&[0xff, 0xff, 0, 8]);
        let free = |at: usize| Record::Free {
            at: at + 4,
            end: at + 8,
        };
        assert!(records(&block).eq([free(64), free(72)]));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..600)) {
            let _ = (short_form(&bytes).count(), records(&bytes).count());
        }
    }
}
