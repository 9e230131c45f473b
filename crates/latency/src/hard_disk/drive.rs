//! A hard disk that runs.

use super::{
    HardDisk,
    arm::{Arm, Target},
    parameters::Electronics,
    read_cache::ReadCache,
    write_cache::WriteCache,
};
use crate::{Completion, Op, Request, host::Host};
use std::collections::VecDeque;

/// A command that waited so long goes first, however far its place is.
const LONGEST_WAIT_NS: u64 = 1_000_000_000;

/// A command for the arm.
#[derive(Debug, Clone, Copy)]
struct Command {
    id: u64,
    /// From when on the arm may set off for it.
    ready_ns: u64,
    target: Target,
}

/// A write on its way into the cache.
#[derive(Debug, Clone, Copy)]
struct Arriving {
    id: u64,
    first: u64,
    length: u64,
    /// When the interface has moved it.
    ready_ns: u64,
}

/// What the arm does next.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// A command, by its place in the queue.
    Command(usize),
    Destage(Target),
}

#[derive(Debug, Clone)]
pub(crate) struct Drive {
    model: Electronics,
    capacity_bytes: u64,
    host: Host,
    arm: Arm,
    /// Until when the arm is busy; none: it is idle, or reads ahead.
    busy_until_ns: Option<u64>,
    /// Commands for the arm, in order of arrival.
    commands: Vec<Command>,
    reads: ReadCache,
    writes: WriteCache,
    /// Writes that the interface moves, or that wait for room in the cache.
    arriving: VecDeque<Arriving>,
    /// A flush that waits for the cache to be clean.
    flush: Option<u64>,
    /// When the interface has moved all that it was given.
    interface_free_ns: u64,
}

impl Drive {
    pub(crate) fn new(model: &HardDisk, capacity_bytes: u64, seed: u64) -> Drive {
        let electronics = &model.electronics;
        Drive {
            capacity_bytes,
            host: Host::new(electronics.queue_depth, false),
            arm: Arm::new(&model.mechanics, capacity_bytes, seed),
            busy_until_ns: None,
            commands: Vec::new(),
            reads: ReadCache::new(electronics),
            writes: WriteCache::new(electronics.write_cache_bytes),
            arriving: VecDeque::new(),
            flush: None,
            interface_free_ns: 0,
            model: electronics.clone(),
        }
    }

