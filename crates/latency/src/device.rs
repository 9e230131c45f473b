//! A running instance of a model.

use crate::{
    Completion, Model, Op, Request, completions::Completions, constant::Constant,
    flash::FlashDrive, hard_disk::Drive, model::Kind, request::LARGEST_BYTES,
};
use std::iter;

/// Largest request; longer requests count as this size. Linux sends at most a few MiB at once.
const MOST_REQUEST_BYTES: u64 = 64 << 20;
/// The same for zeroes, of which Linux sends up to 4 GiB at once. Hard disks write them as data.
const MOST_ZEROES_BYTES: u64 = 4 << 30;
/// Latest instant: 73 years, so that no sum of times overflows.
const LATEST_NS: u64 = 1 << 61;

/// A running device. Its behaviour depends only on the model, the capacity, the seed, and the
/// requests with their times.
#[derive(Debug, Clone)]
pub struct Device {
    engine: Engine,
    capacity_bytes: u64,
}

#[derive(Debug, Clone)]
enum Engine {
    /// Serves any number of requests in parallel.
    Constant(Constant, Completions),
    HardDisk(Box<Drive>),
    Flash(Box<FlashDrive>),
}

impl Device {
    /// Creates an idle device at instant 0. The host uses its first `capacity_bytes`.
    #[must_use]
    pub fn new(model: &Model, capacity_bytes: u64, seed: u64) -> Device {
        let capacity_bytes = capacity_bytes.min(LARGEST_BYTES);
        let engine = match &model.kind {
            Kind::Constant(latency) => Engine::Constant(*latency, Completions::default()),
            Kind::HardDisk(model) => {
                Engine::HardDisk(Box::new(Drive::new(model, capacity_bytes, seed)))
            }
            Kind::Flash(model) => Engine::Flash(Box::new(FlashDrive::new(model))),
        };
        Device {
            engine,
            capacity_bytes,
        }
    }

    /// Submits a request. `now_ns` must never decrease across calls to `submit` and
    /// [`advance`](Device::advance).
    pub fn submit(&mut self, now_ns: u64, request: Request) {
        let now_ns = now_ns.min(LATEST_NS);
        let offset_bytes = request.offset_bytes.min(self.capacity_bytes);
        let most_bytes = match request.op {
            Op::WriteZeroes => MOST_ZEROES_BYTES,
            _ => MOST_REQUEST_BYTES,
        };
        let most_bytes = most_bytes.min(self.capacity_bytes - offset_bytes);
        let request = Request {
            offset_bytes,
            length_bytes: request.length_bytes.min(most_bytes),
            ..request
        };
        match &mut self.engine {
            Engine::Constant(latency, completions) => {
                let at_ns = now_ns.saturating_add(latency.latency_ns(&request));
                completions.add(request.id, at_ns);
            }
            Engine::HardDisk(drive) => drive.submit(now_ns, request),
            Engine::Flash(drive) => drive.submit(now_ns, request),
        }
    }

    /// Returns the instant for the next call to [`advance`](Device::advance) if no other request
    /// arrives. The instant is never later than the next completion, and lies in the past if a
    /// request has already completed. `None` if no request is outstanding. If the device has other
    /// work before the next completion, such as destaging its cache, nothing completes at the
    /// returned instant.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        match &self.engine {
            Engine::Constant(_, completions) => completions.next_ns(),
            Engine::HardDisk(drive) => drive.next_ns(),
            Engine::Flash(drive) => drive.next_ns(),
        }
    }

    /// Appends the next completion and all others at the same instant, in order of time. Appends
    /// nothing if no request is outstanding. Equivalent to calling [`advance`](Device::advance) at
    /// each instant that [`next_ns`](Device::next_ns) returns until a request has completed.
    pub fn advance_to_completion(&mut self, done: &mut Vec<Completion>) {
        if let Engine::HardDisk(drive) = &mut self.engine {
            return drive.advance_to_completion(done);
        }
        let before = done.len();
        while done.len() == before
            && let Some(next_ns) = self.next_ns()
        {
            self.advance(next_ns, done);
        }
    }

    /// Appends all completions up to `now_ns`, in order of time.
    pub fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        match &mut self.engine {
            Engine::Constant(_, completions) => {
                done.extend(iter::from_fn(|| completions.pop(now_ns)));
            }
            Engine::HardDisk(drive) => drive.advance(now_ns, done),
            Engine::Flash(drive) => drive.advance(now_ns, done),
        }
    }
}
