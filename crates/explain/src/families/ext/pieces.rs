//! Assembly of the rows of one write.

use std::ops::Range;

use crate::{Cause, Causes, Disks, Row, Rows, Structure, Write};
use fscost_recording::Result;

/// A write, divided into blocks of the file system, with the rows found for its parts.
#[derive(Debug)]
pub struct BlockWrite<'w> {
    /// The whole write.
    row: Row,
    /// Content of the write; empty for a write-zeroes.
    pub content: &'w [u8],
    /// Size of a block in bytes.
    block_bytes: u64,
    /// Rows found so far, in any order.
    pub found: Vec<Row>,
}

impl<'w> BlockWrite<'w> {
    /// Divides a write into blocks of this size.
    pub fn new(write: &Write<'w>, block_bytes: u64) -> BlockWrite<'w> {
        let row = write.row(Structure::Unknown, Causes::one(Cause::Unknown));
        BlockWrite::with(row, write.content, block_bytes)
    }

    /// Divides the write that `row` covers.
    pub fn with(row: Row, content: &'w [u8], block_bytes: u64) -> BlockWrite<'w> {
        BlockWrite {
            row,
            content,
            block_bytes,
            found: Vec::new(),
        }
    }

    /// Returns the blocks that the write touches.
    pub fn blocks(&self) -> Range<u64> {
        blocks_of(&self.row, self.block_bytes)
    }

    /// Returns a row without an explanation for the part of the write in these blocks.
    pub fn part(&self, blocks: Range<u64>) -> Row {
        let whole_end = self.row.offset.saturating_add(self.row.length);
        let offset = blocks.start.saturating_mul(self.block_bytes);
        let offset = offset.max(self.row.offset);
        let end = blocks.end.saturating_mul(self.block_bytes).min(whole_end);
        Row {
            offset,
            length: end.saturating_sub(offset),
            ..self.row
        }
    }

    /// Adds a row without an owner for the part of the write in these blocks, if there is one.
    pub fn add(&mut self, blocks: Range<u64>, structure: Structure, cause: Cause) {
        let part = self.part(blocks);
        if part.length > 0 {
            self.found.push(Row {
                structure,
                causes: Causes::one(cause),
                ..part
            });
        }
    }

    /// Returns the content of a block after the write, which may cover only part of the block.
    pub fn content_of(&self, block: u64, disks: &mut Disks<'_>) -> Result<Vec<u8>> {
        let start = block * self.block_bytes;
        let part = self.part(block..block + 1);
        let mut content = vec![0; self.block_bytes as usize];
        if part.length < self.block_bytes {
            disks.read(self.row.disk, start, &mut content)?;
        }
        let from = (part.offset - start) as usize;
        if let Some(into) = content.get_mut(from..from + part.length as usize) {
            let at = (part.offset - self.row.offset) as usize;
            match self.content.get(at..at + into.len()) {
                Some(new) => into.copy_from_slice(new),
                None => into.fill(0), // a write-zeroes
            }
        }
        Ok(content)
    }

    /// Returns the blocks that the write's content covers entirely.
    pub fn whole_blocks(&self) -> impl Iterator<Item = (u64, &'w [u8])> + use<'w> {
        let first = self.row.offset.div_ceil(self.block_bytes);
        let skip = first.saturating_mul(self.block_bytes);
        let skip = skip.saturating_sub(self.row.offset);
        let content = self.content.get(skip as usize..).unwrap_or_default();
        (first..).zip(content.chunks_exact(self.block_bytes as usize))
    }
}

/// Returns the blocks of this size that the bytes of a row touch.
pub fn blocks_of(row: &Row, block_bytes: u64) -> Range<u64> {
    let end = row.offset.saturating_add(row.length);
    row.offset / block_bytes..end.div_ceil(block_bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(number: u64, home: Option<u64>) -> Row {
        Row {
            structure: Structure::JournalCopy,
            home_offset: home.map(|home| home << 10),
            ..Row::data(number << 10, 1 << 10)
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
