//! Traces of Florida International University (Koller, Rangaswami: "I/O Deduplication", FAST '10),
//! SNIA IOTTA 411.
//!
//! Source: README of the distribution: fields separated by blanks, `timestamp pid process lba size
//! operation major minor hash`. The timestamp is in nanoseconds; lba and size are in blocks of 512
//! bytes; the operation is `R` or `W`. A request of several pages has a line for each.

use super::{
    Text,
    csv::{integer_of, kind_of, range_of},
    words::words,
};
use crate::{
    error::Problem,
    request::{Output, Request},
};

const BLOCK_BYTES: u64 = 512;

#[derive(Debug, Default)]
pub(crate) struct Fiu {
    name: Vec<u8>,
}

impl Text for Fiu {
    fn line(&mut self, line: &[u8], out: &mut Output) -> Result<(), Problem> {
        let [time, pid, _, lba, size, operation, major, minor, _] = words(line)?;
        integer_of("pid", pid)?;
        integer_of("major", major)?;
        integer_of("minor", minor)?;
        // Same naming as blkparse: 8,0.
        self.name.clear();
        self.name.extend_from_slice(major);
        self.name.push(b',');
        self.name.extend_from_slice(minor);
        let request = Request {
            time_ns: integer_of("timestamp", time)?,
            kind: kind_of("operation", operation, "R", "W")?,
            disk: out.disks.number(&self.name)?,
            ..range_of(("lba", lba), ("size", size), BLOCK_BYTES)?
        };
        out.add(request);
        Ok(())
    }
}
