//! A replayed disk and its measurements.

use crate::{Histogram, requests::Item};
use fscost_latency::{Completion, Device, Model, Op, Request};

/// Activity of one disk in an interval.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskTimes {
    /// Time during which any request was in flight.
    pub busy_ns: u64,
    /// Latencies of the reads, writes (zeroes included), flushes and discards that completed in the
    /// interval.
    pub latencies: [Histogram; 4],
}

impl DiskTimes {
    /// Names of the latencies, in the same order.
    pub const OPS: [&'static str; 4] = ["read", "write", "flush", "discard"];

    fn index(op: Op) -> usize {
        match op {
            Op::Read => 0,
            Op::Write | Op::WriteZeroes => 1,
            Op::Flush => 2,
            Op::Discard => 3,
        }
    }
}

/// A device with its requests in flight.
pub(crate) struct Disk {
    device: Device,
    in_flight: u64,
    /// Beginning of the current busy period, or of the interval if that is later.
    busy_since_ns: u64,
    done: Vec<Completion>,
    times: DiskTimes,
}

/// The items, and their times in the model.
#[derive(Debug, Clone)]
pub(crate) struct Ran<'a> {
    items: &'a [Item],
    /// Completion time of each request, by its index. For a request in flight, the submission time
    /// with [`IN_FLIGHT`] set.
    times_ns: Vec<u64>,
}

/// Bit that marks a submission time. The model's instants are far below it.
const IN_FLIGHT: u64 = 1 << 63;

impl Ran<'_> {
    pub(crate) fn new(items: &[Item]) -> Ran<'_> {
        let times_ns = vec![0; items.len()];
        Ran { items, times_ns }
    }

    pub(crate) fn submit(&mut self, place: usize, now_ns: u64) {
        self.times_ns[place] = now_ns | IN_FLIGHT;
    }

    /// Records the completion of a request in flight, and returns its latency.
    fn complete(&mut self, place: usize, at_ns: u64) -> u64 {
        let submit_ns = std::mem::replace(&mut self.times_ns[place], at_ns) & !IN_FLIGHT;
        at_ns.saturating_sub(submit_ns)
    }

    /// Records the instant of an item that takes no time.
    pub(crate) fn pass(&mut self, place: usize, at_ns: u64) {
        self.times_ns[place] = at_ns;
    }

    /// Returns the completion time of a request; `None` while it is in flight.
    pub(crate) fn completion_ns(&self, place: usize) -> Option<u64> {
        Some(self.times_ns[place]).filter(|ns| ns & IN_FLIGHT == 0)
    }
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

    pub(crate) fn submit(&mut self, now_ns: u64, place: usize, op: Op, ran: &mut Ran<'_>) {
        let item = &ran.items[place];
        self.advance(now_ns, ran);
        if self.in_flight == 0 {
            self.busy_since_ns = now_ns;
        }
        self.in_flight += 1;
        ran.submit(place, now_ns);
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

    /// Runs the device until a request has completed, and returns the completion time.
    pub(crate) fn wait_for(&mut self, place: u32, ran: &mut Ran<'_>) -> u64 {
        loop {
            if let Some(at_ns) = ran.completion_ns(place as usize) {
                return at_ns;
            }
            self.device.advance_to_completion(&mut self.done);
            if self.done.is_empty() {
                // A device with nothing in flight has lost a request: it would never complete.
                return u64::MAX;
            }
            self.count(ran);
        }
    }

    pub(crate) fn advance(&mut self, now_ns: u64, ran: &mut Ran<'_>) {
        if self.in_flight > 0 {
            self.device.advance(now_ns, &mut self.done);
            self.count(ran);
        }
    }

    /// Counts the latest completions.
    fn count(&mut self, ran: &mut Ran<'_>) {
        for completion in &self.done {
            let place = completion.id as usize;
            let latency_ns = ran.complete(place, completion.at_ns);
            if let Some(op) = ran.items[place].op {
                self.times.latencies[DiskTimes::index(op)].add(latency_ns);
            }
            self.in_flight -= 1;
            if self.in_flight == 0 {
                busy_until(&mut self.times, &mut self.busy_since_ns, completion.at_ns);
            }
        }
        self.done.clear();
    }

    /// Ends an interval and returns its measurements.
    pub(crate) fn take(&mut self, now_ns: u64, ran: &mut Ran<'_>) -> DiskTimes {
        self.advance(now_ns, ran);
        if self.in_flight > 0 {
            busy_until(&mut self.times, &mut self.busy_since_ns, now_ns);
        }
        std::mem::take(&mut self.times)
    }
}

fn busy_until(times: &mut DiskTimes, since_ns: &mut u64, now_ns: u64) {
    times.busy_ns += now_ns.saturating_sub(*since_ns);
    *since_ns = now_ns.max(*since_ns);
}
