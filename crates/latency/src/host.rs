//! The host's side of a device: how many requests it hands over and when, and which have completed.

use crate::{Completion, Op, Request, completions::Completions};
use std::collections::VecDeque;

/// Requests that wait for the device to have room, in the order of their submission, and those that
/// it works on.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    waiting: VecDeque<Request>,
    in_flight: u32,
    depth: u32,
    /// A flush shares the device with other commands (NVMe). If not, it runs alone: ATA has no
    /// queued FLUSH CACHE, and Linux drains the queue around it (`ata_std_qc_defer` in
    /// drivers/ata/libata-core.c).
    is_flush_queued: bool,
    is_flushing: bool,
    completions: Completions,
    /// Completions that the caller has not fetched.
    finished: Vec<Completion>,
}

impl Host {
    pub(crate) fn new(depth: u32, is_flush_queued: bool) -> Host {
        Host {
            waiting: VecDeque::new(),
            in_flight: 0,
            depth,
            is_flush_queued,
            is_flushing: false,
            completions: Completions::default(),
            finished: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, request: Request) {
        self.waiting.push_back(request);
    }

    /// The next request, if the device can take it now.
    pub(crate) fn admit(&mut self) -> Option<Request> {
        let runs_alone = self.waiting.front()?.op == Op::Flush && !self.is_flush_queued;
        let room = if runs_alone { 1 } else { self.depth };
        if self.is_flushing || self.in_flight >= room {
            return None;
        }
        self.is_flushing = runs_alone;
        self.in_flight += 1;
        self.waiting.pop_front()
    }

    /// An admitted request will complete at an instant.
    pub(crate) fn complete(&mut self, id: u64, at_ns: u64) {
        self.completions.add(id, at_ns);
    }

    /// The next completion of an admitted request.
    pub(crate) fn completion_ns(&self) -> Option<u64> {
        self.completions.next_ns()
    }

    /// Lets one request that completes by `now_ns` leave the device; false if there is none.
    pub(crate) fn release(&mut self, now_ns: u64) -> bool {
        let Some(completion) = self.completions.pop(now_ns) else {
            return false;
        };
        self.finished.push(completion);
        self.in_flight -= 1;
        self.is_flushing &= self.in_flight > 0;
        true
    }

    /// When the device has to be run next; `inner_ns` is when something happens in it beside
    /// completions.
    pub(crate) fn next_ns(&self, inner_ns: Option<u64>) -> Option<u64> {
        if let Some(finished) = self.finished.first() {
            return Some(finished.at_ns);
        }
        let next_ns = [self.completions.next_ns(), inner_ns];
        (self.in_flight > 0)
            .then(|| next_ns.into_iter().flatten().min())
            .flatten()
    }

    /// Hands the caller its completions.
    pub(crate) fn fetch(&mut self, done: &mut Vec<Completion>) {
        done.append(&mut self.finished);
    }
}
