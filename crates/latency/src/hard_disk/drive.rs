//! A running hard disk.

use super::{
    HardDisk,
    arm::{Arm, Target},
    extents::Position,
    parameters::Electronics,
    read_cache::ReadCache,
    write_cache::WriteCache,
};
use crate::{Completion, Op, Request, completions::earlier, host::Host, transfer::Interface};
use std::collections::VecDeque;

/// Longest wait of a command. A command that has waited longer runs first, however far away it is.
const LONGEST_WAIT_NS: u64 = 1_000_000_000;

/// A command for the arm.
#[derive(Debug, Clone, Copy)]
struct Command {
    id: u64,
    /// Earliest instant at which the arm may start moving for this command.
    ready_ns: u64,
    target: Target,
}

/// A write that is being transferred into the cache.
#[derive(Debug, Clone, Copy)]
struct Arriving {
    id: u64,
    first: u64,
    length: u64,
    /// Instant at which the interface has transferred the write.
    ready_ns: u64,
}

/// The next action of the arm.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// A command, by its index in the queue.
    Command(usize),
    Destage(Target, Position),
}

#[derive(Debug, Clone)]
pub(crate) struct Drive {
    model: Electronics,
    host: Host,
    arm: Arm,
    /// Instant until which the arm is busy. `None` if it is idle or reads ahead.
    busy_until_ns: Option<u64>,
    /// Commands for the arm, in order of arrival.
    commands: Vec<Command>,
    reads: ReadCache,
    writes: WriteCache,
    /// Writes that are being transferred or wait for room in the cache.
    arriving: VecDeque<Arriving>,
    /// A flush that waits until the cache is clean.
    flush: Option<u64>,
    interface: Interface,
}

impl Drive {
    pub(crate) fn new(model: &HardDisk, capacity_bytes: u64, seed: u64) -> Drive {
        let electronics = &model.electronics;
        Drive {
            host: Host::new(electronics.queue_depth, false),
            arm: Arm::new(&model.mechanics, capacity_bytes, seed),
            busy_until_ns: None,
            commands: Vec::new(),
            reads: ReadCache::new(electronics, capacity_bytes),
            writes: WriteCache::new(electronics.write_cache_bytes),
            arriving: VecDeque::new(),
            flush: None,
            interface: Interface::new(electronics.interface_bytes_per_s),
            model: electronics.clone(),
        }
    }

