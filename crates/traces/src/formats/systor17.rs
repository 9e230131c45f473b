//! SYSTOR '17 traces (Lee et al., "Understanding storage traffic characteristics on enterprise
//! virtual desktop infrastructure").
//!
//! Source: README.txt of the distribution (SNIA IOTTA trace 4964): CSV with the fields
//! `Timestamp,Response,IOType,LUN,Offset,Size`. Timestamp is Unix time in seconds with nine
//! decimals, exact to the microsecond; Response is in seconds; Offset and Size are in bytes. IOType
//! is `R`, `W`, or blank if there was no response message. A record with a blank IOType does not
//! tell whether data were written, and does not count.

use super::{
    Text,
    csv::{fields, integer_of, kind_of, range_of, seconds_of},
};
use crate::{
    error::Problem,
    request::{Output, Request},
};

#[derive(Debug, Default)]
pub(crate) struct Systor17;

impl Text for Systor17 {
    const HEADER: &str = "Timestamp,Response,IOType,LUN,Offset,Size";

    fn line(&mut self, line: &[u8], out: &mut Output) -> Result<(), Problem> {
        let [time, response, kind, lun, offset, size] = fields(line)?;
        let time_ns = seconds_of("Timestamp", time)?;
        if !response.is_empty() {
            seconds_of("Response", response)?;
        }
        integer_of("LUN", lun)?;
        let place = range_of(("Offset", offset), ("Size", size), 1)?;
        if kind.is_empty() {
            return Ok(());
        }
        let request = Request {
            time_ns,
            kind: kind_of("IOType", kind, "R", "W")?,
            disk: out.disks.number(lun)?,
            ..place
        };
        out.add(request);
        Ok(())
    }
}
