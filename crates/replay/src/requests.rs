//! The requests of a recording or of a trace, in order of submission.

use fscost_latency::Op;
use fscost_recording::{self as recording, Event, MarkReader, Recording, Result};

/// Maximum number of requests and marks that are replayed. A replay takes about 100 bytes for each,
/// and a few kilobytes of a file can hold a hundred thousand.
pub(crate) const MOST_REQUESTS: usize = 1 << 25;

/// A request or a mark.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Item {
    pub(crate) submit_ns: u64,
    pub(crate) complete_ns: u64,
    /// Submission and completion by the clock of the program, which may differ from that of the
    /// recording.
    pub(crate) asked_ns: u64,
    pub(crate) answered_ns: u64,
    /// Idle time before the submission, without any request in flight: the program's own time, by
    /// its own clock.
    pub(crate) idle_ns: u64,
    /// Rank in the order of completion.
    pub(crate) rank: u32,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
    pub(crate) disk: u16,
    /// Operation; `None` for a mark.
    pub(crate) op: Option<Op>,
    pub(crate) fua: bool,
}

impl Item {
    /// Creates a mark after all items.
    pub(crate) fn end(items: &[Item]) -> Item {
        let end_ns = items.iter().map(|item| item.complete_ns).max();
        let end_ns = end_ns.unwrap_or_default();
        Item {
            submit_ns: end_ns,
            complete_ns: end_ns,
            asked_ns: end_ns,
            answered_ns: end_ns,
            idle_ns: items.last().map_or(0, |item| item.idle_ns),
            ..Item::default()
        }
    }

    /// True for items that order others: flushes, writes with FUA, and marks.
    pub(crate) fn is_barrier(&self) -> bool {
        self.fua || matches!(self.op, None | Some(Op::Flush))
    }
}

/// The requests of a recording or of a trace.
#[derive(Debug, Clone)]
pub struct Requests {
    /// Items in order of submission.
    pub(crate) items: Vec<Item>,
    /// Indices into `items`, in order of completion.
    pub(crate) completions: Vec<u32>,
    /// Names of the intervals that begin at the marks.
    pub(crate) names: Vec<String>,
    /// Size of each disk.
    pub(crate) disk_bytes: Vec<u64>,
    has_time: bool,
}

impl Requests {
    /// False if the time between requests is unknown: the recording is not in real time, and not
    /// every mark has the time of an emulated guest.
    #[must_use]
    pub fn has_time(&self) -> bool {
        self.has_time
    }

    /// Reads a recording. Contents of writes are skipped. The requests of disks that had a model,
    /// and of real disks, completed when their replies say.
    pub fn of(recording: &Recording) -> Result<Requests> {
        let frames = recording.frames().iter();
        let count: usize = frames.map(|frame| frame.event_count as usize).sum();
        if count > MOST_REQUESTS {
            return Err(recording::Error::new(
                recording::ErrorKind::TooLarge,
                format!("{count} requests, and at most {MOST_REQUESTS} can be replayed"),
            ));
        }
        let mut items = Vec::new();
        let mut names = Vec::new();
        let mut clock = Vec::new();
        let mut marks = MarkReader::default();
        let replies = recording.replies()?;
        let mut rest = replies.iter().peekable();
        let mut number = 0;
        recording.for_each_frame(false, |_, frame| {
            for event in &frame.events {
                let op = op(event.op);
                if op.is_none() {
                    let mark = marks.mark_of(frame, event)?;
                    clock.push(mark.detail["virtual_ns"].as_u64());
                    names.push(mark.name);
                }
                let mut item = item(event, op, items.len() as u32);
                if op.is_some() {
                    while let Some(reply) = rest.next_if(|reply| reply.request <= number) {
                        if reply.request == number {
                            item.complete_ns = reply.complete_ns.max(item.submit_ns);
                        }
                    }
                    number += 1;
                }
                items.push(item);
            }
            Ok(true)
        })?;
        if !replies.is_empty() {
            rank(&mut items);
        }
        // The items are nearly sorted, so this takes little more than one pass.
        items.sort_by_key(|item| item.submit_ns);
        let disks = recording.header().disks.iter();
        let disk_bytes = disks.map(|disk| disk.size_bytes).collect();
        let mut requests = Self::sorted(items, names, disk_bytes);
        // A log of dm-log-writes has no times, so there is none between its requests.
        let is_untimed = |item: &Item| item.submit_ns == item.complete_ns;
        let is_untimed = requests.items.iter().all(is_untimed);
        if recording.header().begin_unix_ns == 0 && !is_untimed {
            let clock: Option<Vec<u64>> = clock.into_iter().collect();
            requests.has_time =
                clock.is_some_and(|clock| virtual_time(&mut requests.items, &clock));
        }
        Ok(requests)
    }

