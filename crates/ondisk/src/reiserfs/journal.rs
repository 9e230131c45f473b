//! The journal: descriptions of transactions (`struct reiserfs_journal_desc`), and the header of a
//! journal on a separate device.

use crate::bytes::{le32, part};

/// Size of a header, including the parameters that follow it.
pub const HEADER_BYTES: usize = 64;

/// Entries of a description or commit block, which explain the blocks that follow in the ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Number of the transaction.
    pub id: u64,
    /// Number of block copies that follow.
    pub length: u64,
    /// Home blocks of the copies, as far as this block lists them; the block at the end lists the
    /// others.
    pub homes: Vec<u64>,
}

impl Description {
    /// Parses a block of this size, in a ring of this many blocks.
    pub fn parse(content: &[u8], block_bytes: u64, ring: u64) -> Option<Description> {
        let end = content.len().saturating_sub(12);
        if part(content, end, end + 8) != b"ReIsErLB" || ring == 0 {
            return None;
        }
        // This block lists half of the home blocks, the block at the end lists the others
        // (`journal_trans_half`).
        let half = block_bytes / 4 - 6;
        let length = u64::from(le32(content, 4)).min(2 * half).min(ring - 1);
        let homes = (0..length.min(half) as usize)
            .map(|number| u64::from(le32(content, 12 + 4 * number)))
            .collect();
        Some(Description {
            id: u64::from(le32(content, 0)),
            length,
            homes,
        })
    }
}

/// Returns whether a journal's header (`struct reiserfs_journal_header`, followed by its
/// parameters) contains this magic number.
pub fn has_magic(header: &[u8], magic: u32) -> bool {
    header.chunks(4).any(|word| le32(word, 0) == magic)
}
