//! The replay: the time at which each request would have been submitted and completed.

use crate::{
    DiskTimes, Requests,
    disk::{Disk, Ran},
    requests::Item,
};
use fscost_latency::{Model, Op};

/// The completions that a request waits for. A recording cannot distinguish a program that waits
/// for another request, such as a read, from one that sends the next request anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// Flushes and writes with FUA wait for everything that had completed in the recording, and
    /// every request waits for flushes and FUA writes that had completed. Of the time between
    /// requests, only the time without any request in flight is kept. The resulting time is a lower
    /// bound.
    ForFlushes,
    /// Each request waits for everything that had completed in the recording when it was submitted.
    /// Consecutive requests overlap only if they did so in the recording.
    ForAll,
}

/// Times of one interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IntervalTimes {
    /// Name of the interval; `before` for requests before the first mark.
    pub name: String,
    /// Duration in the recording, by the clock of the program.
    pub recorded_ns: u64,
    /// Duration on the models.
    pub modelled_ns: u64,
    /// Activity of each disk of the recording.
    pub disks: Vec<DiskTimes>,
}

impl Requests {
    /// Replays the requests. The disks of the recording are assigned to the models in order; disks
    /// beyond the last model use `ram`.
    #[must_use]
    pub fn replay(&self, models: &[Model], waits: Waits, seed: u64) -> Vec<IntervalTimes> {
        let ram = Model::default();
        let sizes = self.disk_bytes.iter().enumerate();
        let disks = sizes.map(|(at, &bytes)| {
            // Each disk makes its own random choices, as it does live.
            let seed = seed.wrapping_add(at as u64);
            Disk::new(models.get(at).unwrap_or(&ram), bytes, seed)
        });
        let mut replay = Replay {
            requests: self,
            waits,
            disks: disks.collect(),
            ran: Ran::new(&self.items),
            all: Waited::default(),
            flushes: Waited::default(),
            now_ns: 0,
        };
        replay.run()
    }
}

/// The latest completion that was waited for, in the recording and in the model.
#[derive(Debug, Clone, Copy, Default)]
struct Waited {
    answered_ns: u64,
    modelled_ns: u64,
    /// Largest [`Item::idle_ns`] of the completions waited for.
    idle_ns: u64,
    /// Index of the first completion in the recording that was not yet examined.
    next: usize,
}

impl Waited {
    /// Returns the earliest submission time of an item in the model. It adds either all of the time
    /// before the item or only the idle part.
    fn then_ns(&self, item: &Item, waits: Waits) -> u64 {
        let think_ns = match waits {
            Waits::ForAll => item.asked_ns.saturating_sub(self.answered_ns),
            Waits::ForFlushes => item.idle_ns.saturating_sub(self.idle_ns),
        };
        self.modelled_ns.saturating_add(think_ns)
    }
}

/// An instant of the recording and the corresponding instant of the model.
#[derive(Debug, Clone, Copy, Default)]
struct Instants {
    recorded_ns: u64,
    modelled_ns: u64,
}

struct Replay<'a> {
    requests: &'a Requests,
    waits: Waits,
    disks: Vec<Disk>,
    ran: Ran<'a>,
    all: Waited,
    /// Completions of flushes and writes with FUA.
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
            self.ran.pass(place, self.now_ns);
            found.push(self.interval(name, &mut begin, item.asked_ns));
            name = names.next().map_or("", String::as_str);
        }
        // A truncated recording has no mark at its end.
        let items = &self.requests.items;
        if items.last().is_some_and(|last| last.op.is_some()) {
            let end = Item::end(items);
            self.wait(items.len(), &end);
            found.push(self.interval(name, &mut begin, end.asked_ns));
        }
        found
    }

    fn submit(&mut self, place: usize, item: &Item, op: Op) {
        match self.disks.get_mut(usize::from(item.disk)) {
            Some(disk) => disk.submit(self.now_ns, place, op, &mut self.ran),
            None => self.ran.pass(place, self.now_ns),
        }
    }

    /// Ends an interval at an instant of the recording.
    fn interval(&mut self, name: &str, begin: &mut Instants, recorded_ns: u64) -> IntervalTimes {
        let now_ns = self.now_ns;
        let disks = self.disks.iter_mut();
        let disks = disks.map(|disk| disk.take(now_ns, &mut self.ran));
        let end = Instants {
            recorded_ns,
            modelled_ns: now_ns,
        };
        let begin = std::mem::replace(begin, end);
        IntervalTimes {
            name: name.to_owned(),
            recorded_ns: end.recorded_ns.saturating_sub(begin.recorded_ns),
            modelled_ns: end.modelled_ns.saturating_sub(begin.modelled_ns),
            disks: disks.collect(),
        }
    }

    /// Advances to the instant at which the item is submitted.
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

    /// Runs the disks until the model has completed every matching item that had completed in the
    /// recording when `item` was submitted. Nothing is submitted before these items complete,
    /// because `item` follows them.
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
                    Some(disk) if completed.op.is_some() => disk.wait_for(at, &mut self.ran),
                    _ => self.ran.completion_ns(at as usize).unwrap_or(u64::MAX),
                };
                waited.answered_ns = completed.answered_ns;
                waited.idle_ns = waited.idle_ns.max(completed.idle_ns);
                waited.modelled_ns = waited.modelled_ns.max(modelled_ns);
            }
        }
        waited
    }
}
