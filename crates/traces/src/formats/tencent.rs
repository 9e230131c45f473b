//! Tencent block storage traces (Zhang et al., "OSCA: An Online-Model Based Cache Allocation Scheme
//! in Cloud Block
//! Storage Systems", ATC '20).
//!
//! Source: README.txt of the distribution (SNIA IOTTA trace 27917): CSV with the fields
//! `Timestamp,Offset,Size,IOType,VolumeID`. Timestamp is Unix time in whole seconds; Offset and
//! Size are in sectors of
//! 512 bytes; IOType is 0 for a read and 1 for a write.

use super::{
    Text,
    csv::{fields, integer_of, is_header, shown},
};
use crate::{
    device_events::{Requests, range},
    disks::Disks,
    error::Problem,
    number::SECOND_NS,
    request::{Kind, Request},
};

pub(super) const HEADER: &str = "Timestamp,Offset,Size,IOType,VolumeID";
const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Default)]
pub(crate) struct Tencent;

impl Text for Tencent {
    fn line(&mut self, line: &[u8], number: u64, disks: &mut Disks) -> Result<Requests, Problem> {
        if is_header(line, number, HEADER) {
            return Ok(Requests::default());
        }
        let [time, offset, size, kind, volume] = fields(line)?;
        let kind = match kind {
            b"0" => Kind::Read,
            b"1" => Kind::Write,
            _ => return Err(format!("IOType is {}, not 0 or 1", shown(kind)).into()),
        };
        integer_of("VolumeID", volume)?;
        let time_ns = integer_of("Timestamp", time)?.checked_mul(SECOND_NS);
        let length = integer_of("Size", size)?.checked_mul(SECTOR_BYTES);
        let length = length.ok_or("the request ends beyond 2^64 bytes")?;
        let place = range(integer_of("Offset", offset)?, SECTOR_BYTES, length)?;
        Ok(Requests::one(Request {
            time_ns: time_ns.ok_or("Timestamp is later than the year 2554")?,
            disk: disks.number(volume)?,
            kind,
            ..place
        }))
    }
}
