//! xfs (v5).
//!
//! Home blocks name themselves: magic number, own address, UUID. What no metadata claims is data,
//! and belongs to the inode whose extents have it.
//! The log is read, too, since it is there that names, owners and causes first reach the disk:
//! inodes and directories go home much later.

mod block;
mod bytes;
mod directory;
mod forks;
mod home;
mod inode;
mod log;
mod metadata;
mod owners;
mod superblock;

use crate::{Cause, Causes, Disks, Family, FormattedDisks, Row, Rows, Structure, Write};
use fscost_recording::{Image, Recording, Result};
use log::{Area, Log};
pub use log::{Checkpoint, Recovery};
use metadata::Metadata;
pub(crate) use superblock::Geometry;

/// The family that follows `disk`, if it holds one of these file systems. `image` is the disk as
/// mkfs left it.
pub fn detect(
    formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let mut sector = [0; 512];
    if image.size_bytes() < sector.len() as u64 {
        return Ok(None);
    }
    image.read_at(0, &mut sector)?;
    let Some(geometry) = Geometry::parse(&sector) else {
        return Ok(None);
    };
    let area = log_area(formatted, disk, &geometry)?;
    Ok(Some(Box::new(Xfs {
        disk,
        area,
        log: Log::new(area, geometry.log_uuid),
        metadata: Metadata::new(geometry),
        formatting: true,
    })))
}

/// What a mount would find in the log of the file system on `disk`, if there is one.
pub fn recovery(
    recording: &Recording,
    disk: u16,
    disks: &mut Disks<'_>,
) -> Result<Option<Recovery>> {
    let mut sector = [0; 512];
    disks.read(disk, 0, &mut sector)?;
    let Some(geometry) = Geometry::parse(&sector) else {
        return Ok(None);
    };
    let area = log_area(&FormattedDisks::new(recording)?, disk, &geometry)?;
    Recovery::find(disks, area, &geometry.log_uuid)
}

/// Where the log is; empty where it is on a disk that was not recorded.
fn log_area(formatted: &FormattedDisks<'_>, disk: u16, geometry: &Geometry) -> Result<Area> {
    let log_disk = match geometry.external_log {
        true => external_log(formatted, disk, geometry)?,
        false => Some(disk),
    };
    Ok(Area {
        disk: log_disk.unwrap_or(disk),
        offset: geometry.log_offset,
        bytes: if log_disk.is_some() {
            geometry.log_bytes
        } else {
            0
        },
    })
}

/// The other disk that begins with a log record of this file system: mkfs writes one.
fn external_log(
    formatted: &FormattedDisks<'_>,
    disk: u16,
    geometry: &Geometry,
) -> Result<Option<u16>> {
    for other in formatted.others(disk) {
        let (other, mut image) = other?;
        let mut sector = [0; 512];
        if image.size_bytes() < sector.len() as u64 {
            continue;
        }
        image.read_at(0, &mut sector)?;
        if sector.starts_with(&[0xfe, 0xed, 0xba, 0xbe]) && sector[304..320] == geometry.log_uuid {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

struct Xfs {
    disk: u16,
    area: Area,
    log: Log,
    metadata: Metadata,
    /// Whether mkfs is at work.
    formatting: bool,
}

impl Family for Xfs {
    fn name(&self) -> &'static str {
        "xfs"
    }

    fn owns(&self, disk: u16) -> bool {
        disk == self.disk || disk == self.area.disk
    }

    fn write(&mut self, write: &Write<'_>, _disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        if self.formatting && !write.formatting {
            self.metadata.end_formatting(rows);
        }
        self.formatting = write.formatting;
        let mut done = 0;
        while done < write.length {
            let offset = write.offset + done;
            let (length, in_log) = self.area.part(write.disk, offset, write.length - done);
            let part = write.part(done, length);
            if in_log {
                self.log
                    .write(log_row(&part), &part, &mut self.metadata, rows);
            } else if write.disk == self.disk {
                home::explain(&part, &mut self.metadata, rows);
            } else {
                rows.push(Row {
                    structure: Structure::Unused,
                    ..log_row(&part)
                });
            }
            done += length.max(1);
        }
        Ok(())
    }

    fn finish(&mut self, _disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        if self.formatting {
            self.metadata.end_formatting(rows);
        }
        self.log.finish(&mut self.metadata, rows);
        Ok(())
    }
}

/// What is written to the log, until it is known better.
fn log_row(write: &Write<'_>) -> Row {
    let cause = if write.formatting {
        Cause::Format
    } else {
        Cause::Log
    };
    write.row(Structure::Log, Causes::one(cause))
}