    pub(crate) fn submit(&mut self, now_ns: u64, request: Request) {
        self.run(now_ns);
        if let Some(request) = self.host.offer(request) {
            self.take(now_ns, &request);
            self.arrive(now_ns);
        }
        self.set_off(now_ns);
    }

    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.host.next_ns(self.inner_ns())
    }

    pub(crate) fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        self.run(now_ns);
        self.host.fetch(done);
    }

    /// Processes all events up to the next completion.
    pub(crate) fn advance_to_completion(&mut self, done: &mut Vec<Completion>) {
        while !self.host.has_finished() {
            // Without requests in flight there is no next completion.
            match self.next_ns() {
                Some(at_ns) => self.step(at_ns),
                None => return,
            }
        }
        self.host.fetch(done);
    }

    /// Returns the instant of the next event inside the drive other than a completion: a write
    /// arrives in the cache, or the arm finishes its operation. Reading ahead ends only if other
    /// work waits for the arm.
    fn inner_ns(&self) -> Option<u64> {
        let arm_ns = self.busy_until_ns.or_else(|| {
            (!self.writes.is_empty())
                .then(|| self.reads.ahead_until_ns(&self.arm.geometry))
                .flatten()
        });
        let arriving = self.arriving.front();
        let arrival_ns = arriving
            .filter(|arriving| self.writes.has_room(arriving.length))
            .map(|arriving| arriving.ready_ns);
        earlier(arm_ns, arrival_ns)
    }

    /// Processes all events up to `now_ns`.
    fn run(&mut self, now_ns: u64) {
        loop {
            match earlier(self.host.completion_ns(), self.inner_ns()) {
                Some(at_ns) if at_ns <= now_ns => self.step(at_ns),
                _ => return,
            }
        }
    }

    /// Processes the event at `at_ns`.
    fn step(&mut self, at_ns: u64) {
        if self.busy_until_ns.is_some_and(|until_ns| until_ns <= at_ns) {
            self.busy_until_ns = None;
            self.writes.settle();
        }
        self.arrive(at_ns);
        while self.host.release(at_ns) {}
        while let Some(request) = self.host.admit() {
            self.take(at_ns, &request);
        }
        self.arrive(at_ns);
        self.set_off(at_ns);
    }

    fn take(&mut self, now_ns: u64, request: &Request) {
        let ready_ns = now_ns + self.model.command_ns;
        match request.op {
            Op::Read => self.read(now_ns, ready_ns, request),
            // Linux sends zeroes to a hard disk as data.
            Op::Write | Op::WriteZeroes => self.write(ready_ns, request),
            Op::Discard => self.host.complete(request.id, ready_ns),
            Op::Flush if self.writes.is_clean() => self.host.complete(request.id, ready_ns),
            Op::Flush => self.flush = Some(request.id),
        }
    }

    fn read(&mut self, now_ns: u64, ready_ns: u64, request: &Request) {
        let (first, length) = (request.offset_bytes, request.length_bytes);
        let is_cached = length == 0 || self.writes.holds(first, length);
        let available_ns = if is_cached {
            Some(0)
        } else {
            self.reads.available_ns(&self.arm.geometry, first, length)
        };
        let Some(available_ns) = available_ns.filter(|&at_ns| self.can_wait(now_ns, at_ns)) else {
            return self.queue(ready_ns, request, false);
        };
        let end = first + length;
        self.reads.wanted(&self.arm.geometry, now_ns, end);
        if available_ns > now_ns {
            self.busy_until_ns = self.busy_until_ns.max(Some(available_ns));
        }
        let moved_ns = self.interface.transfer(ready_ns, length);
        self.host.complete(request.id, moved_ns.max(available_ns));
    }

    /// True if a read can wait for data being read ahead: either the drive has already reached it,
    /// or no other work needs the arm.
    fn can_wait(&self, now_ns: u64, available_ns: u64) -> bool {
        let is_wanted = !self.commands.is_empty() || self.is_destaging_forced();
        let free_ns = self.busy_until_ns.unwrap_or(0).max(now_ns);
        available_ns <= free_ns || !is_wanted && available_ns - free_ns <= self.arm.revolution_ns
    }

    fn write(&mut self, ready_ns: u64, request: &Request) {
        let (id, first, length) = (request.id, request.offset_bytes, request.length_bytes);
        let ready_ns = self.interface.transfer(ready_ns, length);
        self.reads.forget(first, first + length);
        if length == 0 {
            self.host.complete(id, ready_ns);
        } else if request.fua || !self.writes.could_take(length) {
            self.queue(ready_ns, request, true);
        } else {
            self.arriving.push_back(Arriving {
                id,
                first,
                length,
                ready_ns,
            });
        }
    }

    /// Queues a command for the arm.
    fn queue(&mut self, ready_ns: u64, request: &Request, is_write: bool) {
        let (first, length) = (request.offset_bytes, request.length_bytes);
        self.commands.push(Command {
            id: request.id,
            ready_ns,
            target: self.arm.target(first, length, is_write),
        });
    }

    /// True if a flush is waiting, or a write is waiting for room.
    fn is_destaging_forced(&self) -> bool {
        let next = self.arriving.front();
        self.flush.is_some() || next.is_some_and(|next| !self.writes.has_room(next.length))
    }

    /// Completes writes that have arrived and found room, and a flush that has nothing left to wait
    /// for.
    fn arrive(&mut self, now_ns: u64) {
        while let Some(next) = self.arriving.front().copied() {
            if next.ready_ns > now_ns || !self.writes.has_room(next.length) {
                break;
            }
            self.arriving.pop_front();
            let spot = self.arm.spot(next.first);
            self.writes.write(next.first, next.length, spot);
            self.host.complete(next.id, now_ns);
        }
        if self.writes.is_clean()
            && let Some(id) = self.flush.take()
        {
            self.host.complete(id, now_ns);
        }
    }

    /// Starts the next movement of the arm if the arm is idle.
    fn set_off(&mut self, now_ns: u64) {
        let is_wanted = !self.commands.is_empty() || self.is_destaging_forced();
        let is_ahead = || {
            self.reads
                .ahead_until_ns(&self.arm.geometry)
                .is_some_and(|until_ns| until_ns > now_ns)
        };
        let is_idle =
            self.busy_until_ns.is_none() && (is_wanted || !self.writes.is_empty() && !is_ahead());
        if !is_idle {
            return;
        }
        if let Some(reached) = self.reads.stop(&self.arm.geometry, now_ns) {
            self.arm.rest_at(reached);
        }
        let Some((arrival_ns, next)) = self.nearest(now_ns) else {
            return;
        };
        match next {
            Next::Destage(target, position) => {
                let spot = || self.arm.spot(target.end);
                self.writes.take(&target, position, spot);
                self.busy_until_ns = Some(self.arm.transfer(arrival_ns, &target));
            }
            Next::Command(at) => {
                let Command { id, target, .. } = self.commands.remove(at);
                let end_ns = self.arm.transfer(arrival_ns, &target);
                self.busy_until_ns = Some(end_ns);
                self.host.complete(id, end_ns);
                if !target.is_write {
                    self.reads.read(target.first, target.end, end_ns);
                }
            }
        }
    }

    /// Returns the action that the arm reaches first, and its instant. Cached writes are considered
    /// only if destaging is forced or no command waits.
    fn nearest(&self, now_ns: u64) -> Option<(u64, Next)> {
        let arrival_ns = |command: &Command| {
            let from_ns = command.ready_ns.max(now_ns);
            self.arm.arrival_ns(from_ns, &command.target)
        };
        if let Some(oldest) = self.commands.first()
            && oldest.ready_ns + LONGEST_WAIT_NS < now_ns
        {
            return Some((arrival_ns(oldest), Next::Command(0)));
        }
        let mut best = None;
        let mut best_ns = u64::MAX;
        // Most are too far away to beat the best so far, which a comparison of cylinders shows.
        let mut within = u64::MAX;
        for (at, command) in self.commands.iter().enumerate() {
            if self.arm.cylinders_to(&command.target) > within {
                continue;
            }
            let found_ns = arrival_ns(command);
            if found_ns < best_ns {
                (best_ns, best) = (found_ns, Some(Next::Command(at)));
                within = self.arm.geometry.within(best_ns - now_ns);
            }
        }
        if self.commands.is_empty() || self.is_destaging_forced() {
            self.writes.upwards(self.arm.at_byte, |target, position| {
                if self.arm.cylinders_to(&target) > within {
                    return;
                }
                let found_ns = self.arm.arrival_ns(now_ns, &target);
                if found_ns < best_ns {
                    (best_ns, best) = (found_ns, Some(Next::Destage(target, position)));
                    within = self.arm.geometry.within(best_ns - now_ns);
                }
            });
        }
        best.map(|next| (best_ns, next))
    }
}
