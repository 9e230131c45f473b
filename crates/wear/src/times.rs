//! Busy time of each disk as if it were a device with the given NAND timings.

use crate::{
    members::{Next, OnArray, Times, for_each_request},
    refused,
};
use fscost_raid::{Load, MemberRequest, Operation, Queues, RowCounts};
use fscost_recording::{Recording, Result};
use fscost_ssd::{Spec, TimedDevice, Timing};
use std::{collections::VecDeque, mem};

/// Times of one interval.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalTimes {
    /// Name of the interval; `before` for requests before the first mark.
    pub name: String,
    /// Elapsed seconds in a closed loop (see [`Queues`]). The interval ends when all members are
    /// idle.
    pub elapsed_s: f64,
    /// Times of each disk, or of each member of the array.
    pub members: Vec<MemberTimes>,
}

impl IntervalTimes {
    fn begin(name: String, members: usize) -> IntervalTimes {
        IntervalTimes {
            name,
            elapsed_s: 0.0,
            members: vec![MemberTimes::default(); members],
        }
    }
}

/// Activity of one member in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MemberTimes {
    /// Seconds for which the member was busy.
    pub busy_s: f64,
    /// Requests that the member received.
    pub load: Load,
    /// Bytes that the member's NAND programmed.
    pub nand_write_bytes: u64,
    /// Number of blocks erased.
    pub erased_blocks: u64,
}

/// Replays a recording once, on devices that are already full. Discards are ignored, as on drives
/// without TRIM, for which foreground collection matters most.
pub fn times(
    recording: &Recording,
    spec: &Spec,
    timing: Timing,
    array: Option<&OnArray>,
) -> Result<(Vec<IntervalTimes>, RowCounts)> {
    let sizes: Vec<u64> = match array {
        Some(on) => on.geometry.member_bytes.clone(),
        None => {
            let disks = recording.header().disks.iter();
            disks.map(|disk| disk.size_bytes).collect()
        }
    };
    let device = |&bytes: &u64| TimedDevice::new(spec, timing, bytes).map_err(refused);
    let mut players = Players {
        devices: sizes.iter().map(device).collect::<Result<_>>()?,
        queues: Queues::new(sizes.len()),
        awaited: VecDeque::new(),
        is_flushing: false,
        current: IntervalTimes::begin("before".to_owned(), sizes.len()),
        done: Vec::new(),
    };
    let rows = for_each_request(recording, array, |next| match next {
        Next::Interval(name) => {
            players.end(name);
            Ok(())
        }
        Next::Request(request, times) => players.play(&request, times),
    })?;
    players.end(String::new());
    Ok((players.done, rows))
}

struct Players {
    devices: Vec<TimedDevice>,
    queues: Queues,
    /// Reads and writes with FUA that nobody has waited for yet, in the order of the recording,
    /// which is that of completion: when each completed there, and the second at which its member
    /// has served it.
    awaited: VecDeque<(u64, f64)>,
    is_flushing: bool,
    current: IntervalTimes,
    done: Vec<IntervalTimes>,
}

impl Players {
    fn play(&mut self, request: &MemberRequest, times: Times) -> Result<()> {
        self.wait_for_awaited(times.submit_ns);
        let member = request.member;
        let (Some(device), Some(found)) = (
            self.devices.get_mut(member),
            self.current.members.get_mut(member),
        ) else {
            return Ok(());
        };
        found.load.add(request);
        let is_durable = times.is_durable && request.operation == Operation::Write;
        let service_s = match request.operation {
            Operation::Read | Operation::Preread => device.read(request.bytes),
            Operation::Write => {
                let service_s = device.write(request.offset, request.bytes);
                let programs_s = if is_durable { device.flush() } else { 0.0 };
                service_s.map_err(refused)? + programs_s
            }
            Operation::Flush => device.flush(),
            Operation::Discard => 0.0,
        };
        // Members are flushed in parallel; later requests wait for all of them.
        let is_flush = request.operation == Operation::Flush;
        if mem::replace(&mut self.is_flushing, is_flush) && !is_flush {
            self.queues.wait_for_all();
        }
        let served_s = self.queues.submit(member, service_s);
        if request.operation == Operation::Read || is_durable {
            self.awaited.push_back((times.complete_ns, served_s));
        }
        Ok(())
    }

    /// Waits for what had completed when a request was submitted. The pieces of a striped read,
    /// reads of a queue, and writes of several members with FUA are in flight together.
    fn wait_for_awaited(&mut self, submit_ns: u64) {
        while let Some(&(complete_ns, served_s)) = self.awaited.front()
            && complete_ns <= submit_ns
        {
            self.queues.wait_until(served_s);
            self.awaited.pop_front();
        }
    }

    /// Ends the interval once all of its work is done.
    fn end(&mut self, next: String) {
        self.queues.wait_for_all();
        self.awaited.clear();
        let count = self.devices.len();
        let mut ended = mem::replace(&mut self.current, IntervalTimes::begin(next, count));
        let queues = mem::replace(&mut self.queues, Queues::new(count));
        ended.elapsed_s = queues.now_s();
        for (at, (found, device)) in ended.members.iter_mut().zip(&mut self.devices).enumerate() {
            found.busy_s = queues.busy_s()[at];
            let counters = device.take_counters();
            found.nand_write_bytes = counters.programmed_units() * u64::from(device.unit_bytes());
            found.erased_blocks = counters.erases;
        }
        self.done.push(ended);
    }
}
