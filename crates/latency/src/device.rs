//! A device: a model that runs.

use crate::{Completion, Model, Request, constant::ConstantDevice, model::Kind};

/// A device of a model. It depends only on the model, the capacity, the seed and the requests with
/// their times.
#[derive(Debug, Clone)]
pub struct Device {
    engine: Engine,
}

#[derive(Debug, Clone)]
enum Engine {
    Constant(ConstantDevice),
}

impl Device {
    /// An idle device at instant 0. The host uses its first `capacity_bytes`.
    #[must_use]
    pub fn new(model: &Model, capacity_bytes: u64, seed: u64) -> Device {
        let _ = (capacity_bytes, seed);
        let engine = match &model.kind {
            Kind::Constant(latency) => Engine::Constant(ConstantDevice::new(*latency)),
        };
        Device { engine }
    }

    /// Hands a request over. `now_ns` never decreases from call to call of `submit` and
    /// [`advance`](Device::advance).
    pub fn submit(&mut self, now_ns: u64, request: Request) {
        match &mut self.engine {
            Engine::Constant(device) => device.submit(now_ns, &request),
        }
    }

    /// When [`advance`](Device::advance) should be called next if no other request arrives: never
    /// later than the next
    /// completion. None: no request is outstanding. A model whose device does other work first
    /// (destaging a cache) may
    /// name an instant at which nothing completes.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        match &self.engine {
            Engine::Constant(device) => device.next_ns(),
        }
    }

    /// Appends the completions up to `now_ns`, in order of time.
    pub fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        match &mut self.engine {
            Engine::Constant(device) => device.advance(now_ns, done),
        }
    }
}
