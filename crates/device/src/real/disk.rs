//! One real block device, held open for the lifetime of the server.

use crate::backend::Request;
use fscost_recording::Op;
use rustix::{
    fs::{FallocateFlags, OFlags},
    io::Errno,
    ioctl::{Getter, Opcode, Setter, ioctl, opcode},
};
use serde::Serialize;
use std::{
    fs::File,
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

/// `_IOR(0x12, 128, __u64)` (include/uapi/linux/fs.h).
const BLKGETDISKSEQ: Opcode = opcode::read::<u64>(0x12, 128);
/// `_IOR(0x12, 114, size_t)`.
const BLKGETSIZE64: Opcode = opcode::read::<usize>(0x12, 114);
/// `_IO(0x12, 119)`; its argument is a range: offset and length.
const BLKDISCARD: Opcode = opcode::none(0x12, 119);
const SECTOR_BYTES: u64 = 512;
/// Upper limit of a line of counters.
const STAT_BYTES: usize = 512;

/// `NAME=PATH,MAJOR,MINOR,DISKSEQ`: the device of a disk, and the numbers that tell it from another
/// device under that path.
#[derive(Debug, Clone)]
pub struct Named {
    pub disk: String,
    path: PathBuf,
    identity: (u32, u32, u64),
}

impl Named {
    /// Parse an argument.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = "NAME=PATH,MAJOR,MINOR,DISKSEQ";
        let (disk, rest) = text.split_once('=').ok_or(form)?;
        // The path itself may contain commas.
        let mut fields = rest.rsplitn(4, ',');
        let mut number = || fields.next().and_then(|text| text.parse::<u64>().ok());
        let (diskseq, minor, major) = (number(), number(), number());
        let part = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
        match (part(major), part(minor), diskseq, fields.next()) {
            (Some(major), Some(minor), Some(diskseq), Some(path)) => Ok(Self {
                disk: disk.to_owned(),
                path: path.into(),
                identity: (major, minor, diskseq),
            }),
            _ => Err(form.into()),
        }
    }
}

/// The kernel's counters of a device (Documentation/block/stat.rst). Write-zeroes count as writes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
struct Counters {
    read_bytes: u64,
    write_bytes: u64,
    discard_bytes: u64,
    flush_requests: u64,
}

/// Entry of a real disk in the manifest: its location, and the kernel's counters since the
/// recording began.
#[derive(Debug, Serialize)]
pub struct Account {
    device: String,
    accepts_discards: bool,
    kernel: Counters,
}

/// An open device that no other process has claimed.
pub struct RealDisk {
    device: File,
    /// Path, as given.
    pub path: String,
    counters: File,
    begin: Counters,
    accepts_discards: AtomicBool,
}

impl RealDisk {
    /// Open the device exclusively. Refuse a different disk under that path, and one that is too
    /// small.
    pub fn open(named: &Named, size_bytes: u64) -> Result<Self, String> {
        let path = named.path.display().to_string();
        let device = File::options()
            .read(true)
            .write(true)
            .custom_flags((OFlags::DIRECT | OFlags::EXCL).bits() as i32)
            .open(&named.path)
            .map_err(|error| format!("{path}: cannot be opened exclusively: {error}"))?;
        let failed = |errno: Errno| format!("{path}: {errno}");
        let stat = rustix::fs::fstat(&device).map_err(failed)?;
        // SAFETY: BLKGETDISKSEQ writes a u64.
        let diskseq = unsafe { ioctl(&device, Getter::<BLKGETDISKSEQ, u64>::new()) };
        let (major, minor) = (
            rustix::fs::major(stat.st_rdev),
            rustix::fs::minor(stat.st_rdev),
        );
        let found = (major, minor, diskseq.map_err(failed)?);
        if found != named.identity {
            return Err(format!(
                "{path} is not the disk that was confirmed: its major, minor and sequence number \
                 are {found:?} and were {:?}; it was not touched",
                named.identity
            ));
        }
        // SAFETY: BLKGETSIZE64 writes a u64, whatever its number says.
        let size = unsafe { ioctl(&device, Getter::<BLKGETSIZE64, u64>::new()) };
        let size = size.map_err(failed)?;
        if size < size_bytes {
            return Err(format!(
                "{path} has {size} bytes, fewer than the {size_bytes} of disk {}",
                named.disk
            ));
        }
        let counters = File::open(format!("/sys/dev/block/{major}:{minor}/stat"));
        let counters = counters
            .map_err(|error| format!("the kernel's counters of {path} cannot be read: {error}"))?;
        let begin = read_counters(&counters).map_err(|error| format!("{path}: {error}"))?;
        Ok(Self {
            device,
            path,
            counters,
            begin,
            accepts_discards: AtomicBool::new(true),
        })
    }

