//! The host's side of a device: waiting requests, requests in progress (number and completion
//! times), and completions that the caller has not yet fetched.

use crate::{
    Completion, Op, Request,
    completions::{Completions, earlier},
};
use std::collections::VecDeque;

/// Requests that wait for room in the device, in order of submission, and requests in progress.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    waiting: VecDeque<Request>,
    in_flight: u32,
    depth: u32,
    /// True if a flush shares the device with other commands (NVMe). Otherwise it runs alone: ATA
    /// has no queued FLUSH CACHE, and Linux drains the queue around it (`ata_std_qc_defer` in
    /// drivers/ata/libata-core.c).
    is_flush_queued: bool,
    is_flushing: bool,
    completions: Completions,
    /// Completions that the caller has not yet fetched.
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

    /// Accepts a request from the host. Returns the request if the device can start it now; queues
    /// it otherwise.
    pub(crate) fn offer(&mut self, request: Request) -> Option<Request> {
        if self.waiting.is_empty() && self.takes(&request) {
            return Some(request);
        }
        self.waiting.push_back(request);
        None
    }

    /// Returns the next waiting request if the device can start it now.
    pub(crate) fn admit(&mut self) -> Option<Request> {
        let request = *self.waiting.front()?;
        if !self.takes(&request) {
            return None;
        }
        self.waiting.pop_front()
    }

    /// Admits a request if there is room. True if it was admitted.
    fn takes(&mut self, request: &Request) -> bool {
        let runs_alone = request.op == Op::Flush && !self.is_flush_queued;
        let room = if runs_alone { 1 } else { self.depth };
        if self.is_flushing || self.in_flight >= room {
            return false;
        }
        self.is_flushing = runs_alone;
        self.in_flight += 1;
        true
    }

    /// Schedules the completion of an admitted request.
    pub(crate) fn complete(&mut self, id: u64, at_ns: u64) {
        self.completions.add(id, at_ns);
    }

    /// Returns the instant of the next completion of an admitted request.
    pub(crate) fn completion_ns(&self) -> Option<u64> {
        self.completions.next_ns()
    }

    /// Removes one request that completes by `now_ns` from the device. False if there is none.
    pub(crate) fn release(&mut self, now_ns: u64) -> bool {
        let Some(completion) = self.completions.pop(now_ns) else {
            return false;
        };
        self.finished.push(completion);
        self.in_flight -= 1;
        self.is_flushing &= self.in_flight > 0;
        true
    }

    /// True if the caller has not yet fetched all completions.
    #[inline]
    pub(crate) fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Returns the instant at which the device must run next. `inner_ns` is the instant of its next
    /// event other than a completion.
    pub(crate) fn next_ns(&self, inner_ns: Option<u64>) -> Option<u64> {
        if let Some(finished) = self.finished.first() {
            return Some(finished.at_ns);
        }
        if self.in_flight == 0 {
            return None;
        }
        earlier(self.completions.next_ns(), inner_ns)
    }

    /// Passes all pending completions to the caller.
    pub(crate) fn fetch(&mut self, done: &mut Vec<Completion>) {
        done.append(&mut self.finished);
    }
}
