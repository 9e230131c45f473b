//! A device with a constant latency for each kind of request, independent of load.

use crate::{Completion, Error, Op, Request, completions::Completions, fields::Fields};

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

    fn latency_ns(&self, request: &Request) -> u64 {
        match request.op {
            Op::Read => self.read_ns,
            Op::Write | Op::WriteZeroes if request.fua => self.fua_ns,
            Op::Write | Op::WriteZeroes => self.write_ns,
            Op::Discard => self.discard_ns,
            Op::Flush => self.flush_ns,
        }
    }
}

/// A running device that serves any number of requests in parallel.
#[derive(Debug, Clone)]
pub(crate) struct ConstantDevice {
    latency: Constant,
    completions: Completions,
}

impl ConstantDevice {
    pub(crate) fn new(latency: Constant) -> ConstantDevice {
        ConstantDevice {
            latency,
            completions: Completions::default(),
        }
    }

    pub(crate) fn submit(&mut self, now_ns: u64, request: &Request) {
        let at_ns = now_ns.saturating_add(self.latency.latency_ns(request));
        self.completions.add(request.id, at_ns);
    }

    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.completions.next_ns()
    }

    pub(crate) fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        done.extend(std::iter::from_fn(|| self.completions.pop(now_ns)));
    }
}
