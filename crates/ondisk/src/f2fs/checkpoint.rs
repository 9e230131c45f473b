//! First and last block of a checkpoint pack (`struct f2fs_checkpoint`).

use crate::bytes::{le32, le64};

/// Maximum number of logs of each kind in a checkpoint (`MAX_ACTIVE_NODE_LOGS`,
/// `MAX_ACTIVE_DATA_LOGS`).
pub const LOGS: usize = 8;

/// View of a checkpoint block.
#[derive(Debug, Clone, Copy)]
pub struct Checkpoint<'b>(pub &'b [u8]);

impl Checkpoint<'_> {
    /// Version of the checkpoint.
    pub fn version(self) -> u64 {
        le64(self.0, 0)
    }

    /// Number of blocks in the pack.
    pub fn blocks(self) -> u64 {
        u64::from(le32(self.0, 136))
    }

    /// Segments that nodes are being written to.
    pub fn node_segments(self) -> [u32; LOGS] {
        std::array::from_fn(|log| le32(self.0, 36 + 4 * log))
    }

    /// Segments that data is being written to.
    pub fn data_segments(self) -> [u32; LOGS] {
        std::array::from_fn(|log| le32(self.0, 84 + 4 * log))
    }
}
