//! btrfs: nothing is written in place but the superblock, so each superblock is an instant at which
//! everything before it is complete. Blocks say
//! themselves which tree they belong to; why they were written is found when the next superblock
//! arrives, by comparing each with the tree that
//! the last one led to (which is still on the disk: its blocks are not used again before the
//! commit).

mod block;
mod bytes;
mod chunk;
mod claim;
mod commit;
mod compare;
mod devices;
mod items;
mod key;
mod owner;
mod paths;
mod pending;
mod pieces;
mod recovery;
mod superblock;
mod volume;

pub(crate) use key::kind;
pub use recovery::{Logged, Recovery};

use crate::{Cause, Causes, Disks, Family, FormattedDisks, Row, Rows, Structure, Write};
use commit::Follower;
use devices::{Devices, superblock_of};
use fscost_recording::{Image, Result};
use pieces::{Piece, first_piece};
use superblock::Super;
use volume::Volume;

/// The family that follows `disk`, if it holds one of these file systems. `image` is the disk as
/// mkfs left it.
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
    /// Until the first write after mkfs.
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

    /// Where the chunk map says that data or parity lies, the place tells all.
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
                row.structure = if copy == 0 {
                    Structure::Superblock
                } else {
                    Structure::SuperblockBackup
                };
                row.copy = copy;
                match Super::parse(content) {
                    _ if self.formatting => {}
                    Some(superblock) => {
                        row.transaction = Some(superblock.generation);
                        let volume = &mut self.follower.volume;
                        if superblock.fsid == volume.fsid {
                            volume.is_device(row.disk, superblock.devid);
                            volume.follow_replacement(disks, &superblock)?;
                        }
                        self.follower.superblock(&superblock, disks, rows)?;
                        row.causes = self.follower.superblock_causes();
                    }
                    None => {
                        self.follower.volume.has_left(row.disk);
                        row.causes = Causes::one(Cause::Accounting);
                    }
                }
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
                        .is_some_and(bytes::is_zero) =>
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
}
