//! fio's iolog, versions 2 and 3 (`write_iolog`, `read_iolog`).
//!
//! Source: fio(1), "TRACE FILE FORMAT", and fio's `iolog.c`. Offsets and lengths are in bytes.
//! Version 2 has no times except `wait`, in microseconds since the previous `wait`; the time here
//! is their sum. Version 3 begins each line with a time since the start of the job. fio(1) does not
//! name its unit; `log_io_u` writes microseconds (`utime_since_now`).
//!
//! The requests are those that fio issued to the file. They are identical to those of the device
//! only with `direct=1` on a block device.

use super::{
    Text,
    csv::{integer_of, shown},
};
use crate::{
    device_events::range,
    error::Problem,
    request::{Kind, Output, Request},
};

pub(super) const VERSION_2: &[u8] = b"fio version 2 iolog";
pub(super) const VERSION_3: &[u8] = b"fio version 3 iolog";
const MICROSECOND_NS: u64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

#[derive(Debug, Default)]
pub(crate) struct Fio {
    version: Option<Version>,
    /// Sum of all waits (version 2).
    waited_us: u64,
}

impl Text for Fio {
    fn line(&mut self, line: &[u8], out: &mut Output) -> Result<(), Problem> {
        let line = line.trim_ascii();
        let Some(version) = self.version else {
            self.version = Some(version(line)?);
            return Ok(());
        };
        let mut words = line
            .split(|&byte| byte == b' ' || byte == b'\t')
            .filter(|word| !word.is_empty());
        let Some(first) = words.next() else {
            return Ok(());
        };
        let (time_us, file) = match version {
            Version::Two => (self.waited_us, first),
            Version::Three => (
                integer_of("the timestamp", first)?,
                words.next().ok_or("the file is missing")?,
            ),
        };
        let action = words.next().ok_or("the action is missing")?;
        let time_ns = time_us.checked_mul(MICROSECOND_NS);
        let time_ns = time_ns.ok_or("the time exceeds 64 bits of nanoseconds")?;
        if matches!(action, b"add" | b"open" | b"close") {
            out.see(time_ns);
            return Ok(());
        }
        let missing = "the offset or the length is missing";
        let offset = integer_of("the offset", words.next().ok_or(missing)?)?;
        let length = integer_of("the length", words.next().ok_or(missing)?)?;
        let kind = match action {
            b"read" => Kind::Read,
            b"write" => Kind::Write,
            b"trim" => Kind::Discard,
            b"sync" | b"datasync" => Kind::Flush,
            // `sync_file_range` starts writeback, but does not flush the device
            // (sync_file_range(2)).
            b"sync_file_range" => return Ok(()),
            b"wait" if version == Version::Two => {
                let sum = self.waited_us.checked_add(offset);
                self.waited_us = sum.ok_or("the sum of all waits exceeds 64 bits")?;
                return Ok(());
            }
            _ => return Err(format!("unknown action {}", shown(action)).into()),
        };
        let disk = out.disks.number(file)?;
        out.add(if kind == Kind::Flush {
            Request::flush(time_ns, disk)
        } else {
            Request {
                time_ns,
                disk,
                kind,
                ..range(offset, 1, length)?
            }
        });
        Ok(())
    }
}

fn version(line: &[u8]) -> Result<Version, Problem> {
    match line {
        VERSION_2 => Ok(Version::Two),
        VERSION_3 => Ok(Version::Three),
        _ => Err("an iolog begins with 'fio version 2 iolog' or 'fio version 3 iolog'".into()),
    }
}
