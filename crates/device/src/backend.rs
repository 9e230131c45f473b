//! What a front end passes requests to: disks, which [`Recorder`](crate::recorder::Recorder)
//! records and [`Memory`](crate::memory::Memory) only keeps.

use fscost_recording::{DiskInfo, Mark, Op, Result, Summary, Totals};
use rustix::time::{ClockId, clock_gettime};
use std::{collections::BTreeMap, ops::Range};

/// The disks of a cell, with one clock.
pub trait Backend: Send {
    /// The disks' clock.
    fn clock(&self) -> Clock;

    /// Names and sizes of the disks.
    fn disks(&self) -> &[DiskInfo];

    /// Number of the next request.
    fn requests(&self) -> u64;

    /// Space for the content of the next write, for the largest possible request. Filling it
    /// before [`request`](Self::request) saves a copy.
    fn space(&mut self) -> &mut [u8];

    /// Execute a write (its content is at the beginning of [`space`](Self::space)), flush, discard
    /// or zeroing.
    fn request(&mut self, request: Request) -> Result<()>;

    /// Execute a read.
    fn read(&mut self, request: Request, into: &mut [u8]) -> Result<()>;

    /// Note a read that is carried out elsewhere.
    fn log_read(&mut self, request: Request) -> Result<()>;

    /// Returns the ranges of a read that were never written, relative to its beginning.
    fn unwritten(&self, request: &Request) -> Vec<Range<usize>>;

    /// Set a mark; returns its time.
    fn mark(&mut self, mark: &Mark) -> Result<u64>;

    /// Totals so far, by disk name.
    fn totals(&self) -> BTreeMap<String, Totals>;

    /// Called when no request has arrived for a while.
    fn idle(&mut self) -> Result<()>;

    /// Refuse every further request.
    fn fail(&mut self, what: &str);

    /// Fails if every request is refused; the error is the reason.
    fn check(&self) -> Result<()>;

    /// Finish; no request follows.
    fn finish(self: Box<Self>) -> Result<(BTreeMap<String, Totals>, Summary)>;
}

/// Clock that counts nanoseconds since the recording began.
#[derive(Clone, Copy)]
pub struct Clock {
    begin_monotonic_ns: u64,
}

impl Clock {
    /// Start a clock.
    pub fn start() -> Self {
        Self {
            begin_monotonic_ns: monotonic_ns(),
        }
    }

    /// Current time.
    pub fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.begin_monotonic_ns)
    }

    /// Convert a time of this clock to CLOCK_MONOTONIC.
    pub fn monotonic_ns(&self, at_ns: u64) -> u64 {
        self.begin_monotonic_ns.saturating_add(at_ns)
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A request without its content.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Time at which the request was received.
    pub submit_ns: u64,
    /// Index of the disk.
    pub disk: u16,
    /// The operation.
    pub op: Op,
    /// Byte offset.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Forced unit access.
    pub fua: bool,
}
