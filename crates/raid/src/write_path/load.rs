//! Totals and utilisation of each member.

use super::{MemberRequest, Operation};

/// Requests that one member received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Number of reads that the array's user requested.
    pub read_requests: u64,
    /// Bytes of these reads.
    pub read_bytes: u64,
    /// Number of reads needed to compute parity.
    pub preread_requests: u64,
    /// Bytes of these reads.
    pub preread_bytes: u64,
    /// Number of writes.
    pub write_requests: u64,
    /// Bytes of these writes.
    pub write_bytes: u64,
    /// Part of `write_bytes` that is parity, or a copy after the first.
    pub redundant_write_bytes: u64,
    /// Number of discards.
    pub discard_requests: u64,
    /// Bytes of these discards.
    pub discard_bytes: u64,
    /// Number of flushes.
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

/// A queue for each member, in a closed loop: the program submits each request as early as possible
/// and takes no time itself. It waits for reads and flushes, but never for writes. A member serves
/// its requests one at a time, in parallel with the other members. A member's utilisation is
/// therefore an upper bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Queues {
    now_s: f64,
    free_s: Vec<f64>,
    busy_s: Vec<f64>,
}

impl Queues {
    /// Creates idle queues for `members` members.
    #[must_use]
    pub fn new(members: usize) -> Queues {
        Queues {
            now_s: 0.0,
            free_s: vec![0.0; members],
            busy_s: vec![0.0; members],
        }
    }

    /// Adds a request that keeps a member busy for `service_s` seconds. Returns the second at which
    /// the member has served it. Unknown members are ignored.
    pub fn submit(&mut self, member: usize, service_s: f64) -> f64 {
        let (Some(free), Some(busy)) = (self.free_s.get_mut(member), self.busy_s.get_mut(member))
        else {
            return self.now_s;
        };
        *free = free.max(self.now_s) + service_s;
        *busy += service_s;
        *free
    }

    /// Makes the program wait until a request has been served, at the second that
    /// [`submit`](Queues::submit) returned.
    pub fn wait_until(&mut self, served_s: f64) {
        self.now_s = self.now_s.max(served_s);
    }

    /// Makes the program wait until all members are idle.
    pub fn wait_for_all(&mut self) {
        self.now_s = self.free_s.iter().copied().fold(self.now_s, f64::max);
    }

    /// Returns the seconds that have passed for the program.
    #[must_use]
    pub fn now_s(&self) -> f64 {
        self.now_s
    }

    /// Returns the seconds for which each member was busy. Divided by the elapsed seconds, this is
    /// `%util` of `iostat -x`.
    #[must_use]
    pub fn busy_s(&self) -> &[f64] {
        &self.busy_s
    }
}
