//! ASCII traces of DiskSim, and of MQSim, which has the same fields with times in nanoseconds.
//!
//! Source: DiskSim 4.0 reference manual, "Input" (format `ascii`): arrival time in milliseconds
//! with a fraction, device number, block number, request size in blocks of 512 bytes, flags, of
//! which bit 0 marks a read. MQSim's traces/README.md: arrival time, device, first sector, sectors,
//! and 0 for a write or 1 for a read.

use super::{
    Text,
    csv::{integer_of, kind_of, range_of, shown},
    words::words,
};
use crate::{
    error::Problem,
    number::milliseconds_ns,
    request::{Output, Request},
};

const BLOCK_BYTES: u64 = 512;

/// A trace whose times are milliseconds with a fraction.
#[derive(Debug, Default)]
pub(crate) struct Disksim;

/// A trace whose times are whole nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Mqsim;

impl Text for Disksim {
    fn line(&mut self, line: &[u8], out: &mut Output) -> Result<(), Problem> {
        add(line, out, |time| {
            milliseconds_ns(time)
                .ok_or_else(|| format!("the time is {}, not milliseconds", shown(time)).into())
        })
    }
}

impl Text for Mqsim {
    fn line(&mut self, line: &[u8], out: &mut Output) -> Result<(), Problem> {
        add(line, out, |time| integer_of("the time", time))
    }
}

fn add(
    line: &[u8],
    out: &mut Output,
    time_ns: impl Fn(&[u8]) -> Result<u64, Problem>,
) -> Result<(), Problem> {
    let [time, device, sector, sectors, kind] = words(line)?;
    integer_of("the device", device)?;
    let request = Request {
        time_ns: time_ns(time)?,
        kind: kind_of("the type", kind, "1", "0")?,
        disk: out.disks.number(device)?,
        ..range_of(
            ("the sector", sector),
            ("the number of sectors", sectors),
            BLOCK_BYTES,
        )?
    };
    out.add(request);
    Ok(())
}
