//! Totals of requests.

use crate::{Event, Op};
use serde::{Deserialize, Serialize};

/// Number and bytes of the requests of one disk, by operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // The names say it: OPERATION_requests and OPERATION_bytes.
pub struct Totals {
    pub read_requests: u64,
    pub read_bytes: u64,
    pub write_requests: u64,
    pub write_bytes: u64,
    pub zero_requests: u64,
    pub zero_bytes: u64,
    pub discard_requests: u64,
    pub discard_bytes: u64,
    pub punch_requests: u64,
    pub punch_bytes: u64,
    pub flushes: u64,
}

impl Totals {
    /// Counts one event; marks are ignored.
    pub fn add(&mut self, event: &Event) {
        let (requests, bytes) = match event.op {
            Op::Read => (&mut self.read_requests, &mut self.read_bytes),
            Op::Write => (&mut self.write_requests, &mut self.write_bytes),
            Op::WriteZeroes => (&mut self.zero_requests, &mut self.zero_bytes),
            Op::Discard => (&mut self.discard_requests, &mut self.discard_bytes),
            Op::Punch => (&mut self.punch_requests, &mut self.punch_bytes),
            Op::Flush => {
                self.flushes += 1;
                return;
            }
            Op::Mark => return,
        };
        *requests += 1;
        *bytes += event.length;
    }
}
