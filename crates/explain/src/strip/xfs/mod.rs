//! What is private in xfs (v5). Formats: Linux `fs/xfs/libxfs/xfs_format.h`, `xfs_da_format.h`,
//! `xfs_log_format.h`.
//!
//! The log is read before anything is written: what a record holds is known only when all its items
//! are complete.

mod block;
mod forks;
mod item;
mod log;
mod record;

use super::{Family, Part, Secret, formatted};
use crate::{Structure, families::xfs::Geometry};
use fscost_recording::{Event, Op, Recording, Result};
use log::Log;

/// The file system on `disk`.
pub fn detect(recording: &Recording, disk: u16) -> Result<Option<Box<dyn Family>>> {
    let mut sector = [0; 512];
    formatted(recording, disk, 0, &mut sector)?;
    let Some(geometry) = Geometry::parse(&sector) else {
        return Ok(None);
    };
    let mut log_disk = disk;
    if geometry.external_log {
        for other in (0..recording.header().disks.len() as u16).filter(|&other| other != disk) {
            formatted(recording, other, 0, &mut sector)?;
            if sector.starts_with(&record::MAGIC) && sector[304..320] == geometry.log_uuid {
                log_disk = other;
            }
        }
    }
    let log = Log::new(geometry.log_offset, geometry.log_bytes, geometry.log_uuid);
    Ok(Some(Box::new(Xfs {
        disk,
        log_disk,
        geometry,
        log,
    })))
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
            self.log
                .write(number, event.offset, content, &self.geometry, secret);
        }
        if event.disk == self.disk {
            self.log.home(event.offset, content);
        }
    }

    fn end_of_reading(&mut self, secret: &mut Secret) {
        self.log.finish(&self.geometry, secret);
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
        if part.structure == Quota && bytes.starts_with(b"DQ") || part.structure == Realtime {
            return; // numbers
        }
        for block in bytes.chunks_mut(unit as usize) {
            if !block::strip(block, geometry, secret) {
                secret.sectors(block);
            }
        }
    }
}

/// A big-endian number of 16 bits.
fn be16(bytes: &[u8], at: usize) -> u16 {
    crate::bytes::le16(bytes, at).swap_bytes()
}

/// A big-endian number of 32 bits.
fn be32(bytes: &[u8], at: usize) -> u32 {
    crate::bytes::le32(bytes, at).swap_bytes()
}

/// A big-endian number of 64 bits.
fn be64(bytes: &[u8], at: usize) -> u64 {
    crate::bytes::le64(bytes, at).swap_bytes()
}
