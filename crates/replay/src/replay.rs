//! The replay: when each request would have been submitted, and how long that took.

use crate::{
    Histogram, Requests,
    disk::{Disk, Ran},
    requests::Item,
};
use fscost_latency::{Model, Op};

/// What a request waits for. A program that waits for something else, for instance a read, cannot
/// be told from one that sends the next request anyhow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// Flushes and writes with FUA wait for everything that had completed in the recording, and
    /// everything waits for flushes and FUA that had. Of the time between, what is kept is that in
    /// which nothing was in flight. The time is a lower bound.
    ForFlushes,
    /// Each request waits for everything that had completed in the recording when it was submitted.
    /// Requests that follow each other closely do not overlap unless they did in the recording.
    ForAll,
}

/// Times of an interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IntervalTimes {
    /// The interval's name; `before` for what comes before the first mark.
    pub name: String,
    /// Time in the recording.
    pub recorded_ns: u64,
    /// Time on the models.
    pub modelled_ns: u64,
    /// Each disk of the recording.
    pub disks: Vec<DiskTimes>,
}

/// What one disk did in an interval.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskTimes {
    /// Time in which any request was in flight.
    pub busy_ns: u64,
    /// Latencies of reads, writes (zeroes included), flushes and discards that completed in it.
    pub latencies: [Histogram; 4],
}

impl DiskTimes {
    /// Names of the latencies, in their order.
    pub const OPS: [&'static str; 4] = ["read", "write", "flush", "discard"];

    pub(crate) fn index(op: Op) -> usize {
        match op {
            Op::Read => 0,
            Op::Write | Op::WriteZeroes => 1,
            Op::Flush => 2,
            Op::Discard => 3,
        }
    }
}

impl Requests {
    /// Replays the requests, the disks of the recording on the models in this order; those beyond
    /// the last model on `ram`.
    #[must_use]
    pub fn replay(&self, models: &[Model], waits: Waits, seed: u64) -> Vec<IntervalTimes> {
        let ram = Model::default();
        let sizes = self.disk_bytes.iter().enumerate();
        let disks = sizes.map(|(at, &bytes)| {
            // Each disk makes choices of its own, as live.
            let seed = seed.wrapping_add(at as u64);
            Disk::new(models.get(at).unwrap_or(&ram), bytes, seed)
        });
        let mut replay = Replay {
            requests: self,
            waits,
            disks: disks.collect(),
            ran: vec![Ran::default(); self.items.len()],
            all: Waited::default(),
            flushes: Waited::default(),
            now_ns: 0,
        };
        replay.run()
    }
}

/// What was waited for: the latest completion in the recording, and in the model.
#[derive(Debug, Clone, Copy, Default)]
struct Waited {
    recorded_ns: u64,
    modelled_ns: u64,
    /// [`Item::idle_ns`] of the latest.
    idle_ns: u64,
    /// Place of the first completion of the recording that was not looked at.
    next: usize,
}

impl Waited {
    /// When an item follows in the model, with all of the time before it or with its idle part.
    fn then_ns(&self, item: &Item, waits: Waits) -> u64 {
        let think_ns = match waits {
            Waits::ForAll => item.submit_ns.saturating_sub(self.recorded_ns),
            Waits::ForFlushes => item.idle_ns.saturating_sub(self.idle_ns),
        };
        self.modelled_ns.saturating_add(think_ns)
    }
}

/// An instant of the recording, and the one of the model that corresponds to it.
#[derive(Debug, Clone, Copy, Default)]
struct Instants {
    recorded_ns: u64,
    modelled_ns: u64,
}

struct Replay<'a> {
    requests: &'a Requests,
    waits: Waits,
    disks: Vec<Disk>,
    ran: Vec<Ran>,
    all: Waited,
    /// Flushes and writes with FUA.
    flushes: Waited,
    now_ns: u64,
}

impl Replay<'_> {
    fn run(&mut self) -> Vec<IntervalTimes> {
        let mut found = Vec::with_capacity(self.requests.names.len() + 1);
        let mut names = self.requests.names.iter();
        let mut name = "before";
        let mut begin = Instants::default();
        for (place, item) in self.requests.items.iter().enumerate() {
            self.wait(place, item);
            if let Some(op) = item.op {
                self.submit(place, item, op);
                continue;
            }
            self.ran[place].complete_ns = self.now_ns;
            found.push(self.interval(name, &mut begin, item.submit_ns));
            name = names.next().map_or("", String::as_str);
        }
        // A recording that was cut has no mark at its end.
        if self
            .requests
            .items
            .last()
            .is_some_and(|last| last.op.is_some())
        {
            let end = Item::end(&self.requests.items);
            self.wait(self.requests.items.len(), &end);
            found.push(self.interval(name, &mut begin, end.submit_ns));
        }
        found
    }

    fn submit(&mut self, place: usize, item: &Item, op: Op) {
        let (items, ran) = (&self.requests.items, &mut self.ran);
        match self.disks.get_mut(usize::from(item.disk)) {
            Some(disk) => disk.submit(self.now_ns, place, op, items, ran),
            None => ran[place].complete_ns = self.now_ns,
        }
    }

    /// Ends an interval at an instant of the recording.
    fn interval(&mut self, name: &str, begin: &mut Instants, recorded_ns: u64) -> IntervalTimes {
        let (items, ran) = (&self.requests.items, &mut self.ran);
        let now_ns = self.now_ns;
        let disks = self.disks.iter_mut();
        let disks = disks.map(|disk| disk.take(now_ns, items, ran)).collect();
        let end = Instants {
            recorded_ns,
            modelled_ns: now_ns,
        };
        let begin = std::mem::replace(begin, end);
        IntervalTimes {
            name: name.to_owned(),
            recorded_ns: end.recorded_ns.saturating_sub(begin.recorded_ns),
            modelled_ns: end.modelled_ns.saturating_sub(begin.modelled_ns),
            disks,
        }
    }

    /// Goes on to the instant at which the item is submitted.
    fn wait(&mut self, place: usize, item: &Item) {
        let then_ns = if self.waits == Waits::ForAll || item.is_barrier() {
            self.all = self.waited(self.all, place, item, |_| true);
            self.all.then_ns(item, self.waits)
        } else {
            self.flushes = self.waited(self.flushes, place, item, Item::is_barrier);
            self.flushes.then_ns(item, self.waits)
        };
        self.now_ns = self.now_ns.max(then_ns);
    }

    /// Runs the disks until all such items have completed in the model that had in the recording
    /// when the item was submitted. It follows them, so nothing is submitted before they complete.
    fn waited(
        &mut self,
        mut waited: Waited,
        place: usize,
        item: &Item,
        is_waited_for: impl Fn(&Item) -> bool,
    ) -> Waited {
        let requests = self.requests;
        while let Some(&at) = requests.completions.get(waited.next) {
            let completed = &requests.items[at as usize];
            if completed.complete_ns > item.submit_ns || at as usize >= place {
                break;
            }
            waited.next += 1;
            if is_waited_for(completed) {
                let modelled_ns = match self.disks.get_mut(usize::from(completed.disk)) {
                    Some(disk) if completed.op.is_some() => {
                        disk.wait_for(at, &requests.items, &mut self.ran)
                    }
                    _ => self.ran[at as usize].complete_ns,
                };
                waited.recorded_ns = completed.complete_ns;
                waited.idle_ns = waited.idle_ns.max(completed.idle_ns);
                waited.modelled_ns = waited.modelled_ns.max(modelled_ns);
            }
        }
        waited
    }
}
