//! Fast commits: changes of inodes in the journal, between two transactions. Format: Linux
//! `fs/ext4/fast_commit.h`; every number is little-endian.

use super::{
    directory::Entry,
    inode::Inode,
    layout::Content,
    map::{self, Claim},
    superblock::Superblock,
};
use crate::bytes::{le16, le32, part};

const ADD_RANGE: u16 = 1;
const CREATE: u16 = 3;
const LINK: u16 = 4;
const INODE: u16 = 6;
const TAIL: u16 = 8;
const LAST_TAG: u16 = 9;

/// One record.
#[derive(Debug, PartialEq, Eq)]
pub enum Record<'b> {
    /// Data range of an inode.
    Range(u32, Claim),
    /// Name in a directory.
    Name(u32, Entry<'b>),
    /// Inode number and generation.
    Inode(u32, u32),
    /// End of a fast commit: the transaction that will commit the same changes.
    Tail(u32),
}

/// Returns the records of a block. No record crosses the end of a block.
pub fn records<'b>(block: &'b [u8], superblock: &Superblock) -> impl Iterator<Item = Record<'b>> {
    let mut at = 0;
    let tags = std::iter::from_fn(move || {
        let (tag, length) = (le16(block, at), usize::from(le16(block, at + 2)));
        let body = part(block, at + 4, at + 4 + length);
        at += 4 + length;
        ((1..=LAST_TAG).contains(&tag) && body.len() == length).then_some((tag, body))
    });
    tags.filter_map(move |(tag, body)| {
        let first = le32(body, 0);
        match tag {
            ADD_RANGE if body.len() == 16 => {
                let claim = map::of_extent(part(body, 4, 16), Content::Data, superblock);
                claim.map(|claim| Record::Range(first, claim))
            }
            CREATE | LINK => {
                let entry = Entry {
                    inode: le32(body, 4),
                    name: part(body, 8, body.len()),
                    is_directory: false,
                };
                Some(Record::Name(first, entry))
            }
            INODE => {
                let fields = Inode(part(body, 4, body.len()));
                Some(Record::Inode(first, fields.generation()))
            }
            TAIL => Some(Record::Tail(first)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(tag: u16, body: &[u8]) -> Vec<u8> {
        let length = body.len() as u16;
        [&tag.to_le_bytes(), &length.to_le_bytes(), body].concat()
    }

    #[test]
    fn ranges_and_names_are_read_up_to_what_is_none() {
        let range = [12u32, 0, 4, 100].map(u32::to_le_bytes).concat();
        let name = [&[2, 0, 0, 0, 12, 0, 0, 0], &b"file"[..]].concat();
        let block = [
            tag(9, &[0; 8]),
            tag(CREATE, &name),
            tag(ADD_RANGE, &range),
            tag(TAIL, &[7, 0, 0, 0, 0, 0, 0, 0]),
            tag(77, &[0; 4]),
            tag(ADD_RANGE, &range),
        ];
        let superblock = crate::ext::superblock::example();
        let block = block.concat();
        let found: Vec<_> = records(&block, &superblock).collect();
        let [
            Record::Name(2, entry),
            Record::Range(12, Claim { start, length, .. }),
            Record::Tail(7),
        ] = found[..]
        else {
            panic!("{found:?}");
        };
        assert_eq!((entry.inode, entry.name), (12, &b"file"[..]));
        assert_eq!((start, length), (100, 4));
        assert_eq!(records(&[0; 1024], &superblock).count(), 0);
    }
}
