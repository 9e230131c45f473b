//! A device with a constant latency for each kind of request, independent of load.

use crate::{Error, Op, Request, fields::Fields};

/// Latency of each kind of request. All zero: `ram`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Constant {
    read_ns: u64,
    write_ns: u64,
    fua_ns: u64,
    discard_ns: u64,
    flush_ns: u64,
}

impl Constant {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Constant, Error> {
        Ok(Constant {
            read_ns: fields.optional_us("read_us", "microseconds that a read takes")?,
            write_ns: fields.optional_us("write_us", "microseconds that a write takes")?,
            fua_ns: fields.optional_us("fua_us", "microseconds that a write with FUA takes")?,
            discard_ns: fields.optional_us("discard_us", "microseconds that a discard takes")?,
            flush_ns: fields.optional_us("flush_us", "microseconds that a flush takes")?,
        })
    }

    pub(crate) fn latency_ns(&self, request: &Request) -> u64 {
        match request.op {
            Op::Read => self.read_ns,
            Op::Write | Op::WriteZeroes if request.fua => self.fua_ns,
            Op::Write | Op::WriteZeroes => self.write_ns,
            Op::Discard => self.discard_ns,
            Op::Flush => self.flush_ns,
        }
    }
}
