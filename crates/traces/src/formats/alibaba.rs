//! Alibaba block traces (Li et al., "An In-Depth Analysis of Cloud Block Storage Workloads in
//! Large-Scale Production",
//! IISWC '20).
//!
//! Source: README.md of github.com/alibaba/block-traces: `io_traces.csv` has the columns
//! `device_id,opcode,offset,length,timestamp` (uint32, `R` or `W`, bytes, bytes, microseconds). The
//! published times are
//! Unix time: the trace of January 2020 begins at 1577808000000046.

use super::{
    Text,
    csv::{fields, integer_of, is_header, shown},
};
use crate::{
    device_events::{Requests, range},
    disks::Disks,
    error::Problem,
    request::{Kind, Request},
};

pub(super) const HEADER: &str = "device_id,opcode,offset,length,timestamp";
const MICROSECOND_NS: u64 = 1000;

#[derive(Debug, Default)]
pub(crate) struct Alibaba;

impl Text for Alibaba {
    fn line(&mut self, line: &[u8], number: u64, disks: &mut Disks) -> Result<Requests, Problem> {
        if is_header(line, number, HEADER) {
            return Ok(Requests::default());
        }
        let [device, opcode, offset, length, time] = fields(line)?;
        let kind = match opcode {
            b"R" => Kind::Read,
            b"W" => Kind::Write,
            _ => return Err(format!("opcode is {}, not R or W", shown(opcode)).into()),
        };
        integer_of("device_id", device)?;
        let time_ns = integer_of("timestamp", time)?.checked_mul(MICROSECOND_NS);
        let place = range(
            integer_of("offset", offset)?,
            1,
            integer_of("length", length)?,
        )?;
        Ok(Requests::one(Request {
            time_ns: time_ns.ok_or("timestamp is later than the year 2554")?,
            disk: disks.number(device)?,
            kind,
            ..place
        }))
    }
}
