//! btrfs: only the superblock is overwritten in place, so whenever it is written, everything
//! written before it is complete. Blocks identify the tree that they belong to. Their causes are
//! found when the next superblock arrives, by comparing each block with the tree of the previous
//! superblock. That tree is still on the disk, because its blocks are not reused before the commit.

mod blocks;
mod causes;
mod commit;
mod devices;
mod items;
mod logged;
mod metadata;
mod moved;
mod owner;
mod paths;
mod pending;
mod pieces;
mod recovery;

pub use recovery::{Logged, Recovery};

use crate::bytes::is_zero;
use crate::{Cause, Causes, Disks, Family, FormattedDisks, Now, Row, Rows, Structure, Write};
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
        self.follower.volume.devices.owns(disk)
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
        let devices = &self.follower.volume.devices;
        let cause = match write.formatting || devices.devid(write.disk).is_none() {
            true => Cause::Format,
            false => Cause::Unknown,
        };
        let now = &mut Now { write, disks, rows };
        let mut rest = *write;
        while rest.length > 0 {
            let content = rest.content;
            let (piece, bytes) = first_piece(&self.follower.volume, &rest);
            let part = rest.take_front(bytes.clamp(1, rest.length));
            let row = part.row(Structure::Unknown, Causes::one(cause));
            self.piece(piece, row, content, now)?;
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
        now: &mut Now<'_, '_>,
    ) -> Result<()> {
        let part = content.get(..row.length as usize);
        match piece {
            Piece::Superblock { copy } => {
                self.superblock(&mut row, copy, content, now)?;
            }
            Piece::Block { header, copy } => {
                if let Some(bytes) = part {
                    self.follower.volume.put(bytes);
                }
                commit::describe(&mut row, &header);
                row.copy = copy;
                let number = now.rows.push(row);
                self.follower.block_written(header.bytenr, number);
                return Ok(());
            }
            Piece::PartOfBlock { bytenr, copy } => {
                self.follower.volume.forget(bytenr);
                row.copy = copy;
                let number = now.rows.push(row);
                self.follower.block_written(bytenr, number);
                return Ok(());
            }
            Piece::Data { copy } => {
                row.copy = copy;
                row.structure = Structure::FileData;
                if !self.formatting {
                    row.causes = Causes::one(Cause::Data);
                }
                self.follower.pending.push(row, now.rows);
                return Ok(());
            }
            Piece::Unmapped if row.causes.has(Cause::Format) && part.is_some_and(is_zero) => {
                row.structure = Structure::Unused;
            }
            Piece::Unmapped => {
                self.follower.pending.push(row, now.rows);
                return Ok(());
            }
            Piece::Parity => {
                row.structure = Structure::Parity;
                if !self.formatting {
                    row.causes = Causes::one(Cause::Accounting);
                }
            }
            Piece::Zeros => row.structure = Structure::Unused,
            Piece::Unknown => {}
        }
        now.rows.push(row);
        Ok(())
    }

    /// Follows a written superblock, and explains its row.
    fn superblock(
        &mut self,
        row: &mut Row,
        copy: u8,
        content: &[u8],
        now: &mut Now<'_, '_>,
    ) -> Result<()> {
        row.structure = match copy {
            0 => Structure::Superblock,
            _ => Structure::SuperblockBackup,
        };
        row.copy = copy;
        if self.formatting {
            return Ok(());
        }
        let Some(superblock) = Super::parse(content) else {
            self.follower.volume.devices.leave(row.disk);
            row.causes = Causes::one(Cause::Accounting);
            return Ok(());
        };
        row.transaction = Some(superblock.generation);
        let volume = &mut self.follower.volume;
        if superblock.fsid == volume.fsid {
            volume.devices.is(row.disk, superblock.devid);
            volume.follow_replacement(now.disks, &superblock)?;
        }
        self.follower.superblock(&superblock, now.disks, now.rows)?;
        row.causes = self.follower.superblock_causes;
        Ok(())
    }
}
