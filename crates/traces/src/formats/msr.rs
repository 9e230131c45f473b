//! MSR Cambridge block traces (Narayanan, Donnelly, Rowstron: "Write Off-Loading", FAST '08).
//!
//! Source: README.txt of the distribution (SNIA IOTTA trace 388): CSV with the fields
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. Timestamp and ResponseTime are in
//! "Windows filetime"
//! units of 100 ns, the timestamp since 1601-01-01; Type is `Read` or `Write`; Offset and Size are
//! in bytes.

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

pub(super) const HEADER: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
const FILETIME_NS: u64 = 100;

#[derive(Debug, Default)]
pub(crate) struct Msr {
    name: Vec<u8>,
}

impl Text for Msr {
    fn line(&mut self, line: &[u8], number: u64, disks: &mut Disks) -> Result<Requests, Problem> {
        if is_header(line, number, HEADER) {
            return Ok(Requests::default());
        }
        let [time, host, disk, kind, offset, size, response] = fields(line)?;
        let kind = match kind {
            b"Read" => Kind::Read,
            b"Write" => Kind::Write,
            _ => return Err(format!("Type is {}, not Read or Write", shown(kind)).into()),
        };
        let time_ns = integer_of("Timestamp", time)?.checked_mul(FILETIME_NS);
        integer_of("DiskNumber", disk)?;
        integer_of("ResponseTime", response)?;
        // The files are named like this: usr_0.csv.gz.
        self.name.clear();
        self.name.extend_from_slice(host);
        self.name.push(b'_');
        self.name.extend_from_slice(disk);
        let place = range(integer_of("Offset", offset)?, 1, integer_of("Size", size)?)?;
        Ok(Requests::one(Request {
            time_ns: time_ns.ok_or("Timestamp is later than the year 2185")?,
            disk: disks.number(&self.name)?,
            kind,
            ..place
        }))
    }
}
