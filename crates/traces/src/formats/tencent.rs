//! Tencent block storage traces (Zhang et al., "OSCA: An Online-Model Based Cache Allocation Scheme
//! in Cloud Block Storage Systems", ATC '20).
//!
//! Source: README.txt of the distribution (SNIA IOTTA trace 27917): CSV with the fields
//! `Timestamp,Offset,Size,IOType,VolumeID`. Timestamp is Unix time in whole seconds; Offset and
//! Size are in sectors of 512 bytes; IOType is 0 for a read and 1 for a write.

use super::{
    Text,
    csv::{fields, integer_of, kind_of, range_of, time_ns_of},
};
use crate::{
    error::Problem,
    number::SECOND_NS,
    request::{Output, Request},
};

const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Default)]
pub(crate) struct Tencent;

impl Text for Tencent {
    const HEADER: &str = "Timestamp,Offset,Size,IOType,VolumeID";

    fn line(&mut self, line: &[u8], out: &mut Output) -> Result<(), Problem> {
        let [time, offset, size, kind, volume] = fields(line)?;
        integer_of("VolumeID", volume)?;
        let request = Request {
            time_ns: time_ns_of("Timestamp", time, SECOND_NS, 1970)?,
            kind: kind_of("IOType", kind, "0", "1")?,
            disk: out.disks.number(volume)?,
            ..range_of(("Offset", offset), ("Size", size), SECTOR_BYTES)?
        };
        out.add(request);
        Ok(())
    }
}
