//! MSR Cambridge block traces (Narayanan, Donnelly, Rowstron: "Write Off-Loading", FAST '08).
//!
//! Source: README.txt of the distribution (SNIA IOTTA trace 388): CSV with the fields
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. Timestamp and ResponseTime are in
//! "Windows filetime" units of 100 ns, the timestamp since 1601-01-01. Type is `Read` or `Write`;
//! Offset and Size are in bytes.

use super::{
    Text,
    csv::{fields, integer_of, is_header, kind_of, range_of, time_ns_of},
};
use crate::{
    disks::Disks,
    error::Problem,
    request::{Batch, Request},
};

pub(super) const HEADER: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
const FILETIME_NS: u64 = 100;

#[derive(Debug, Default)]
pub(crate) struct Msr {
    name: Vec<u8>,
}

impl Text for Msr {
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
        let [time, host, disk, kind, offset, size, response] = fields(line)?;
        integer_of("DiskNumber", disk)?;
        integer_of("ResponseTime", response)?;
        // Same naming as the files: usr_0.csv.gz.
        self.name.clear();
        self.name.extend_from_slice(host);
        self.name.push(b'_');
        self.name.extend_from_slice(disk);
        batch.add(Request {
            time_ns: time_ns_of("Timestamp", time, FILETIME_NS, 1601)?,
            kind: kind_of("Type", kind, "Read", "Write")?,
            disk: disks.number(&self.name)?,
            ..range_of(("Offset", offset), ("Size", size), 1)?
        });
        Ok(())
    }
}