    /// Report the device for the manifest.
    pub fn account(&self) -> io::Result<Account> {
        let now = read_counters(&self.counters)?;
        let begin = &self.begin;
        Ok(Account {
            device: self.path.clone(),
            accepts_discards: self.accepts_discards.load(Ordering::Relaxed),
            kernel: Counters {
                read_bytes: now.read_bytes.wrapping_sub(begin.read_bytes),
                write_bytes: now.write_bytes.wrapping_sub(begin.write_bytes),
                discard_bytes: now.discard_bytes.wrapping_sub(begin.discard_bytes),
                flush_requests: now.flush_requests.wrapping_sub(begin.flush_requests),
            },
        })
    }

    /// Carry out a request, and wait until the device has completed it. `content` holds the data to
    /// write, or receives the data read. Its address is a multiple of the page size, as direct I/O
    /// requires.
    pub fn carry_out(&self, request: &Request, content: &mut [u8]) -> io::Result<()> {
        match request.op {
            Op::Read => self.device.read_exact_at(content, request.offset),
            Op::Write => {
                self.device.write_all_at(content, request.offset)?;
                if request.fua {
                    rustix::fs::fdatasync(&self.device)?;
                }
                Ok(())
            }
            Op::Flush => Ok(rustix::fs::fdatasync(&self.device)?),
            Op::WriteZeroes => Ok(rustix::fs::fallocate(
                &self.device,
                FallocateFlags::ZERO_RANGE,
                request.offset,
                request.length,
            )?),
            Op::Discard | Op::Punch => self.discard(request.offset, request.length),
            Op::Mark => Ok(()),
        }
    }

    /// Discard a range, unless the device does not support discards.
    fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        if !self.accepts_discards.load(Ordering::Relaxed) {
            return Ok(());
        }
        // SAFETY: BLKDISCARD reads two u64, which live until the call returns.
        match unsafe { ioctl(&self.device, Setter::<BLKDISCARD, _>::new([offset, length])) } {
            Err(Errno::OPNOTSUPP) => self.accepts_discards.store(false, Ordering::Relaxed),
            done => done?,
        }
        Ok(())
    }
}

fn read_counters(file: &File) -> io::Result<Counters> {
    let mut text = [0; STAT_BYTES];
    let count = file.read_at(&mut text, 0)?;
    let text = String::from_utf8_lossy(&text[..count]);
    let fields: Vec<u64> = text
        .split_ascii_whitespace()
        .map_while(|f| f.parse().ok())
        .collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or_default();
    Ok(Counters {
        read_bytes: field(2) * SECTOR_BYTES,
        write_bytes: field(6) * SECTOR_BYTES,
        discard_bytes: field(13) * SECTOR_BYTES,
        flush_requests: field(15),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_named_with_its_numbers() {
        let named = Named::parse("main=/dev/a,b=c,7,3,4294967296").unwrap();
        assert_eq!(named.disk, "main");
        assert_eq!(named.path, PathBuf::from("/dev/a,b=c"));
        assert_eq!(named.identity, (7, 3, 1 << 32));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "main",
            "main=/dev/a",
            "main=/dev/a,1,2",
            "main=/dev/a,-1,2,3",
            "m=7,3,1",
        ] {
            assert!(Named::parse(text).is_err(), "{text}");
        }
    }
}
