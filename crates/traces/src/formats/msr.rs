//! MSR Cambridge block traces (Narayanan, Donnelly, Rowstron: "Write Off-Loading", FAST '08).
//!
//! Source: README.txt of the distribution (SNIA IOTTA trace 388): CSV with the fields
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. Timestamp and ResponseTime are in
//! "Windows filetime" units of 100 ns, the timestamp since 1601-01-01. Type is `Read` or `Write`;
//! Offset and Size are in bytes.

use super::{
    Text,
    csv::{fields, integer_of, kind_of, range_of, time_ns_of},
};
use crate::{
    error::Problem,
    request::{Output, Request},
};

const FILETIME_NS: u64 = 100;

#[derive(Debug, Default)]
pub(crate) struct Msr {
    name: Vec<u8>,
}

impl Text for Msr {
    const HEADER: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

    fn line(&mut self, line: &[u8], out: &mut Output) -> Result<(), Problem> {
        let [time, host, disk, kind, offset, size, response] = fields(line)?;
        integer_of("DiskNumber", disk)?;
        integer_of("ResponseTime", response)?;
        // Same naming as the files: usr_0.csv.gz.
        self.name.clear();
        self.name.extend_from_slice(host);
        self.name.push(b'_');
        self.name.extend_from_slice(disk);
        let request = Request {
            time_ns: time_ns_of("Timestamp", time, FILETIME_NS, 1601)?,
            kind: kind_of("Type", kind, "Read", "Write")?,
            disk: out.disks.number(&self.name)?,
            ..range_of(("Offset", offset), ("Size", size), 1)?
        };
        out.add(request);
        Ok(())
    }
}
