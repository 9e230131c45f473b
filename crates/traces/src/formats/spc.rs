//! Traces in the format of the Storage Performance Council, such as Financial1 and WebSearch1 of
//! the UMass Trace Repository.
//!
//! Source: "SPC Trace File Format Specification" 1.0.1: fields `ASU,LBA,Size,Opcode,Timestamp`,
//! separated by commas. LBA is in blocks of 512 bytes in the published traces, Size in bytes;
//! Opcode is `R` or `W` in either case; Timestamp is in seconds since the beginning of the trace,
//! with a fraction.

use super::{
    Text,
    csv::{fields, integer_of, range_of, seconds_of, shown},
};
use crate::{
    device_events::range,
    error::Problem,
    request::{Kind, Output, Request},
};

const BLOCK_BYTES: u64 = 512;

#[derive(Debug, Default)]
pub(crate) struct Spc;

impl Text for Spc {
    fn line(&mut self, line: &[u8], out: &mut Output) -> Result<(), Problem> {
        let [asu, lba, size, opcode, time] = fields(line)?;
        integer_of("ASU", asu)?;
        let length = range_of(("Size", b"0"), ("Size", size), 1)?.length_bytes;
        let kind = match opcode {
            b"R" | b"r" => Kind::Read,
            b"W" | b"w" => Kind::Write,
            _ => return Err(format!("Opcode is {}, not R or W", shown(opcode)).into()),
        };
        let request = Request {
            time_ns: seconds_of("Timestamp", time)?,
            kind,
            disk: out.disks.number(asu)?,
            ..range(integer_of("LBA", lba)?, BLOCK_BYTES, length)?
        };
        out.add(request);
        Ok(())
    }
}
