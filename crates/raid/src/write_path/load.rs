//! Totals by member, and how busy each was.

use super::{MemberRequest, Operation};

/// What one member received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Reads that the array's user asked for.
    pub read_requests: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Reads made to compute parity.
    pub preread_requests: u64,
    /// Their bytes.
    pub preread_bytes: u64,
    /// Writes.
    pub write_requests: u64,
    /// Their bytes.
    pub write_bytes: u64,
    /// The part of `write_bytes` that is parity, or a copy after the first.
    pub redundant_write_bytes: u64,
    /// Discards.
    pub discard_requests: u64,
    /// Their bytes.
    pub discard_bytes: u64,
    /// Flushes.
    pub flushes: u64,
}

impl Load {
    /// Counts a request.
    pub fn add(&mut self, request: &MemberRequest) {
        let (requests, bytes) = match request.operation {
            Operation::Read => (&mut self.read_requests, &mut self.read_bytes),
            Operation::Preread => (&mut self.preread_requests, &mut self.preread_bytes),
            Operation::Write => (&mut self.write_requests, &mut self.write_bytes),
            Operation::Discard => (&mut self.discard_requests, &mut self.discard_bytes),
            Operation::Flush => {
                self.flushes += 1;
                return;
            }
        };
        *requests += 1;
        *bytes += request.bytes;
        if request.operation == Operation::Write {
            self.redundant_write_bytes += request.redundant_bytes;
        }
    }
}

/// Busy time of each member, and the time that passes, in a closed loop: the members work on a batch side by side, and
/// the next batch begins when the slowest has finished. The program itself takes no time, so a member's utilisation is
/// an upper bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    busy_s: Vec<f64>,
    elapsed_s: f64,
}

impl Timeline {
    /// Of so many members.
    #[must_use]
    pub fn new(members: usize) -> Timeline {
        Timeline {
            busy_s: vec![0.0; members],
            elapsed_s: 0.0,
        }
    }

    /// Adds a batch: how long each member is busy with its part. Members beyond those of the timeline are ignored.
    pub fn add_batch(&mut self, busy_s: &[f64]) {
        for (total, busy) in self.busy_s.iter_mut().zip(busy_s) {
            *total += busy;
        }
        self.elapsed_s += busy_s.iter().copied().fold(0.0, f64::max);
    }

    /// Seconds from the first batch's begin to the last one's end.
    #[must_use]
    pub fn elapsed_s(&self) -> f64 {
        self.elapsed_s
    }

    /// Seconds in which each member was busy.
    #[must_use]
    pub fn busy_s(&self) -> &[f64] {
        &self.busy_s
    }

    /// Busy share of a member, as `iostat -x` prints it (`%util` ÷ 100); 0 where no time passed.
    #[must_use]
    pub fn utilisation(&self, member: usize) -> f64 {
        let busy_s = self.busy_s.get(member).copied().unwrap_or(0.0);
        if self.elapsed_s > 0.0 {
            busy_s / self.elapsed_s
        } else {
            0.0
        }
    }
}
