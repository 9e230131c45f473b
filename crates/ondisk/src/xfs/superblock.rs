//! Superblock: sizes, and the conversion of block and inode numbers to places on disk
//! (fs/xfs/libxfs/xfs_format.h, `xfs_dsb`).

use crate::bytes::array;
use crate::bytes::checked::{be16, be32, be64};
use std::ops::Range;

/// Bytes of a basic block, the unit of disk addresses.
pub const BASIC_BLOCK: u64 = 512;

/// The label.
pub const LABEL: Range<usize> = 108..120;

const META_UUID: u32 = 1 << 2;

/// Geometry of a file system.
#[derive(Debug, Clone)]
pub struct Geometry {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Number of all blocks.
    pub blocks: u64,
    /// Bytes of a sector; each AG header takes one.
    pub sector_bytes: u64,
    /// Blocks of an allocation group (the last may be shorter).
    pub ag_blocks: u64,
    /// Bytes of an inode.
    pub inode_bytes: u64,
    /// Bytes of a directory block.
    pub directory_bytes: u64,
    /// UUID in every metadata block.
    pub uuid: [u8; 16],
    /// UUID in the records of the log.
    pub log_uuid: [u8; 16],
    /// Byte offset of the log on its disk; 0 if the log is external.
    pub log_offset: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Unit to which log records are rounded up (`sb_logsunit`).
    pub log_unit: u64,
    /// True if the log is on another disk.
    pub external_log: bool,
    /// Inodes of the realtime bitmap and summary.
    pub realtime_inodes: [u64; 2],
    /// Inodes of user, group and project quota.
    pub quota_inodes: [u64; 3],
    /// Inode of the root directory.
    pub root_inode: u64,
    ag_block_log: u32,
    inodes_per_block_log: u32,
}

impl Geometry {
    /// Parses the superblock of a v5 file system.
    pub fn parse(sector: &[u8]) -> Option<Geometry> {
        if sector.get(..4)? != b"XFSB" || be16(sector, 100)? & 15 != 5 {
            return None;
        }
        let [
            block_log,
            sector_log,
            inode_log,
            inodes_per_block_log,
            ag_block_log,
        ] = array(sector, 120)?.map(u32::from);
        let directory_log = u32::from(*sector.get(192)?);
        let sane = (10..=16).contains(&block_log)
            && (9..=15).contains(&sector_log)
            && (8..=11).contains(&inode_log)
            && inodes_per_block_log == block_log.checked_sub(inode_log)?
            && (1..=31).contains(&ag_block_log)
            && directory_log <= 6
            && sector_log <= block_log;
        let ag_blocks = u64::from(be32(sector, 84)?);
        if !sane || ag_blocks == 0 || ag_blocks > 1 << ag_block_log {
            return None;
        }
        let block_bytes = 1 << block_log;
        let uuid = array(sector, 32)?;
        let meta_uuid = be32(sector, 216)? & META_UUID != 0;
        let mut geometry = Geometry {
            block_bytes,
            blocks: be64(sector, 8)?,
            sector_bytes: 1 << sector_log,
            ag_blocks,
            inode_bytes: 1 << inode_log,
            directory_bytes: block_bytes << directory_log,
            uuid: if meta_uuid { array(sector, 248)? } else { uuid },
            log_uuid: uuid,
            log_offset: 0,
            log_unit: u64::from(be32(sector, 196)?).clamp(BASIC_BLOCK, 256 * 1024),
            log_bytes: u64::from(be32(sector, 96)?) * block_bytes,
            external_log: be64(sector, 48)? == 0,
            realtime_inodes: [be64(sector, 64)?, be64(sector, 72)?],
            quota_inodes: [be64(sector, 160)?, be64(sector, 168)?, be64(sector, 232)?],
            root_inode: be64(sector, 56)?,
            ag_block_log,
            inodes_per_block_log,
        };
        if !geometry.external_log {
            let block = geometry.block(be64(sector, 48)?)?;
            geometry.log_offset = block.checked_mul(block_bytes)?;
        }
        Some(geometry)
    }

    /// Block number from the start of the disk, for a block number with its group in the upper
    /// bits.
    pub fn block(&self, fs_block: u64) -> Option<u64> {
        let group = fs_block >> self.ag_block_log;
        let in_group = fs_block & ((1 << self.ag_block_log) - 1);
        group
            .checked_mul(self.ag_blocks)?
            .checked_add(in_group)
            .filter(|&block| in_group < self.ag_blocks && block < self.blocks)
    }

    /// Number of the inode with its slot at this byte offset of the disk.
    pub fn inode_at(&self, offset: u64) -> u64 {
        let block = offset / self.block_bytes;
        let (group, in_group) = (block / self.ag_blocks, block % self.ag_blocks);
        let slot = offset % self.block_bytes / self.inode_bytes;
        (group << self.ag_block_log | in_group) << self.inodes_per_block_log | slot
    }

    /// Block number from the start of the disk, for a group and a block in it.
    pub fn block_in_group(&self, group: u32, block: u32) -> u64 {
        u64::from(group).saturating_mul(self.ag_blocks) + u64::from(block)
    }

    /// First inode of a block, for a group and a block in it.
    pub fn inode_in_group(&self, group: u32, block: u32) -> u64 {
        (u64::from(group) << self.ag_block_log | u64::from(block)) << self.inodes_per_block_log
    }

    /// Number of blocks that are written together as inodes (fs/xfs/libxfs/xfs_ialloc.c,
    /// `xfs_ialloc_setup_geometry`: 8 KiB for inodes of 256 bytes, in proportion for larger ones).
    pub fn inode_cluster_blocks(&self) -> u64 {
        (8192 * self.inode_bytes / 256 / self.block_bytes).max(1)
    }

    /// Group and sector of this offset, if the sector is one of the headers at the start of the
    /// group.
    pub fn header_sector(&self, offset: u64) -> Option<(u64, u64)> {
        let group_bytes = self.ag_blocks.checked_mul(self.block_bytes)?;
        let sector = offset % group_bytes / self.sector_bytes;
        (sector < 4).then_some((offset / group_bytes, sector))
    }
}
