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
    csv::{fields, integer_of, is_header, kind_of, range_of, shown},
};
use crate::{
    disks::Disks,
    error::Problem,
    number::seconds_ns,
    request::{Batch, Request},
};

pub(super) const HEADER: &str = "Timestamp,Response,IOType,LUN,Offset,Size";

#[derive(Debug, Default)]
pub(crate) struct Systor17;

impl Text for Systor17 {
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
        let [time, response, kind, lun, offset, size] = fields(line)?;
        let seconds = |name: &str, text: &[u8]| {
            seconds_ns(text).ok_or_else(|| format!("{name} is {}, not seconds", shown(text)))
        };
        let time_ns = seconds("Timestamp", time)?;
        if !response.is_empty() {
            seconds("Response", response)?;
        }
        integer_of("LUN", lun)?;
        let place = range_of(("Offset", offset), ("Size", size), 1)?;
        if kind.is_empty() {
            return Ok(());
        }
        batch.add(Request {
            time_ns,
            kind: kind_of("IOType", kind, "R", "W")?,
            disk: disks.number(lun)?,
            ..place
        });
        Ok(())
    }
}
