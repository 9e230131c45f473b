//! Checkpoints: two packs, written in turn. The one whose last block repeats the version of its
//! first is complete.

use super::Geometry;
use crate::bytes::{le32, le64};

/// Logs of each kind that a checkpoint may name (`MAX_ACTIVE_NODE_LOGS`, `MAX_ACTIVE_DATA_LOGS`).
const LOGS: usize = 8;

/// The checkpoints so far.
#[derive(Debug)]
pub struct Checkpoints {
    first_block: u64,
    segment_blocks: u64,
    /// The pack that is being written: its number, version and blocks.
    pack: Option<(u64, u64, u64)>,
    /// Of the last that is complete.
    version: Option<u64>,
    node_segments: [u32; LOGS],
    data_segments: [u32; LOGS],
}

impl Checkpoints {
    /// None yet.
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

    /// A block of the area is written. Whether a checkpoint is complete by it.
    pub fn block(&mut self, block: u64, content: &[u8]) -> bool {
        let within = block.saturating_sub(self.first_block);
        let (pack, index) = (within / self.segment_blocks, within % self.segment_blocks);
        let version = le64(content, 0);
        if let Some((begun, of, blocks)) = self.pack
            && (begun, of, index + 1) == (pack, version, blocks)
        {
            self.version = Some(version);
            for log in 0..LOGS {
                self.node_segments[log] = le32(content, 36 + 4 * log);
                self.data_segments[log] = le32(content, 84 + 4 * log);
            }
            return true;
        }
        if index == 0 {
            self.pack = Some((pack, version, u64::from(le32(content, 136))));
        }
        false
    }

    /// The version that is being written, or was last.
    pub fn being_written(&self) -> Option<u64> {
        self.pack.map(|(_, version, _)| version)
    }

    /// Whether a node with this version in its footer was written after the last checkpoint. Its
    /// upper half is a checksum (`cpver_of_node`).
    pub fn is_now(&self, version: u64) -> bool {
        self.version.is_some_and(|now| now as u32 == version as u32)
    }

    /// Whether nodes were being written to this segment at the last checkpoint. It stays so until
    /// it is full, and in use until the next checkpoint.
    pub fn is_node(&self, segment: u64) -> bool {
        self.node_segments
            .iter()
            .any(|&of| u64::from(of) == segment)
    }

    /// The same of data.
    pub fn is_data(&self, segment: u64) -> bool {
        self.data_segments
            .iter()
            .any(|&of| u64::from(of) == segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_counts_when_its_last_block_is_there() {
        let mut checkpoints = Checkpoints {
            first_block: 512,
            segment_blocks: 512,
            pack: None,
            version: None,
            node_segments: [u32::MAX; LOGS],
            data_segments: [u32::MAX; LOGS],
        };
        let mut block = [0; 4096];
        (block[0], block[136], block[36], block[84]) = (7, 3, 5, 6);
        assert!(!checkpoints.block(1024, &block) && !checkpoints.is_now(7));
        assert!(!checkpoints.block(1025, &[1; 4096]) && !checkpoints.is_node(5));
        // The last block of the other pack, left by another checkpoint.
        assert!(!checkpoints.block(514, &block) && !checkpoints.is_now(7));
        assert!(checkpoints.block(1026, &block));
        assert!(checkpoints.is_now(7 | 1 << 40) && !checkpoints.is_now(8));
        assert!(checkpoints.is_node(5) && checkpoints.is_data(6) && !checkpoints.is_data(5));
    }
}