    pub(crate) fn submit(&mut self, now_ns: u64, request: Request) {
        self.run(now_ns);
        self.host.push(request);
        self.admit(now_ns);
        self.set_off(now_ns);
    }

    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.host.next_ns(self.inner_ns())
    }

    pub(crate) fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        self.run(now_ns);
        self.host.fetch(done);
    }

    /// When something happens in the drive beside completions: a write arrives in the cache, the
    /// arm ends what it does. Reading ahead ends only for what waits behind it.
    fn inner_ns(&self) -> Option<u64> {
        let arm_ns = self.busy_until_ns.or_else(|| {
            (!self.writes.is_empty())
                .then(|| self.reads.ahead_until_ns())
                .flatten()
        });
        let arriving = self.arriving.front();
        let arrival_ns = arriving
            .filter(|arriving| self.writes.has_room(arriving.length))
            .map(|arriving| arriving.ready_ns);
        arm_ns.into_iter().chain(arrival_ns).min()
    }

    /// Lives through everything up to `now_ns`.
    fn run(&mut self, now_ns: u64) {
        loop {
            let next_ns = [self.host.completion_ns(), self.inner_ns()];
            let Some(at_ns) = next_ns.into_iter().flatten().min() else {
                return;
            };
            if at_ns > now_ns {
                return;
            }
            if self.busy_until_ns.is_some_and(|until_ns| until_ns <= at_ns) {
                self.busy_until_ns = None;
                self.writes.settle();
            }
            self.arrive(at_ns);
            while self.host.release(at_ns) {}
            self.admit(at_ns);
            self.set_off(at_ns);
        }
    }

    /// Takes what the host may hand over.
    fn admit(&mut self, now_ns: u64) {
        while let Some(request) = self.host.admit() {
            let ready_ns = now_ns + self.model.command_ns;
            match request.op {
                Op::Read => self.read(now_ns, ready_ns, &request),
                // Linux sends zeroes to a hard disk as data.
                Op::Write | Op::WriteZeroes => self.write(ready_ns, &request),
                Op::Discard => self.host.complete(request.id, ready_ns),
                Op::Flush if self.writes.is_clean() => self.host.complete(request.id, ready_ns),
                Op::Flush => self.flush = Some(request.id),
            }
        }
        self.arrive(now_ns);
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
            let target = self.arm.target(first, length, false);
            let id = request.id;
            self.commands.push(Command {
                id,
                ready_ns,
                target,
            });
            return;
        };
        let (geometry, end) = (&self.arm.geometry, first + length);
        self.reads
            .wanted(geometry, now_ns, end, self.capacity_bytes);
        if available_ns > now_ns {
            self.busy_until_ns = self.busy_until_ns.max(Some(available_ns));
        }
        let moved_ns = self.moved_ns(ready_ns, length);
        self.host.complete(request.id, moved_ns.max(available_ns));
    }

    /// True if a read waits for what is read ahead: the drive is there anyhow, or nothing else
    /// wants it.
    fn can_wait(&self, now_ns: u64, available_ns: u64) -> bool {
        let is_wanted = !self.commands.is_empty() || self.is_destaging_forced();
        let free_ns = self.busy_until_ns.unwrap_or(0).max(now_ns);
        available_ns <= free_ns || !is_wanted && available_ns - free_ns <= self.arm.revolution_ns
    }

    fn write(&mut self, ready_ns: u64, request: &Request) {
        let (id, first, length) = (request.id, request.offset_bytes, request.length_bytes);
        let ready_ns = self.moved_ns(ready_ns, length);
        self.reads.forget(first, first + length);
        if length == 0 {
            self.host.complete(id, ready_ns);
        } else if request.fua || !self.writes.could_take(length) {
            let target = self.arm.target(first, length, true);
            self.commands.push(Command {
                id,
                ready_ns,
                target,
            });
        } else {
            let arriving = Arriving {
                id,
                first,
                length,
                ready_ns,
            };
            self.arriving.push_back(arriving);
        }
    }

    /// When the interface has moved so many bytes.
    fn moved_ns(&mut self, from_ns: u64, bytes: u64) -> u64 {
        let begin_ns = from_ns.max(self.interface_free_ns);
        self.interface_free_ns = begin_ns + self.model.interface_ns(bytes);
        self.interface_free_ns
    }

    /// True if a flush or a write waits for room.
    fn is_destaging_forced(&self) -> bool {
        let next = self.arriving.front();
        self.flush.is_some() || next.is_some_and(|next| !self.writes.has_room(next.length))
    }

    /// Completes the writes that have arrived and found room, and a flush that has nothing left to
    /// wait for.
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

    /// Sends the arm to its next place, if it is idle.
    fn set_off(&mut self, now_ns: u64) {
        let is_wanted = !self.commands.is_empty() || self.is_destaging_forced();
        let is_ahead = || {
            self.reads
                .ahead_until_ns()
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
            Next::Destage(target) => {
                self.writes.take(&target, self.arm.spot(target.end));
                self.busy_until_ns = Some(self.arm.transfer(arrival_ns, &target));
            }
            Next::Command(at) => {
                let Command { id, target, .. } = self.commands.remove(at);
                let end_ns = self.arm.transfer(arrival_ns, &target);
                self.busy_until_ns = Some(end_ns);
                self.host.complete(id, end_ns);
                if !target.is_write {
                    let range = (target.first, target.end);
                    let geometry = &self.arm.geometry;
                    self.reads
                        .read(geometry, range, end_ns, self.capacity_bytes);
                }
            }
        }
    }

    /// What the arm reaches first, and when. Writes in the cache take part if they have to go, or
    /// if nothing else waits.
    fn nearest(&self, now_ns: u64) -> Option<(u64, Next)> {
        let arrival_ns = |command: &Command, before_ns| {
            self.arm
                .arrival_ns(command.ready_ns.max(now_ns), &command.target, before_ns)
        };
        if let Some(oldest) = self.commands.first()
            && oldest.ready_ns + LONGEST_WAIT_NS < now_ns
        {
            return arrival_ns(oldest, u64::MAX).map(|at_ns| (at_ns, Next::Command(0)));
        }
        let mut best = None;
        let mut best_ns = u64::MAX;
        for (at, command) in self.commands.iter().enumerate() {
            if let Some(found_ns) = arrival_ns(command, best_ns) {
                (best_ns, best) = (found_ns, Some(Next::Command(at)));
            }
        }
        if self.commands.is_empty() || self.is_destaging_forced() {
            for target in self.writes.upwards(self.arm.at_byte) {
                if let Some(found_ns) = self.arm.arrival_ns(now_ns, &target, best_ns) {
                    (best_ns, best) = (found_ns, Some(Next::Destage(target)));
                }
            }
        }
        best.map(|next| (best_ns, next))
    }
}
