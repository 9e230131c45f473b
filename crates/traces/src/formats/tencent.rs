//! Tencent block storage traces (Zhang et al., "OSCA: An Online-Model Based Cache Allocation Scheme
//! in Cloud Block Storage Systems", ATC '20).
//!
//! Source: README.txt of the distribution (SNIA IOTTA trace 27917): CSV with the fields
//! `Timestamp,Offset,Size,IOType,VolumeID`. Timestamp is Unix time in whole seconds; Offset and
//! Size are in sectors of 512 bytes; IOType is 0 for a read and 1 for a write.

use super::{
    Text,
    csv::{fields, integer_of, is_header, kind_of, range_of, time_ns_of},
};
use crate::{
    disks::Disks,
    error::Problem,
    number::SECOND_NS,
    request::{Batch, Request},
};

pub(super) const HEADER: &str = "Timestamp,Offset,Size,IOType,VolumeID";
const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Default)]
pub(crate) struct Tencent;

impl Text for Tencent {
    fn line(
        &mut self,
        line: &[u8],
        number: u64,
        disks: &mut Disks,
        batch: &mut Batch,
    ) -> Result<(), Problem> {
        if is_header(line, number, HEADER) {
            return Ok(());
        }
        let [time, offset, size, kind, volume] = fields(line)?;
        integer_of("VolumeID", volume)?;
        batch.add(Request {
            time_ns: time_ns_of("Timestamp", time, SECOND_NS, 1970)?,
            kind: kind_of("IOType", kind, "0", "1")?,
            disk: disks.number(volume)?,
            ..range_of(("Offset", offset), ("Size", size), SECTOR_BYTES)?
        });
        Ok(())
    }
}
