//! Summary at the start of a partial segment (`struct nilfs_segment_summary`).

use crate::bytes::{le16, le32, le64};

const MAGIC: u32 = 0x1eaf_fa11;
const FILE_BYTES: usize = 24;

/// Content of a partial segment.
pub struct Summary {
    /// Sequence number of the segment, in the order of the log.
    pub sequence: u64,
    /// Number of the checkpoint.
    pub checkpoint: u64,
    /// Number of blocks in the partial segment.
    pub total: u64,
    /// Number of blocks that the summary takes.
    pub blocks: u64,
    /// True if the partial segment has only data, of an fdatasync, and no inodes
    /// (`NILFS_SS_SYNDT`).
    pub has_data_alone: bool,
    /// True if the cleaner asked for the partial segment (`NILFS_SS_GC`).
    pub is_of_cleaner: bool,
    /// True if the last block is a super root.
    pub has_super_root: bool,
    /// Files, in the order of their blocks.
    pub files: Vec<FileBlocks>,
}

/// Blocks of one file: data, followed by nodes of its tree.
pub struct FileBlocks {
    /// Inode number of the file.
    pub inode: u64,
    /// Checkpoint that the blocks belong to; 0 for metadata files. It is an earlier one than the
    /// partial segment's for blocks that the cleaner moved (`nilfs_segctor_end_finfo`).
    pub checkpoint: u64,
    /// Number of all blocks.
    pub blocks: u64,
    /// Number of data blocks.
    pub data_blocks: u64,
    /// Place of each data block in the file; empty for the DAT, the checkpoint file and the segment
    /// usage file.
    pub offsets: Vec<u64>,
}

impl Summary {
    /// Parses the summary in the first blocks of `content`.
    pub fn parse(content: &[u8], block_bytes: usize) -> Option<Summary> {
        let header = usize::from(le16(content, 12));
        let bytes = le32(content, 48) as usize;
        if le32(content, 8) != MAGIC || header < 64 || bytes < header {
            return None;
        }
        let flags = le16(content, 14);
        let mut summary = Summary {
            sequence: le64(content, 16),
            checkpoint: le64(content, 56),
            total: u64::from(le32(content, 40)),
            blocks: bytes.div_ceil(block_bytes) as u64,
            has_data_alone: flags & 0x8 != 0,
            is_of_cleaner: flags & 0x10 != 0,
            has_super_root: flags & 0x4 != 0,
            files: Vec::new(),
        };
        let mut cursor = Cursor {
            content: &content[..bytes.min(content.len())],
            block_bytes,
            at: header,
        };
        for _ in 0..le32(content, 44) {
            let Some(at) = cursor.next(FILE_BYTES) else {
                break;
            };
            let inode = le64(content, at);
            let blocks = u64::from(le32(content, at + 16));
            let data_blocks = u64::from(le32(content, at + 20)).min(blocks);
            // union nilfs_binfo: blocks of the DAT have no virtual block numbers.
            let (data_bytes, node_bytes) = match inode {
                super::DAT => (8, 16),
                _ => (16, 8),
            };
            let has_offsets = !matches!(inode, super::DAT | super::CPFILE | super::SUFILE);
            let data = (0..data_blocks).map_while(|_| cursor.next(data_bytes));
            let data = data.filter(|_| has_offsets);
            let offsets = data.map(|at| le64(content, at + 8)).collect();
            for _nodes in data_blocks..blocks {
                if cursor.next(node_bytes).is_none() {
                    break;
                }
            }
            summary.files.push(FileBlocks {
                inode,
                checkpoint: le64(content, at + 8),
                blocks,
                data_blocks,
                offsets,
            });
        }
        Some(summary)
    }
}

impl Summary {
    /// Returns whether the cleaner moved the blocks of this file.
    pub fn has_moved(&self, file: &FileBlocks) -> bool {
        self.is_of_cleaner && file.checkpoint != 0 && file.checkpoint != self.checkpoint
    }
}

/// Position in a sequence of items. No item crosses the end of a block.
struct Cursor<'b> {
    content: &'b [u8],
    block_bytes: usize,
    at: usize,
}

impl Cursor<'_> {
    fn next(&mut self, bytes: usize) -> Option<usize> {
        if self.at % self.block_bytes + bytes > self.block_bytes {
            self.at = self.at.next_multiple_of(self.block_bytes);
        }
        let at = self.at;
        self.at += bytes;
        (self.at <= self.content.len()).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_partial_segment() {
        let mut content = [0; 1024];
        content[8..12].copy_from_slice(&MAGIC.to_le_bytes());
        // ss_bytes, ss_flags, ss_seq, ss_nblocks, ss_nfinfo, ss_sumbytes, ss_cno
        (content[12], content[14], content[16], content[40]) = (64, 0x14, 11, 9);
        (content[44], content[48], content[56]) = (2, 168, 12);
        // A plain file with one block and one node; the ifile, with one block, which is its fifth.
        (content[64], content[80], content[84]) = (13, 2, 1);
        // The cleaner moved the blocks of the plain file, which checkpoint 7 has.
        content[72] = 7;
        let ifile = 64 + FILE_BYTES + 16 + 8;
        (content[ifile], content[ifile + 16], content[ifile + 20]) =
            (super::super::IFILE as u8, 1, 1);
        content[ifile + FILE_BYTES + 8] = 5;
        let summary = Summary::parse(&content, 1024).unwrap();
        assert_eq!((summary.sequence, summary.checkpoint), (11, 12));
        assert_eq!((summary.total, summary.blocks), (9, 1));
        assert!(summary.has_super_root);
        let moved: Vec<_> = (summary.files.iter())
            .map(|file| summary.has_moved(file))
            .collect();
        assert_eq!(moved, [true, false]);
        let files: Vec<_> = (summary.files.iter())
            .map(|file| (file.inode, file.blocks, file.data_blocks, &file.offsets[..]))
            .collect();
        let expected: [(u64, u64, u64, &[u64]); 2] = [(13, 2, 1, &[0]), (6, 1, 1, &[5])];
        assert_eq!(files, expected);
    }
}
