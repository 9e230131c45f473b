//! One disk as a ublk device.

use super::{
    command::Control,
    descriptors::Descriptors,
    protocol::{self as p, IoCmd, ParamBasic, ParamDiscard, Params},
    ring::Ring,
};
use crate::{backend::Request, errno};
use fscost_recording::{DiskInfo, MAX_REQUEST_BYTES, Op};
use rustix::{fd::AsFd as _, io::Errno};
use std::{fs::File, os::unix::fs::FileExt as _};

/// Requests in flight per device: as many as FUSE has in the background.
pub const DEPTH: u16 = 128;
const SECTOR_BYTES: u64 = 512;

/// An existing device, which the kernel removes only on command.
pub struct Device {
    /// Number N of `/dev/ublkbN`.
    pub number: u32,
    /// Index of the disk.
    pub disk: u16,
    /// Commands that the driver holds.
    pub fetching: u16,
    character: File,
    descriptors: Descriptors,
}

impl Device {
    /// Create the device of a disk. It receives requests once it is started.
    pub fn add(control: &mut Control, disk: u16, info: &DiskInfo) -> Result<Self, String> {
        let number = control.add(DEPTH, MAX_REQUEST_BYTES as u32)?;
        let made = Self::set_up(control, number, disk, info);
        if made.is_err() {
            let _ = control.command(p::DEL_DEV, number);
        }
        made
    }

    fn set_up(
        control: &mut Control,
        number: u32,
        disk: u16,
        info: &DiskInfo,
    ) -> Result<Self, String> {
        control.set_params(number, &params(info))?;
        let path = format!("/dev/ublkc{number}");
        let character = File::options().read(true).write(true).open(&path);
        let character = character.map_err(|error| format!("opening {path}: {error}"))?;
        let descriptors = Descriptors::map(character.as_fd(), DEPTH)
            .map_err(|errno| format!("mapping the requests of a ublk device: {errno}"))?;
        Ok(Self {
            number,
            disk,
            fetching: 0,
            character,
            descriptors,
        })
    }

    /// Ask the driver for the first request of each tag.
    pub fn fetch_all(&mut self, ring: &mut Ring) {
        for tag in 0..DEPTH {
            self.send(ring, p::FETCH_REQ, tag, 0);
        }
    }

    /// Answer a request, and ask for the next one with its tag.
    pub fn commit(&mut self, ring: &mut Ring, tag: u16, result: i32) {
        self.send(ring, p::COMMIT_AND_FETCH_REQ, tag, result);
    }

    fn send(&mut self, ring: &mut Ring, code: rustix::ioctl::Opcode, tag: u16, result: i32) {
        let command = IoCmd {
            tag,
            result,
            ..IoCmd::default()
        };
        self.fetching += 1;
        ring.request(self.character.as_fd(), code, self.disk, command);
    }

    /// Returns request `tag`, or an error for an unsupported operation.
    pub fn asked(&self, tag: u16, submit_ns: u64) -> Result<Request, Errno> {
        let asked = self.descriptors.of(tag).ok_or(Errno::INVAL)?;
        let op = match asked.op_flags & p::OP_MASK {
            p::OP_READ => Op::Read,
            p::OP_WRITE => Op::Write,
            p::OP_FLUSH => Op::Flush,
            p::OP_DISCARD => Op::Discard,
            p::OP_WRITE_ZEROES => Op::WriteZeroes,
            _ => return Err(Errno::OPNOTSUPP),
        };
        let is_flush = op == Op::Flush;
        let bytes = |sectors: u64| if is_flush { 0 } else { sectors * SECTOR_BYTES };
        let length = bytes(u64::from(asked.nr_sectors));
        if matches!(op, Op::Read | Op::Write) && length > MAX_REQUEST_BYTES as u64 {
            return Err(Errno::INVAL);
        }
        Ok(Request {
            submit_ns,
            disk: self.disk,
            op,
            offset: bytes(asked.start_sector),
            length,
            fua: asked.op_flags & p::IO_FUA != 0 && op != Op::Read,
        })
    }

    /// Copy the content of a write.
    pub fn read_content(&self, tag: u16, into: &mut [u8]) -> Result<(), Errno> {
        let read = self.character.read_exact_at(into, p::content_offset(tag));
        read.map_err(errno::of_io)
    }

    /// Pass on the data that was read.
    pub fn write_content(&self, tag: u16, content: &[u8]) -> Result<(), Errno> {
        let written = self.character.write_all_at(content, p::content_offset(tag));
        written.map_err(errno::of_io)
    }
}

fn params(disk: &DiskInfo) -> Params {
    let logical_shift = disk.logical_block_bytes.ilog2() as u8;
    let physical_shift = disk.physical_block_bytes.ilog2() as u8;
    let all = (u64::from(u32::MAX) / SECTOR_BYTES) as u32;
    // Rounded down to whole logical blocks.
    let all = all - all % (disk.logical_block_bytes / SECTOR_BYTES as u32);
    Params {
        // Excludes the padding at the end.
        len: (std::mem::offset_of!(Params, discard) + size_of::<ParamDiscard>()) as u32,
        types: p::PARAM_BASIC | p::PARAM_DISCARD,
        basic: ParamBasic {
            attrs: p::ATTR_VOLATILE_CACHE | p::ATTR_FUA,
            logical_bs_shift: logical_shift,
            physical_bs_shift: physical_shift,
            // The driver cannot express "none"; mkfs ignores values no larger than a sector.
            io_opt_shift: logical_shift,
            io_min_shift: physical_shift,
            max_sectors: (MAX_REQUEST_BYTES as u64 / SECTOR_BYTES) as u32,
            dev_sectors: disk.size_bytes / SECTOR_BYTES,
            ..ParamBasic::default()
        },
        discard: ParamDiscard {
            discard_granularity: disk.physical_block_bytes,
            max_discard_sectors: all,
            max_write_zeroes_sectors: all,
            max_discard_segments: 1,
            ..ParamDiscard::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_s_sectors_are_told() {
        let disk = DiskInfo {
            name: "main".into(),
            size_bytes: 1 << 30,
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
        };
        let params = params(&disk);
        assert_eq!(params.len, 60);
        assert_eq!(params.basic.dev_sectors, 2 << 20);
        assert_eq!(params.basic.logical_bs_shift, 9);
        assert_eq!(params.basic.physical_bs_shift, 12);
        assert_eq!(params.discard.discard_granularity, 4096);
    }
}
