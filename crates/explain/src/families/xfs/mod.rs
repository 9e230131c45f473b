//! xfs (v5).
//!
//! Metadata blocks in their home place (outside the log) identify themselves by a magic number,
//! their address and the UUID. Blocks that no metadata claims are data, and belong to the inode
//! whose extents contain them. The log is also read, because names, owners and causes reach the
//! disk there first: inodes and directories are written home much later. A write to a place where
//! the log has named no metadata is data, and its content is not read.

mod forks;
mod home;
mod log;
mod metadata;
mod owners;
mod version;

use crate::track::follower::log_disk;
use crate::{Cause, Causes, Disks, Family, FormattedDisks, Rows, Structure, Write};
use fscost_ondisk::xfs::{block, directory, inode, log_item, log_record, superblock};
use fscost_recording::{Image, Recording, Result};
use log::{Area, Log};
pub use log::{Checkpoint, Recovery};
use metadata::Metadata;
use superblock::Geometry;

/// Returns the family that follows `disk` if the disk holds an xfs file system. `image` is the disk
/// as mkfs left it.
pub fn detect(
    formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let Some(geometry) = Geometry::parse(&first_sector(image)?) else {
        return Ok(None);
    };
    let area = log_area(formatted, disk, &geometry)?;
    Ok(Some(Box::new(Xfs {
        disk,
        log: Log::new(area, geometry.log_uuid),
        metadata: Metadata::new(geometry),
        formatting: true,
    })))
}

/// Returns the state of the log that a mount of the file system on `disk` would find, if there is
/// one.
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

/// Returns the area of the log. It is empty if the log is on a disk that was not recorded.
fn log_area(formatted: &FormattedDisks<'_>, disk: u16, geometry: &Geometry) -> Result<Area> {
    // mkfs writes a record at the start of an external log.
    let is_log = |image: &mut Image<'_>| {
        let sector = first_sector(image)?;
        let is_ours = log_record::uuid(&sector) == Some(geometry.log_uuid);
        Ok(is_ours && log_record::is_header(&sector))
    };
    let log_disk = match geometry.external_log {
        true => log_disk(formatted, disk, is_log)?,
        false => Some(disk),
    };
    Ok(Area {
        disk: log_disk.unwrap_or(disk),
        offset: geometry.log_offset,
        bytes: log_disk.map_or(0, |_| geometry.log_bytes),
    })
}

/// Returns the first sector of a disk, or zeros if the disk is smaller.
fn first_sector(image: &mut Image<'_>) -> Result<[u8; 512]> {
    let mut sector = [0; 512];
    if image.size_bytes() >= sector.len() as u64 {
        image.read_at(0, &mut sector)?;
    }
    Ok(sector)
}

struct Xfs {
    disk: u16,
    log: Log,
    metadata: Metadata,
    /// True while mkfs runs.
    formatting: bool,
}

impl Family for Xfs {
    fn name(&self) -> &'static str {
        "xfs"
    }

    fn owns(&self, disk: u16) -> bool {
        disk == self.disk || disk == self.log.area.disk
    }

    fn reads_all(&self) -> bool {
        false
    }

    /// Returns whether the content must be read. Without the log, metadata is known by its content
    /// alone.
    fn reads(&self, disk: u16, offset: u64, length: u64) -> bool {
        let (before_log, is_in_log) = self.log.area.part(disk, offset, length);
        self.formatting
            || self.log.area.bytes == 0
            || is_in_log
            || before_log < length
            || self.metadata.may_be_at(offset, length)
    }

    fn write(&mut self, write: &Write<'_>, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        if self.formatting && !write.formatting {
            self.metadata.end_formatting(rows);
        }
        self.formatting = write.formatting;
        // Until a better explanation of the log is known.
        let causes = Causes::one(match write.formatting {
            true => Cause::Format,
            false => Cause::Log,
        });
        let mut done = 0;
        while done < write.length {
            let offset = write.offset + done;
            let (length, in_log) = self.log.area.part(write.disk, offset, write.length - done);
            let part = write.part(done, length);
            if in_log {
                let row = part.row(Structure::Log, causes);
                self.log.write(row, part.content, &mut self.metadata, rows);
                home::again(&mut self.metadata, disks, rows)?;
            } else if write.disk == self.disk {
                home::explain(&part, &mut self.metadata, rows);
            } else {
                rows.push(part.row(Structure::Unused, causes));
            }
            done += length.max(1);
        }
        Ok(())
    }

    fn finish(&mut self, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        if self.formatting {
            self.metadata.end_formatting(rows);
        }
        self.log.finish(&mut self.metadata, rows);
        home::again(&mut self.metadata, disks, rows)
    }
}

/// Returns the geometry of a test file system: two groups of 1000 blocks of 4 KiB, inodes of 512
/// bytes.
#[cfg(test)]
fn geometry() -> Geometry {
    let mut sector = vec![0; 512];
    sector[..4].copy_from_slice(b"XFSB");
    sector[8..16].copy_from_slice(&2000_u64.to_be_bytes());
    sector[84..88].copy_from_slice(&1000_u32.to_be_bytes());
    sector[100..102].copy_from_slice(&5_u16.to_be_bytes());
    sector[120..125].copy_from_slice(&[12, 9, 9, 3, 10]);
    Geometry::parse(&sector).unwrap()
}
