//! Fast commits: changes of inodes in the journal, between two transactions. Format: Linux
//! `fs/ext4/fast_commit.h`; every number is little-endian.

use super::{
    directory::Entry,
    inode::Inode,
    map::{self, Claim},
    running::Running,
    space::{Content, Mapper, Use},
    superblock::Superblock,
};
use crate::Rows;
use crate::bytes::{le16, le32, part};

const ADD_RANGE: u16 = 1;
const CREATE: u16 = 3;
const LINK: u16 = 4;
const INODE: u16 = 6;
const LAST_TAG: u16 = 9;

/// What fast commits say, until the next transaction says it again.
#[derive(Debug, Default)]
pub(super) struct FastCommits {
    /// Data that inodes map since they were last looked at.
    new: Vec<(u32, Claim)>,
    /// What was claimed for them.
    claimed: Vec<(u64, u64, Use)>,
}

/// One record.
#[derive(Debug, PartialEq, Eq)]
enum Record<'b> {
    Range(u32, Claim),
    Name(u32, Entry<'b>),
    Inode(u32, u32),
}

/// The records of a block; none of them crosses its end.
fn records<'b>(block: &'b [u8], superblock: &Superblock) -> impl Iterator<Item = Record<'b>> {
    let mut at = 0;
    let tags = std::iter::from_fn(move || {
        let (tag, length) = (le16(block, at), usize::from(le16(block, at + 2)));
        let body = part(block, at + 4, at + 4 + length);
        at += 4 + length;
        ((1..=LAST_TAG).contains(&tag) && body.len() == length).then_some((tag, body))
    });
    tags.filter_map(move |(tag, body)| {
        let inode = le32(body, 0);
        match tag {
            ADD_RANGE if body.len() == 16 => {
                let claim = map::of_extent(part(body, 4, 16), Content::Data, superblock);
                claim.map(|claim| Record::Range(inode, claim))
            }
            CREATE | LINK => {
                let entry = Entry {
                    inode: le32(body, 4),
                    name: part(body, 8, body.len()),
                    is_directory: false,
                };
                Some(Record::Name(inode, entry))
            }
            INODE => Some(Record::Inode(
                inode,
                Inode(part(body, 4, body.len())).generation(),
            )),
            _ => None,
        }
    })
}

impl Running {
    /// A block of the journal's area for them was written.
    pub(super) fn fast_commit(&mut self, block: &[u8]) {
        for record in records(block, &self.state.superblock) {
            match record {
                Record::Range(inode, claim) => self.fast_commits.new.push((inode, claim)),
                Record::Name(directory, entry) => self.state.names.told(directory, &entry),
                Record::Inode(inode, generation) => {
                    self.state.names.told_generation(inode, generation);
                }
            }
        }
    }

    /// What waits in blocks that fast commits say are mapped is complete.
    pub(super) fn resolve_fast(&mut self, rows: &mut Rows) {
        for (inode, claim) in std::mem::take(&mut self.fast_commits.new) {
            let used = claim.used(Mapper { inode, node: 0 });
            for run in self.state.space.runs(claim.start, claim.length) {
                if run.used.is_none() {
                    self.state.space.claim(run.start, run.length, used);
                    let place = (run.start, run.length);
                    self.fast_commits.claimed.push((place.0, place.1, used));
                    self.resolve(place, rows);
                }
            }
        }
    }

    /// A transaction says again what of it still holds.
    pub(super) fn forget_fast(&mut self) {
        for (start, length, used) in std::mem::take(&mut self.fast_commits.claimed) {
            self.state.space.release(start, length, used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::ext2;
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
            tag(77, &[0; 4]),
            tag(ADD_RANGE, &range),
        ];
        let superblock = ext2().superblock;
        let block = block.concat();
        let found: Vec<_> = records(&block, &superblock).collect();
        let [
            Record::Name(2, entry),
            Record::Range(12, Claim { start, length, .. }),
        ] = found[..]
        else {
            panic!("{found:?}");
        };
        assert_eq!((entry.inode, entry.name), (12, &b"file"[..]));
        assert_eq!((start, length), (100, 4));
        assert_eq!(records(&[0; 1024], &superblock).count(), 0);
    }

    #[test]
    fn a_name_of_a_fast_commit_holds_until_the_next_transaction() {
        let mut state = ext2();
        let entry = |inode, name| Entry {
            inode,
            name,
            is_directory: false,
        };
        let mut paths = crate::Paths::default();
        state.names.inode_is(100, 7, true);
        state.names.add(2, &entry(100, b"old"));
        state.names.told_generation(100, 7);
        assert!(state.names.path(100, &mut paths).is_some());
        // Another file by now, without a name.
        state.names.told_generation(100, 8);
        assert_eq!(state.names.path(100, &mut paths), None);
        state.names.told(2, &entry(100, b"new"));
        let path = state.names.path(100, &mut paths).unwrap();
        assert_eq!(paths.text(path), "/new");
        state.names.settle();
        let path = state.names.path(100, &mut paths).unwrap();
        assert_eq!(paths.text(path), "/old");
    }
}
