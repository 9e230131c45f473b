//! Journal blocks. Format: Linux `include/linux/jbd2.h`; every number is big-endian.

use crate::bytes::{be16, be32};

const MAGIC: u32 = 0xC03B_3998;
const INCOMPAT_64BIT: u32 = 0x2;
const INCOMPAT_ASYNC_COMMIT: u32 = 0x4;
const INCOMPAT_CSUM_V2: u32 = 0x8;
const INCOMPAT_CSUM_V3: u32 = 0x10;
const INCOMPAT_FAST_COMMIT: u32 = 0x20;
const DEFAULT_FAST_COMMIT_BLOCKS: u32 = 256;
const MIN_JOURNAL_BLOCKS: u32 = 1024;
const TAG_ESCAPED: u32 = 1;
const TAG_SAME_UUID: u32 = 2;
const TAG_LAST: u32 = 8;

/// Kinds of blocks that begin with the journal's magic number. Copies never do, because they are
/// escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Descriptor: list of the home blocks of the copies that follow.
    Descriptor,
    /// The end of a transaction.
    Commit,
    /// Revocation: list of blocks that have older copies which must not be replayed.
    Revoke,
    /// The journal's superblock.
    Superblock,
}

/// Type and sequence number of a control block; `None` for a copy.
pub fn control(block: &[u8]) -> Option<(Control, u32)> {
    if be32(block, 0) != MAGIC {
        return None;
    }
    let control = match be32(block, 4) {
        1 => Control::Descriptor,
        2 => Control::Commit,
        3 | 4 => Control::Superblock,
        5 => Control::Revoke,
        _ => return None,
    };
    Some((control, be32(block, 8)))
}

/// Restores the escaped bytes of a copy.
pub fn unescape(copy: &mut [u8]) {
    if let Some(start) = copy.first_chunk_mut() {
        *start = MAGIC.to_be_bytes();
    }
}

/// Entry of a descriptor, which announces a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// Block that the copy belongs to.
    pub home: u64,
    /// True if the copy is escaped: its first four bytes differ from the block's.
    pub escaped: bool,
}

/// The journal's superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Superblock {
    /// Blocks of the journal.
    pub blocks: u32,
    /// The first block of the log.
    pub first: u32,
    incompat: u32,
    fast_commit_blocks: u32,
    sequence: u32,
    start: u32,
}

impl Superblock {
    /// Parses a block; `None` if it is not a superblock.
    pub fn parse(block: &[u8]) -> Option<Superblock> {
        let (Control::Superblock, _) = control(block)? else {
            return None;
        };
        let version_2 = be32(block, 4) == 4;
        Some(Superblock {
            blocks: be32(block, 0x10),
            first: be32(block, 0x14),
            incompat: if version_2 { be32(block, 0x28) } else { 0 },
            fast_commit_blocks: be32(block, 0x54),
            sequence: be32(block, 0x18),
            start: be32(block, 0x1C),
        })
    }

    /// First transaction that recovery would replay; `None` if the journal is empty.
    pub fn tail(&self) -> Option<u32> {
        (self.start != 0).then_some(self.sequence)
    }

    /// Position of the first block of that transaction.
    pub fn start(&self) -> Option<u32> {
        (self.start != 0).then_some(self.start)
    }

    fn has(&self, feature: u32) -> bool {
        self.incompat & feature != 0
    }

    /// Returns whether a commit block may be written before the blocks that it commits
    /// (`jbd2_journal_commit_transaction`).
    pub fn has_async_commit(&self) -> bool {
        self.has(INCOMPAT_ASYNC_COMMIT)
    }

    /// End of the log. Fast commits come after it (`jbd2_journal_load`, `journal_init_common`).
    pub fn end(&self) -> u32 {
        if !self.has(INCOMPAT_FAST_COMMIT) {
            return self.blocks;
        }
        let count = match self.fast_commit_blocks {
            0 => DEFAULT_FAST_COMMIT_BLOCKS,
            count => count,
        };
        let end = self.blocks.checked_sub(count);
        end.filter(|&end| end >= MIN_JOURNAL_BLOCKS)
            .unwrap_or(self.blocks)
    }

    /// Position after `position`: the log is a ring.
    pub fn after(&self, position: u32) -> u32 {
        let next = position.saturating_add(1);
        if next >= self.end() { self.first } else { next }
    }

