//! What a front end passes requests to: disks, which [`Recorder`](crate::recorder::Recorder)
//! records and [`Memory`](crate::memory::Memory) only keeps.

use crate::timing::{Ticket, Timing};
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

/// The content of a request.
pub enum Content<'c> {
    /// There is none, or that of a write is already in the backend's space.
    InPlace,
    /// The content to write, or the buffer to read into.
    Buffer(&'c mut [u8]),
}

/// Carry out a request in `parts`, each of at most the largest possible request's length. If the
/// disk has a model, the reply must wait for it, with the ticket ([`Timing::reply`]).
///
/// Whoever calls this must not let another thread's request between the submission to the model and
/// the backend: the model sees requests in the order of the recording.
pub fn carry_out(
    backend: &mut dyn Backend,
    timing: Option<&Timing>,
    parts: &mut [Request],
    content: Content<'_>,
) -> (Result<()>, Option<Ticket>) {
    let ticket = timing.and_then(|timing| timing.submit(backend.requests(), parts));
    let mut rest = match content {
        Content::InPlace => None,
        Content::Buffer(buffer) => Some(buffer),
    };
    let done = parts.iter().try_for_each(|part| {
        let piece = match rest.take() {
            Some(buffer) if matches!(part.op, Op::Read | Op::Write) => {
                let (piece, after) = buffer.split_at_mut(buffer.len().min(part.length as usize));
                rest = Some(after);
                piece
            }
            _ => &mut [],
        };
        if part.op == Op::Read {
            return backend.read(*part, piece);
        }
        backend.space()[..piece.len()].copy_from_slice(piece);
        backend.request(*part)
    });
    (done, ticket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    fn disk() -> DiskInfo {
        DiskInfo {
            name: "main".into(),
            size_bytes: 1 << 20,
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
        }
    }

    fn parts(op: Op, lengths: &[u64]) -> Vec<Request> {
        let mut offset = 4096;
        let part = |&length: &u64| {
            offset += length;
            Request {
                submit_ns: 0,
                disk: 0,
                op,
                offset: offset - length,
                length,
                fua: false,
            }
        };
        lengths.iter().map(part).collect()
    }

    #[test]
    fn the_parts_of_a_request_share_its_content() {
        let mut disks = Memory::new(vec![disk()]);
        let mut content: Vec<u8> = (0..3072_u32).map(|at| (at / 512) as u8).collect();
        let mut run = |op, lengths: &[u64], content: Content<'_>| {
            let (done, ticket) = carry_out(&mut disks, None, &mut parts(op, lengths), content);
            assert!(done.is_ok() && ticket.is_none());
        };
        run(Op::Write, &[1024, 1536, 512], Content::Buffer(&mut content));
        run(Op::Flush, &[0], Content::InPlace);
        let mut read = [9; 3072];
        run(Op::Read, &[512, 2560], Content::Buffer(&mut read));
        assert_eq!(read[..], content);
        run(Op::Discard, &[1024], Content::InPlace);
        run(Op::Read, &[3072], Content::Buffer(&mut read));
        assert_eq!(read[..1024], [0; 1024]);
        assert_eq!(read[1024..], content[1024..]);
    }
}
