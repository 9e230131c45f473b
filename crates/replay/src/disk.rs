//! A disk that is replayed, and what is measured of it.

use crate::{DiskTimes, requests::Item};
use fscost_latency::{Completion, Device, Model, Op, Request};

/// A device with its requests in flight.
pub(crate) struct Disk {
    device: Device,
    in_flight: u64,
    /// Since when it has been busy, or measured.
    busy_since_ns: u64,
    done: Vec<Completion>,
    times: DiskTimes,
}

/// When each request was submitted and completed in the model, by its place.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ran {
    pub(crate) submit_ns: u64,
    /// `u64::MAX`: not yet.
    pub(crate) complete_ns: u64,
}

impl Disk {
    pub(crate) fn new(model: &Model, size_bytes: u64, seed: u64) -> Disk {
        Disk {
            device: Device::new(model, size_bytes, seed),
            in_flight: 0,
            busy_since_ns: 0,
            done: Vec::new(),
            times: DiskTimes::default(),
        }
    }

    pub(crate) fn submit(
        &mut self,
        now_ns: u64,
        place: usize,
        op: Op,
        items: &[Item],
        ran: &mut [Ran],
    ) {
        let item = &items[place];
        self.advance(now_ns, items, ran);
        if self.in_flight == 0 {
            self.busy_since_ns = now_ns;
        }
        self.in_flight += 1;
        ran[place] = Ran {
            submit_ns: now_ns,
            complete_ns: u64::MAX,
        };
        self.device.submit(
            now_ns,
            Request {
                id: place as u64,
                op,
                offset_bytes: item.offset_bytes,
                length_bytes: item.length_bytes,
                fua: item.fua,
            },
        );
    }

    /// Runs the device until a request has completed; returns when.
    pub(crate) fn wait_for(&mut self, place: u32, items: &[Item], ran: &mut [Ran]) -> u64 {
        while ran[place as usize].complete_ns == u64::MAX {
            let Some(next_ns) = self.device.next_ns() else {
                break;
            };
            self.advance(next_ns, items, ran);
        }
        ran[place as usize].complete_ns
    }

    pub(crate) fn advance(&mut self, now_ns: u64, items: &[Item], ran: &mut [Ran]) {
        if self.in_flight == 0 {
            return;
        }
        let mut done = std::mem::take(&mut self.done);
        self.device.advance(now_ns, &mut done);
        for completion in done.drain(..) {
            let place = completion.id as usize;
            let found = &mut ran[place];
            found.complete_ns = completion.at_ns;
            let latency_ns = completion.at_ns.saturating_sub(found.submit_ns);
            if let Some(op) = items[place].op {
                self.times.latencies[DiskTimes::index(op)].add(latency_ns);
            }
            self.in_flight -= 1;
            if self.in_flight == 0 {
                self.busy_until(completion.at_ns);
            }
        }
        self.done = done;
    }

    /// Ends an interval: hands over what was measured in it.
    pub(crate) fn take(&mut self, now_ns: u64, items: &[Item], ran: &mut [Ran]) -> DiskTimes {
        self.advance(now_ns, items, ran);
        if self.in_flight > 0 {
            self.busy_until(now_ns);
        }
        std::mem::take(&mut self.times)
    }

    fn busy_until(&mut self, now_ns: u64) {
        self.times.busy_ns += now_ns.saturating_sub(self.busy_since_ns);
        self.busy_since_ns = self.busy_since_ns.max(now_ns);
    }
}
