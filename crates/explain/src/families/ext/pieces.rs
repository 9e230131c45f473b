//! Assembly of the rows of one write.

use super::{journal::Piece, metadata::Explanation};
use crate::{Cause, Causes, Disks, NO_INODE, PathId, Row, Rows, Structure, Write};
use fscost_recording::Result;

/// Returns the bytes of a write in blocks `start..end` of `block_bytes` each.
pub fn piece(write: &Write<'_>, start: u64, end: u64, block_bytes: u64) -> Piece {
    let write_end = write.offset.saturating_add(write.length);
    let from = start.saturating_mul(block_bytes).max(write.offset);
    let to = end.saturating_mul(block_bytes).min(write_end);
    Piece {
        event: write.event,
        disk: write.disk,
        offset: from,
        length: to.saturating_sub(from),
    }
}

/// Creates a row with one structure and one cause, without an owner.
pub fn plain(piece: Piece, structure: Structure, cause: Cause) -> Row {
    Row {
        event: piece.event,
        disk: piece.disk,
        offset: piece.offset,
        length: piece.length,
        structure,
        home: None,
        home_offset: None,
        causes: Causes::one(cause),
        inode: NO_INODE,
        tree: 0,
        path: None,
        transaction: None,
        copy: 0,
        is_doubtful: false,
    }
}

/// Creates a row from an explanation.
pub fn explained(
    piece: Piece,
    what: Explanation,
    path: Option<PathId>,
    transaction: Option<u64>,
) -> Row {
    Row {
        structure: what.structure,
        causes: what.causes,
        inode: u64::from(what.inode),
        path,
        transaction,
        ..plain(piece, what.structure, Cause::Unknown)
    }
}

/// Adds rows, merging adjacent rows with the same explanation. Returns their numbers.
pub fn push_merged(mut found: Vec<Row>, rows: &mut Rows) -> Vec<usize> {
    found.sort_by_key(|r| (r.event, r.disk, r.offset));
    let mut merged: Vec<Row> = Vec::new();
    for row in found {
        if !merged.last_mut().is_some_and(|last| last.absorb(&row)) {
            merged.push(row);
        }
    }
    merged.into_iter().map(|row| rows.push(row)).collect()
}

/// Returns the first block that a write touches, and the number of blocks that it touches.
pub fn blocks_of(write: &Write<'_>, bytes: u64) -> (u64, u64) {
    piece(write, 0, u64::MAX, 1).blocks(bytes)
}

/// Returns the content of a block after a write, which may cover only part of the block.
pub fn content_of(
    write: &Write<'_>,
    block: u64,
    bytes: u64,
    disks: &mut Disks<'_>,
) -> Result<Vec<u8>> {
    let start = block * bytes;
    let mut content = vec![0; bytes as usize];
    let (from, to) = (
        start.max(write.offset),
        (start + bytes).min(write.offset.saturating_add(write.length)),
    );
    if from > start || to < start + bytes {
        disks.read(write.disk, start, &mut content)?;
    }
    if let Some(into) = content.get_mut((from - start) as usize..to.saturating_sub(start) as usize)
    {
        let at = (from - write.offset) as usize;
        match write.content.get(at..at + into.len()) {
            Some(new) => into.copy_from_slice(new),
            None => into.fill(0), // a write-zeroes
        }
    }
    Ok(content)
}

/// Returns the blocks that a write's content covers entirely.
pub fn whole_blocks<'w>(
    write: &Write<'w>,
    first: u64,
    bytes: u64,
) -> impl Iterator<Item = (u64, &'w [u8])> + use<'w> {
    let skip = first.saturating_mul(bytes).abs_diff(write.offset);
    let (skip, first) = if skip == 0 {
        (0, first)
    } else {
        ((bytes - skip % bytes) as usize, first + 1)
    };
    let content = write.content.get(skip..).unwrap_or_default();
    (first..).zip(content.chunks_exact(bytes as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(number: u64, home: Option<u64>) -> Row {
        let piece = Piece {
            event: 1,
            disk: 0,
            offset: number << 10,
            length: 1 << 10,
        };
        Row {
            home_offset: home.map(|home| home << 10),
            ..plain(piece, Structure::JournalCopy, Cause::DirectoryEntries)
        }
    }

    #[test]
    fn copies_are_one_row_only_where_their_homes_follow_each_other() {
        let homes = [Some(5), Some(6), Some(8), Some(7), None, None];
        let mut rows = Rows::default();
        push_merged(
            (100..)
                .zip(homes)
                .map(|(at, home)| copy(at, home))
                .collect(),
            &mut rows,
        );
        let found: Vec<_> = rows
            .to_vec()
            .iter()
            .map(|r| (r.home_offset.map(|h| h >> 10), r.length >> 10))
            .collect();
        assert_eq!(found, [(Some(5), 2), (Some(8), 1), (Some(7), 1), (None, 2)]);
    }
}
