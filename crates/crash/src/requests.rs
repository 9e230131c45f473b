//! The changes and flushes of a recording, with the instant from which each change is durable.

use fscost_recording::{Event, Op, Recording, Reply, Result};
use std::{collections::HashMap, iter::Peekable, vec};

/// An instant that never comes.
const NEVER: u64 = u64::MAX;

/// A change of a disk: a write, or a range that reads as zeros afterwards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) frame: u32,
    pub(crate) event: Event,
    /// Number of the event in the recording, marks counted.
    pub(crate) number: u64,
    /// The instant at which the disk had completed it.
    pub(crate) complete_ns: u64,
    /// The first instant at which no power cut can lose it.
    pub(crate) durable_ns: u64,
}

/// The changes of all disks, in the order in which they took effect.
#[derive(Debug)]
pub struct Requests {
    pub(crate) changes: Vec<Change>,
    flushes: Vec<Flush>,
}

/// The instants at which requests had completed. A request takes effect in the disk's cache when it
/// is logged, but a disk with a model, and a real one, replies later: a flush that was submitted in
/// between does not cover it.
struct Completed {
    replies: Peekable<vec::IntoIter<Reply>>,
    request: u64,
}

impl Completed {
    fn of(recording: &Recording) -> Result<Completed> {
        Ok(Completed {
            replies: recording.replies()?.into_iter().peekable(),
            request: 0,
        })
    }

    /// Returns the instant of the next event of the recording.
    fn next(&mut self, event: &Event) -> u64 {
        let mut at_ns = event.complete_ns;
        if event.op == Op::Mark {
            return at_ns;
        }
        let number = self.request;
        self.request += 1;
        while let Some(reply) = self.replies.next_if(|reply| reply.request <= number) {
            if reply.request == number {
                at_ns = reply.complete_ns.max(at_ns);
            }
        }
        at_ns
    }
}

#[derive(Debug, Clone, Copy)]
struct Flush {
    disk: u16,
    submit_ns: u64,
    complete_ns: u64,
}

impl Requests {
    /// Reads the requests of a recording. `without` are the numbers of flushes to leave out, as
    /// if the file system had not sent them: a checker that does not notice is worth nothing.
    pub fn read(recording: &Recording, without: &[u64]) -> Result<Requests> {
        let mut changes = Vec::new();
        let mut flushes = Vec::new();
        let mut completed = Completed::of(recording)?;
        let mut number = 0;
        recording.for_each_frame(false, |index, frame| {
            for event in &frame.events {
                let at_ns = completed.next(event);
                if event.op == Op::Write || event.op.clears() {
                    changes.push(Change {
                        frame: index as u32,
                        event: *event,
                        number,
                        complete_ns: at_ns,
                        durable_ns: NEVER,
                    });
                } else if event.op == Op::Flush && !without.contains(&number) {
                    flushes.push(Flush {
                        disk: event.disk,
                        submit_ns: event.submit_ns,
                        complete_ns: at_ns,
                    });
                }
                number += 1;
            }
            Ok(true)
        })?;
        let mut requests = Requests { changes, flushes };
        requests.find_durable();
        Ok(requests)
    }

    /// Finds the instant from which each change is durable: the earliest end of a flush that was
    /// submitted after the change had completed, and its own end if it was a FUA write.
    fn find_durable(&mut self) {
        // Of each disk, by the time of submission: the earliest end of this flush and all later
        // ones.
        let mut of_disks: HashMap<u16, Vec<(u64, u64)>> = HashMap::new();
        for flush in &self.flushes {
            let ends = of_disks.entry(flush.disk).or_default();
            ends.push((flush.submit_ns, flush.complete_ns));
        }
        for ends in of_disks.values_mut() {
            ends.sort_unstable();
            let mut earliest = NEVER;
            for (_, end) in ends.iter_mut().rev() {
                earliest = earliest.min(*end);
                *end = earliest;
            }
        }
        for change in &mut self.changes {
            let event = &change.event;
            let ends = of_disks.get(&event.disk).map_or(&[][..], Vec::as_slice);
            let from = ends.partition_point(|&(submit_ns, _)| submit_ns < change.complete_ns);
            let flushed = ends.get(from).map_or(NEVER, |&(_, end)| end);
            let own = match event.fua {
                true => change.complete_ns,
                false => NEVER,
            };
            change.durable_ns = flushed.min(own);
        }
    }

    /// Returns the numbers of the writes that had completed by `at_ns` and that a power cut may
    /// lose, ascending; marks are counted.
    pub fn volatile(&self, at_ns: u64) -> Vec<u64> {
        let writes = self.changes.iter().filter(|change| {
            matches!(change.event.op, Op::Write | Op::WriteZeroes)
                && change.complete_ns <= at_ns
                && change.durable_ns > at_ns
        });
        writes.map(|change| change.number).collect()
    }

    /// Returns the instants in `begin_ns..end_ns` at which most was pending: just before each flush
    /// ended. Returns at most `most` of them, evenly spread, the last one included.
    pub fn cuts(&self, begin_ns: u64, end_ns: u64, most: usize) -> Vec<u64> {
        let mut found: Vec<u64> = self
            .flushes
            .iter()
            .map(|flush| flush.complete_ns.saturating_sub(1))
            .chain(self.changes.iter().map(|change| change.complete_ns))
            .filter(|at_ns| (begin_ns..end_ns).contains(at_ns))
            .collect();
        found.sort_unstable();
        found.dedup();
        let count = found.len();
        if count <= most {
            return found;
        }
        (1..=most)
            .map(|number| found[number * count / most - 1])
            .collect()
    }
}
