//! Private data in xfs (v5).
//!
//! The log is read before anything is written: the content of a record is known only when all its
//! items are complete.

mod block;
mod forks;
mod item;
mod log;

use crate::{Family, Part, Secret};
use fscost_explain::{FormattedDisks, Structure};
use fscost_ondisk::xfs::block::begins_quota;
use fscost_ondisk::xfs::log_record;
use fscost_ondisk::xfs::superblock::Geometry;
use fscost_recording::{Event, Op, Result};
use log::Log;

/// Finds the xfs file systems on a recording's disks.
pub fn detect(formatted: &FormattedDisks<'_>) -> Result<Vec<Box<dyn Family>>> {
    let mut found: Vec<Box<dyn Family>> = Vec::new();
    let mut sector = [0; log_record::SECTOR];
    for disk in 0..formatted.count() {
        crate::read(formatted, disk, 0, &mut sector)?;
        let Some(geometry) = Geometry::parse(&sector) else {
            continue;
        };
        let mut log_disk = disk;
        let others = (0..formatted.count()).filter(|&other| other != disk);
        for other in others.filter(|_| geometry.external_log) {
            crate::read(formatted, other, 0, &mut sector)?;
            let uuid = log_record::uuid(&sector).filter(|_| log_record::is_header(&sector));
            if uuid == Some(geometry.log_uuid) {
                log_disk = other;
            }
        }
        found.push(Box::new(Xfs {
            disk,
            log_disk,
            log: Log::new(&geometry),
            geometry,
        }));
    }
    Ok(found)
}

struct Xfs {
    disk: u16,
    log_disk: u16,
    geometry: Geometry,
    log: Log,
}

impl Family for Xfs {
    fn owns(&self, disk: u16) -> bool {
        disk == self.disk || disk == self.log_disk
    }

    fn reads_ahead(&self) -> bool {
        true
    }

    fn read_ahead(&mut self, number: u64, event: &Event, content: &[u8], secret: &mut Secret) {
        if event.op != Op::Write {
            return;
        }
        if event.disk == self.log_disk {
            self.log.write(number, event.offset, content, secret);
        }
        if event.disk == self.disk {
            self.log.home(event.offset, content);
        }
    }

    fn end_of_reading(&mut self, secret: &mut Secret) {
        self.log.finish(secret);
    }

    fn strip(&mut self, part: &Part, bytes: &mut [u8], secret: &mut Secret) {
        use Structure::*;
        let geometry = &self.geometry;
        let unit = match part.structure_of_row {
            Log => return self.log.strip(part, bytes, secret),
            FileData | Unknown | Unused => return secret.sectors(bytes),
            Superblock | SuperblockBackup | Agf | Agi | Agfl => geometry.sector_bytes,
            InodeChunk => geometry.inode_bytes,
            Directory | DirectoryIndex => geometry.directory_bytes,
            _ => geometry.block_bytes,
        };
        if part.structure == Quota && begins_quota(bytes) || part.structure == Realtime {
            return; // numbers
        }
        for block in bytes.chunks_mut(unit as usize) {
            if !block::strip(block, geometry, secret) {
                secret.sectors(block);
            }
        }
    }
}
