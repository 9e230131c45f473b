//! A device: a model that runs.

use crate::{
    Completion, Model, Request, constant::ConstantDevice, flash::FlashDrive, hard_disk::Drive,
    model::Kind,
};

/// Largest device: 1 PiB. What lies beyond the end of a device is not moved.
pub(crate) const LARGEST_BYTES: u64 = 1 << 50;
/// Largest request: what is longer counts as that. Linux sends at most a few MiB at once.
const MOST_REQUEST_BYTES: u64 = 64 << 20;
/// Latest instant: 73 years, so that no sum of times overflows.
const LATEST_NS: u64 = 1 << 61;

/// A device of a model. It depends only on the model, the capacity, the seed and the requests with
/// their times.
#[derive(Debug, Clone)]
pub struct Device {
    engine: Engine,
    capacity_bytes: u64,
}

#[derive(Debug, Clone)]
enum Engine {
    Constant(ConstantDevice),
    HardDisk(Box<Drive>),
    Flash(Box<FlashDrive>),
}

impl Device {
    /// An idle device at instant 0. The host uses its first `capacity_bytes`.
    #[must_use]
    pub fn new(model: &Model, capacity_bytes: u64, seed: u64) -> Device {
        let capacity_bytes = capacity_bytes.min(LARGEST_BYTES);
        let engine = match &model.kind {
            Kind::Constant(latency) => Engine::Constant(ConstantDevice::new(*latency)),
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

    /// Hands a request over. `now_ns` never decreases from call to call of `submit` and
    /// [`advance`](Device::advance).
    pub fn submit(&mut self, now_ns: u64, request: Request) {
        let now_ns = now_ns.min(LATEST_NS);
        let offset_bytes = request.offset_bytes.min(self.capacity_bytes);
        let most_bytes = MOST_REQUEST_BYTES.min(self.capacity_bytes - offset_bytes);
        let request = Request {
            offset_bytes,
            length_bytes: request.length_bytes.min(most_bytes),
            ..request
        };
        match &mut self.engine {
            Engine::Constant(device) => device.submit(now_ns, &request),
            Engine::HardDisk(drive) => drive.submit(now_ns, request),
            Engine::Flash(drive) => drive.submit(now_ns, request),
        }
    }

    /// When to call [`advance`](Device::advance) next if no other request arrives: never later than
    /// the next completion, and in the past if something has completed already. None: no request is
    /// outstanding. A device with other work before the next completion (destaging its cache) names
    /// an instant at which nothing completes.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        match &self.engine {
            Engine::Constant(device) => device.next_ns(),
            Engine::HardDisk(drive) => drive.next_ns(),
            Engine::Flash(drive) => drive.next_ns(),
        }
    }

    /// Appends the completions up to `now_ns`, in order of time.
    pub fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        match &mut self.engine {
            Engine::Constant(device) => device.advance(now_ns, done),
            Engine::HardDisk(drive) => drive.advance(now_ns, done),
            Engine::Flash(drive) => drive.advance(now_ns, done),
        }
    }
}
