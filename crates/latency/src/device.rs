//! A device: a model that runs.

use crate::{Completion, Model, Request, constant::ConstantDevice, hard_disk::Drive, model::Kind};

/// Largest device: 1 PiB. What lies beyond the end of a device is not moved.
const MOST_BYTES: u64 = 1 << 50;

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
}

impl Device {
    /// An idle device at instant 0. The host uses its first `capacity_bytes`.
    #[must_use]
    pub fn new(model: &Model, capacity_bytes: u64, seed: u64) -> Device {
        let capacity_bytes = capacity_bytes.min(MOST_BYTES);
        let engine = match &model.kind {
            Kind::Constant(latency) => Engine::Constant(ConstantDevice::new(*latency)),
            Kind::HardDisk(model) => {
                Engine::HardDisk(Box::new(Drive::new(model, capacity_bytes, seed)))
            }
        };
        Device {
            engine,
            capacity_bytes,
        }
    }

    /// Hands a request over. `now_ns` never decreases from call to call of `submit` and
    /// [`advance`](Device::advance).
    pub fn submit(&mut self, now_ns: u64, request: Request) {
        let offset_bytes = request.offset_bytes.min(self.capacity_bytes);
        let request = Request {
            offset_bytes,
            length_bytes: request.length_bytes.min(self.capacity_bytes - offset_bytes),
            ..request
        };
        match &mut self.engine {
            Engine::Constant(device) => device.submit(now_ns, &request),
            Engine::HardDisk(drive) => drive.submit(now_ns, request),
        }
    }

    /// When [`advance`](Device::advance) should be called next if no other request arrives: never
    /// later than the next completion. None: no request is outstanding. A model whose device does
    /// other work first (destaging a cache) may name an instant at which nothing completes.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        match &self.engine {
            Engine::Constant(device) => device.next_ns(),
            Engine::HardDisk(drive) => drive.next_ns(),
        }
    }

    /// Appends the completions up to `now_ns`, in order of time.
    pub fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        match &mut self.engine {
            Engine::Constant(device) => device.advance(now_ns, done),
            Engine::HardDisk(drive) => drive.advance(now_ns, done),
        }
    }
}
