//! Checkpoints: two packs, written in turn. A pack is complete when its last block repeats the
//! version of its first.

use fscost_ondisk::f2fs::checkpoint::{Checkpoint, LOGS};
use fscost_ondisk::f2fs::superblock::Geometry;

/// Version of the second pack as mkfs writes it, after the first: no checkpoint. mkfs draws the
/// version of the first pack, so that a disk that is formatted again may begin with a lower one.
const EMPTY: u64 = 0;

/// State of the checkpoints.
#[derive(Debug)]
pub struct Checkpoints {
    first_block: u64,
    segment_blocks: u64,
    /// The pack being written: its number, version and blocks.
    pack: Option<(u64, u64, u64)>,
    /// Version of the last complete checkpoint.
    version: Option<u64>,
    node_segments: [u32; LOGS],
    data_segments: [u32; LOGS],
}

impl Checkpoints {
    /// Creates the state before the first checkpoint.
    pub fn new(geometry: &Geometry) -> Checkpoints {
        Checkpoints {
            first_block: geometry.checkpoints,
            segment_blocks: geometry.segment_blocks,
            pack: None,
            version: None,
            node_segments: [u32::MAX; LOGS],
            data_segments: [u32::MAX; LOGS],
        }
    }

    /// Records a write to a block of the checkpoint area. Returns true if it completes a
    /// checkpoint.
    pub fn block(&mut self, block: u64, content: &[u8]) -> bool {
        let within = block.saturating_sub(self.first_block);
        let (pack, index) = (within / self.segment_blocks, within % self.segment_blocks);
        let read = Checkpoint(content);
        let version = read.version();
        if let Some((begun, of, blocks)) = self.pack
            && (begun, of, index + 1) == (pack, version, blocks)
            && version != EMPTY
        {
            self.version = Some(version);
            self.node_segments = read.node_segments();
            self.data_segments = read.data_segments();
            return true;
        }
        if index == 0 {
            self.pack = Some((pack, version, read.blocks()));
        }
        false
    }

    /// Returns the version of the checkpoint being written, or of the last one written.
    pub fn being_written(&self) -> Option<u64> {
        self.pack.map(|(_, version, _)| version)
    }

    /// Returns whether a node with this version in its footer was written after the last
    /// checkpoint. The upper half of the version is a checksum (`cpver_of_node`).
    pub fn is_now(&self, version: u64) -> bool {
        self.version.is_some_and(|now| now as u32 == version as u32)
    }

    /// Returns whether nodes were being written to this segment at the last checkpoint. A segment
    /// receives nodes until it is full, and it cannot be reused before the next checkpoint.
    pub fn is_node(&self, segment: u64) -> bool {
        self.node_segments.map(u64::from).contains(&segment)
    }

    /// Returns whether data was being written to this segment at the last checkpoint.
    pub fn is_data(&self, segment: u64) -> bool {
        self.data_segments.map(u64::from).contains(&segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoints() -> Checkpoints {
        Checkpoints {
            first_block: 512,
            segment_blocks: 512,
            pack: None,
            version: None,
            node_segments: [u32::MAX; LOGS],
            data_segments: [u32::MAX; LOGS],
        }
    }

    /// Returns the first and last block of a pack of three.
    fn block_of(version: u8) -> [u8; 4096] {
        let mut block = [0; 4096];
        (block[0], block[136], block[36], block[84]) = (version, 3, 5, 6);
        block
    }

    #[test]
    fn a_checkpoint_counts_when_its_last_block_is_there() {
        let (mut checkpoints, block) = (checkpoints(), block_of(7));
        assert!(!checkpoints.block(1024, &block) && !checkpoints.is_now(7));
        assert!(!checkpoints.block(1025, &[1; 4096]) && !checkpoints.is_node(5));
        // The last block of the other pack, from a different checkpoint.
        assert!(!checkpoints.block(514, &block) && !checkpoints.is_now(7));
        assert!(checkpoints.block(1026, &block));
        assert!(checkpoints.is_now(7 | 1 << 40) && !checkpoints.is_now(8));
        assert!(checkpoints.is_node(5) && checkpoints.is_data(6) && !checkpoints.is_data(5));
    }

    #[test]
    fn the_empty_pack_that_mkfs_writes_last_is_no_checkpoint() {
        let mut checkpoints = checkpoints();
        let mut pack = |first, version| {
            checkpoints.block(first, &block_of(version));
            let ends = checkpoints.block(first + 2, &block_of(version));
            (ends, checkpoints.is_now(7), checkpoints.is_now(3))
        };
        assert_eq!(pack(512, 7), (true, true, false));
        assert_eq!(pack(1024, 0), (false, true, false));
        // The disk is formatted again: mkfs draws the first version.
        assert_eq!(pack(512, 3), (true, false, true));
        assert_eq!(pack(1024, 0), (false, false, true));
    }
}