    /// Number of positions from one to another around the log.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        match to.checked_sub(from) {
            Some(distance) => distance,
            None => {
                let around = self.end().saturating_sub(from);
                around.saturating_add(to.saturating_sub(self.first))
            }
        }
    }

    /// Returns the copies that a descriptor block announces, in the order of their positions
    /// (`journal_tag_bytes`, `read_tag_block`).
    pub fn tags(&self, descriptor: &[u8]) -> Vec<Tag> {
        let (v2, v3) = (self.has(INCOMPAT_CSUM_V2), self.has(INCOMPAT_CSUM_V3));
        let wide = self.has(INCOMPAT_64BIT);
        let tag_bytes = match v3 {
            true => 16,
            false => 8 + 4 * usize::from(wide) + 2 * usize::from(v2),
        };
        let tail = if v2 || v3 { 4 } else { 0 };
        let end = descriptor.len().saturating_sub(tail);
        let (mut tags, mut at) = (Vec::new(), 12);
        while at + tag_bytes <= end {
            let flags = match v3 {
                true => be32(descriptor, at + 4),
                false => be16(descriptor, at + 6).into(),
            };
            let high = if wide { be32(descriptor, at + 8) } else { 0 };
            tags.push(Tag {
                home: u64::from(high) << 32 | u64::from(be32(descriptor, at)),
                escaped: flags & TAG_ESCAPED != 0,
            });
            if flags & TAG_LAST != 0 {
                break;
            }
            at += tag_bytes + if flags & TAG_SAME_UUID == 0 { 16 } else { 0 };
        }
        tags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(incompat: u32) -> Superblock {
        Superblock {
            blocks: 2048,
            first: 1,
            incompat,
            fast_commit_blocks: 0,
            sequence: 1,
            start: 1,
        }
    }

    fn descriptor(tags: &[(&[u32], &[u16])], uuid_after_first: bool) -> Vec<u8> {
        let mut bytes = [MAGIC, 1, 7].map(u32::to_be_bytes).concat();
        for (number, (words, halves)) in tags.iter().enumerate() {
            for (index, word) in words.iter().enumerate() {
                bytes.extend(word.to_be_bytes());
                if index == 0 {
                    halves.iter().for_each(|h| bytes.extend(h.to_be_bytes()));
                }
            }
            if number == 0 && uuid_after_first {
                bytes.extend([9; 16]);
            }
        }
        bytes.resize(1024, 0);
        bytes
    }

    fn homes(journal: &Superblock, block: &[u8]) -> Vec<(u64, bool)> {
        journal
            .tags(block)
            .iter()
            .map(|t| (t.home, t.escaped))
            .collect()
    }

    #[test]
    fn every_form_of_tags_is_read() {
        let v1 = descriptor(&[(&[5], &[0, 0]), (&[6], &[0, 2 | 8])], true);
        assert_eq!(homes(&journal(0), &v1), [(5, false), (6, false)]);
        let wide = descriptor(&[(&[5, 1], &[0, 0]), (&[6, 0], &[0, 1 | 2 | 8])], true);
        assert_eq!(
            homes(&journal(INCOMPAT_64BIT), &wide),
            [(1 << 32 | 5, false), (6, true)]
        );
        let v3 = descriptor(
            &[(&[5, 0, 2, 0xC5], &[]), (&[6, 2 | 8, 0, 0xC5], &[])],
            true,
        );
        let features = INCOMPAT_CSUM_V3 | INCOMPAT_64BIT;
        assert_eq!(
            homes(&journal(features), &v3),
            [(2 << 32 | 5, false), (6, false)]
        );
        let mut v2 = descriptor(&[(&[5], &[0, 2, 0xC5]), (&[6], &[0, 2 | 8, 0xC5])], false);
        assert_eq!(
            homes(&journal(INCOMPAT_CSUM_V2), &v2),
            [(5, false), (6, false)]
        );
        v2.truncate(20);
        assert_eq!(homes(&journal(INCOMPAT_CSUM_V2), &v2), []);
    }

    #[test]
    fn a_descriptor_without_a_last_tag_ends_with_the_block() {
        let mut block = descriptor(&[], false);
        block[12..].fill(0x02);
        assert!(journal(0).tags(&block).len() <= 1024 / 8);
    }

    #[test]
    fn the_log_wraps_before_the_fast_commits() {
        assert_eq!(journal(0).after(2047), 1);
        assert_eq!(journal(INCOMPAT_FAST_COMMIT).after(2048 - 256 - 1), 1);
        assert_eq!(journal(INCOMPAT_FAST_COMMIT).after(5), 6);
    }
}
