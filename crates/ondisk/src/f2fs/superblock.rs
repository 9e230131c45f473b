//! The superblock: locations of the areas.

use crate::bytes::le32;

/// Offset of the superblock in the first block, and of its copy in the second block.
pub const AT: usize = 1024;
const MAGIC: u64 = 0xf2f5_2010;
/// `F2FS_FEATURE_FLEXIBLE_INLINE_XATTR`
const FLEXIBLE: u32 = 0x40;

/// Start of each area, in blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// Blocks of a segment.
    pub segment_blocks: u64,
    /// Start of the two checkpoint packs.
    pub checkpoints: u64,
    /// The segment information table (SIT).
    pub sit: u64,
    /// The node address table (NAT).
    pub nat: u64,
    /// The segment summary area (SSA).
    pub summaries: u64,
    /// The main area.
    pub main: u64,
    /// End of the main area.
    pub end: u64,
    /// Inode of the root directory.
    pub root: u64,
    /// True if each inode states how much of its space is for attributes.
    pub flexible: bool,
}

impl Geometry {
    /// Parses the first or second block of a file system.
    pub fn parse(block: &[u8]) -> Option<Geometry> {
        let sb = block.get(AT..)?;
        let at = |offset| u64::from(le32(sb, offset));
        let segment_log = at(20);
        if at(0) != MAGIC || at(16) != 12 || !(1..=16).contains(&segment_log) {
            return None;
        }
        let [checkpoints, sit, nat, summaries, main] = [76, 80, 84, 88, 92].map(at);
        let areas = [2, checkpoints, sit, nat, summaries, main];
        areas.is_sorted().then(|| Geometry {
            segment_blocks: 1 << segment_log,
            checkpoints,
            sit,
            nat,
            summaries,
            main,
            end: main + (at(68) << segment_log),
            root: at(96),
            flexible: le32(sb, 2180) & FLEXIBLE != 0,
        })
    }

    /// Number of the main area segment that contains the block.
    pub fn segment(&self, block: u64) -> u64 {
        block.saturating_sub(self.main) / self.segment_blocks
    }
}
