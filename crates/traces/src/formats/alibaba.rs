//! Alibaba block traces (Li et al., "An In-Depth Analysis of Cloud Block Storage Workloads in
//! Large-Scale Production", IISWC '20).
//!
//! Source: README.md of github.com/alibaba/block-traces: `io_traces.csv` has the columns
//! `device_id,opcode,offset,length,timestamp` (uint32, `R` or `W`, bytes, bytes, microseconds). The
//! published times are Unix time: the trace of January 2020 begins at 1577808000000046.

use super::{
    Text,
    csv::{fields, integer_of, kind_of, range_of, time_ns_of},
};
use crate::{
    error::Problem,
    request::{Output, Request},
};

const MICROSECOND_NS: u64 = 1000;

#[derive(Debug, Default)]
pub(crate) struct Alibaba;

impl Text for Alibaba {
    const HEADER: &str = "device_id,opcode,offset,length,timestamp";

    fn line(&mut self, line: &[u8], out: &mut Output) -> Result<(), Problem> {
        let [device, opcode, offset, length, time] = fields(line)?;
        integer_of("device_id", device)?;
        let request = Request {
            time_ns: time_ns_of("timestamp", time, MICROSECOND_NS, 1970)?,
            kind: kind_of("opcode", opcode, "R", "W")?,
            disk: out.disks.number(device)?,
            ..range_of(("offset", offset), ("length", length), 1)?
        };
        out.add(request);
        Ok(())
    }
}
