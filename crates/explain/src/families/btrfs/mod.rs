//! btrfs: only the superblock is overwritten in place, so whenever it is written, everything
//! written before it is complete. Blocks identify the tree that they belong to. Their causes are
//! found when the next superblock arrives, by comparing each block with the tree of the previous
//! superblock. That tree is still on the disk, because its blocks are not reused before the commit.

mod blocks;
mod causes;
mod commit;
mod devices;
mod items;
mod metadata;
mod owner;
mod paths;
mod pending;
mod pieces;
mod recovery;

pub use recovery::{Logged, Recovery};

use crate::{Cause, Causes, Disks, Family, FormattedDisks, Row, Rows, Structure, Write};
use commit::Follower;
use devices::{Devices, superblock_of};
use fscost_ondisk::btrfs::{block, chunk, item, superblock};
use fscost_recording::{Image, Result};
use metadata::Volume;
use pieces::{Piece, first_piece};
use superblock::Super;

/// Returns the family that follows `disk` if the disk holds a btrfs file system. `image` is the
/// disk as mkfs left it.
pub fn detect(
    formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let Some(superblock) = superblock_of(image)? else {
        return Ok(None);
    };
    let devices = Devices::find(formatted, disk, &superblock)?;
    Ok(Some(Box::new(Btrfs {
        follower: Follower::new(Volume::new(&superblock, devices)),
        formatting: true,
    })))
}

struct Btrfs {
    follower: Follower,
    /// True until the first write after mkfs.
    formatting: bool,
}

impl Family for Btrfs {
    fn name(&self) -> &'static str {
        "btrfs"
    }

    fn owns(&self, disk: u16) -> bool {
        self.follower.volume.owns(disk)
    }

    fn reads_all(&self) -> bool {
        false
    }

    /// Returns whether the content must be read. Data and parity are identified by their place in
    /// the chunk map alone.
    fn reads(&self, disk: u16, offset: u64, length: u64) -> bool {
        self.formatting || pieces::is_read(&self.follower.volume, disk, offset, length)
    }

    fn write(&mut self, write: &Write<'_>, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        if self.formatting && !write.formatting {
            self.formatting = false;
            self.follower.begin(disks, rows)?;
        }
        // Tools prepare a disk before it becomes a device.
        let formatting = write.formatting || self.follower.volume.devid(write.disk).is_none();
        let mut at = 0;
        while at < write.length {
            let content = write.content.get(at as usize..).unwrap_or_default();
            let volume = &self.follower.volume;
            let (piece, bytes) = first_piece(
                volume,
                write.disk,
                write.offset + at,
                write.length - at,
                content,
            );
            let cause = if formatting {
                Cause::Format
            } else {
                Cause::Unknown
            };
            let row = Row {
                offset: write.offset + at,
                length: bytes.clamp(1, write.length - at),
                ..write.row(Structure::Unknown, Causes::one(cause))
            };
            at += row.length;
            self.piece(piece, row, content, disks, rows)?;
        }
        Ok(())
    }

    fn finish(&mut self, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        if self.formatting {
            self.follower.begin(disks, rows)
        } else {
            self.follower.end(disks, rows)
        }
    }
}

impl Btrfs {
    fn piece(
        &mut self,
        piece: Piece,
        mut row: Row,
        content: &[u8],
        disks: &mut Disks<'_>,
        rows: &mut Rows,
    ) -> Result<()> {
        match piece {
            Piece::Superblock { copy } => {
                self.superblock(&mut row, copy, content, disks, rows)?;
                rows.push(row);
            }
            Piece::Block { header, copy } => {
                if let Some(bytes) = content.get(..row.length as usize) {
                    self.follower.volume.put(bytes);
                }
                commit::describe(&mut row, &header);
                row.copy = copy;
                self.follower.block_written(header.bytenr, rows.push(row));
            }
            Piece::PartOfBlock { bytenr, copy } => {
                self.follower.volume.forget(bytenr);
                row.copy = copy;
                self.follower.block_written(bytenr, rows.push(row));
            }
            Piece::Data { copy } => {
                row.copy = copy;
                row.structure = Structure::FileData;
                if !self.formatting {
                    row.causes = Causes::one(Cause::Data);
                }
                self.follower.pending.push(row, rows);
            }
            Piece::Unmapped
                if row.causes.has(Cause::Format)
                    && content
                        .get(..row.length as usize)
                        .is_some_and(crate::bytes::is_zero) =>
            {
                row.structure = Structure::Unused;
                rows.push(row);
            }
            Piece::Unmapped => self.follower.pending.push(row, rows),
            Piece::Parity => {
                row.structure = Structure::Parity;
                if !self.formatting {
                    row.causes = Causes::one(Cause::Accounting);
                }
                rows.push(row);
            }
            Piece::Zeros => {
                row.structure = Structure::Unused;
                rows.push(row);
            }
            Piece::Unknown => {
                rows.push(row);
            }
        }
        Ok(())
    }

    /// Follows a written superblock, and explains its row.
    fn superblock(
        &mut self,
        row: &mut Row,
        copy: u8,
        content: &[u8],
        disks: &mut Disks<'_>,
        rows: &mut Rows,
    ) -> Result<()> {
        row.structure = if copy == 0 {
            Structure::Superblock
        } else {
            Structure::SuperblockBackup
        };
        row.copy = copy;
        if self.formatting {
            return Ok(());
        }
        let Some(superblock) = Super::parse(content) else {
            self.follower.volume.has_left(row.disk);
            row.causes = Causes::one(Cause::Accounting);
            return Ok(());
        };
        row.transaction = Some(superblock.generation);
        let volume = &mut self.follower.volume;
        if superblock.fsid == volume.fsid {
            volume.is_device(row.disk, superblock.devid);
            volume.follow_replacement(disks, &superblock)?;
        }
        self.follower.superblock(&superblock, disks, rows)?;
        row.causes = self.follower.superblock_causes();
        Ok(())
    }
}