    /// Creates requests that complete at once, in any order of submission. Their times begin with
    /// the first of them.
    pub(crate) fn at_once(mut items: Vec<Item>, disk_bytes: Vec<u64>) -> Requests {
        items.sort_by_key(|item| item.submit_ns);
        let first_ns = items.first().map_or(0, |item| item.submit_ns);
        for (rank, item) in (0..).zip(&mut items) {
            item.submit_ns -= first_ns;
            item.complete_ns = item.submit_ns;
            item.rank = rank;
        }
        Self::sorted(items, Vec::new(), disk_bytes)
    }

    /// Creates the requests from items with ranks, in order of submission.
    fn sorted(mut items: Vec<Item>, names: Vec<String>, disk_bytes: Vec<u64>) -> Requests {
        let mut completions = vec![0; items.len()];
        let (mut idle_ns, mut busy_until_ns) = (0, 0);
        for (place, item) in items.iter_mut().enumerate() {
            completions[item.rank as usize] = place as u32;
            idle_ns += item.submit_ns.saturating_sub(busy_until_ns);
            busy_until_ns = item.complete_ns.max(busy_until_ns);
            item.idle_ns = idle_ns;
            (item.asked_ns, item.answered_ns) = (item.submit_ns, item.complete_ns);
        }
        Requests {
            items,
            completions,
            names,
            disk_bytes,
            has_time: true,
        }
    }
}

/// Gives all items times by an emulated guest's clock, which `clock` holds for each mark. Returns
/// false if that clock does not cover all items, or went backwards.
///
/// The guest executes nothing while a request is in flight, because the disk server has precedence
/// on their common processor. In an interval, its clock therefore advances in proportion to the
/// recorded time without any request in flight.
fn virtual_time(items: &mut [Item], clock: &[u64]) -> bool {
    let is_covered = items.last().is_some_and(|item| item.op.is_none());
    if !is_covered || !clock.is_sorted() {
        return false;
    }
    let first_ns = clock[0];
    let (mut begin, mut idle_begin_ns, mut begin_ns) = (0, 0, 0);
    let marks: Vec<usize> = (0..items.len())
        .filter(|&at| items[at].op.is_none())
        .collect();
    for (end, &mark_ns) in marks.into_iter().zip(clock) {
        let (idle_end_ns, end_ns) = (items[end].idle_ns, mark_ns - first_ns);
        let idle_ns = (idle_end_ns - idle_begin_ns).max(1);
        for item in &mut items[begin..end] {
            let share = u128::from(item.idle_ns - idle_begin_ns) * u128::from(end_ns - begin_ns);
            item.idle_ns = begin_ns + (share / u128::from(idle_ns)) as u64;
        }
        items[end].idle_ns = end_ns;
        (begin, idle_begin_ns, begin_ns) = (end + 1, idle_end_ns, end_ns);
    }
    for item in items {
        (item.asked_ns, item.answered_ns) = (item.idle_ns, item.idle_ns);
    }
    true
}

/// Ranks items by completion, which differs from the recording's order.
fn rank(items: &mut [Item]) {
    let mut order: Vec<u32> = (0..items.len() as u32).collect();
    order.sort_by_key(|&at| items[at as usize].complete_ns);
    for (rank, at) in (0..).zip(order) {
        items[at as usize].rank = rank;
    }
}

fn op(op: recording::Op) -> Option<Op> {
    match op {
        recording::Op::Read => Some(Op::Read),
        recording::Op::Write => Some(Op::Write),
        recording::Op::Flush => Some(Op::Flush),
        // A loop device sends the same request for a discard and for zeroes that may unmap.
        recording::Op::Discard | recording::Op::Punch => Some(Op::Discard),
        recording::Op::WriteZeroes => Some(Op::WriteZeroes),
        recording::Op::Mark => None,
    }
}

fn item(event: &Event, op: Option<Op>, rank: u32) -> Item {
    Item {
        // A mark follows everything that completed before it.
        submit_ns: if op.is_none() {
            event.complete_ns
        } else {
            event.submit_ns
        },
        complete_ns: event.complete_ns,
        asked_ns: 0,
        answered_ns: 0,
        idle_ns: 0,
        rank,
        offset_bytes: event.offset,
        length_bytes: event.length,
        disk: event.disk,
        op,
        fua: event.fua,
    }
}
