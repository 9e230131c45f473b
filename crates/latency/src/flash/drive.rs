//! A running flash device.

use super::{
    Flash,
    dies::Dies,
    map::{MapCache, TABLE_PAGE_BYTES},
    parameters::Controller,
    units::OpenUnits,
};
use crate::{Completion, Op, Request, host::Host, transfer::Interface};
use std::collections::VecDeque;

#[derive(Debug, Clone)]
pub(crate) struct FlashDrive {
    model: Controller,
    program_bytes: u64,
    host: Host,
    dies: Dies,
    units: OpenUnits,
    map: MapCache,
    controller_free_ns: u64,
    interface: Interface,
    buffer: Buffer,
}

/// Writes that the device has accepted but not yet programmed.
#[derive(Debug, Clone, Default)]
struct Buffer {
    /// Bytes for which no program has begun: less than one program takes.
    open_bytes: u64,
    /// Size of each program in progress in bytes, and the instant at which it leaves the buffer. In
    /// order of arrival.
    programs: VecDeque<(u64, u64)>,
    /// Total size of all programs in progress.
    programmed_bytes: u64,
    /// Instant at which all accepted bytes except the open ones are programmed.
    durable_ns: u64,
}

impl FlashDrive {
    pub(crate) fn new(model: &Flash) -> FlashDrive {
        let controller = model.controller.clone();
        FlashDrive {
            program_bytes: model.nand.program_bytes,
            host: Host::new(controller.queue_depth, controller.is_flush_queued),
            dies: Dies::new(&model.nand),
            units: OpenUnits::new(&model.units),
            map: MapCache::new(controller.map_bytes),
            controller_free_ns: 0,
            interface: Interface::new(controller.interface_bytes_per_s),
            buffer: Buffer::default(),
            model: controller,
        }
    }

    pub(crate) fn submit(&mut self, now_ns: u64, request: Request) {
        self.run(now_ns);
        if let Some(request) = self.host.offer(request) {
            self.take(now_ns, &request);
        }
    }

    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.host.next_ns(None)
    }

    pub(crate) fn advance(&mut self, now_ns: u64, done: &mut Vec<Completion>) {
        self.run(now_ns);
        self.host.fetch(done);
    }

    /// Processes all events up to `now_ns`.
    fn run(&mut self, now_ns: u64) {
        while let Some(at_ns) = self.host.completion_ns().filter(|&at_ns| at_ns <= now_ns) {
            while self.host.release(at_ns) {}
            while let Some(request) = self.host.admit() {
                self.take(at_ns, &request);
            }
        }
    }

    /// Books the resources that a request needs.
    fn take(&mut self, now_ns: u64, request: &Request) {
        let command_ns = match request.op {
            Op::Write if self.model.write_command_ns > 0 => self.model.write_command_ns,
            _ => self.model.command_ns,
        };
        let begin_ns = now_ns.max(self.controller_free_ns) + command_ns;
        self.controller_free_ns = begin_ns;
        let (offset, length) = (request.offset_bytes, request.length_bytes);
        let done_ns = match request.op {
            Op::Read => self.read(begin_ns, offset, length),
            Op::Write => {
                let moved_ns = self.interface.transfer(begin_ns, length);
                self.write(moved_ns + self.model.write_ns, request)
            }
            // Drives deallocate on both.
            Op::WriteZeroes | Op::Discard => begin_ns + self.model.discard_ns,
            Op::Flush => self.flush(begin_ns) + self.model.flush_ns,
        };
        self.host.complete(request.id, done_ns);
    }

    fn read(&mut self, begin_ns: u64, offset: u64, length: u64) -> u64 {
        let mut from_ns = begin_ns + self.model.read_ns;
        for _ in 0..self.map.load(offset, length) {
            from_ns = self.dies.read(from_ns, offset, TABLE_PAGE_BYTES);
        }
        let read_ns = self.dies.read(from_ns, offset, length);
        // The interface transfers data already read while the rest is being read.
        read_ns.max(self.interface.transfer(from_ns, length))
    }

    /// Writes data that the device has received. Returns the instant at which the write completes.
    fn write(&mut self, taken_ns: u64, request: &Request) -> u64 {
        let (offset, length) = (request.offset_bytes, request.length_bytes);
        // A page of the map that a write misses is read while the data waits in the buffer.
        self.map.load(offset, length);
        let copy_ns = self.units.write_ns(offset, length);
        if copy_ns > 0 {
            self.dies.pause(taken_ns, copy_ns);
        }
        let room_ns = self.store(taken_ns + copy_ns, length);
        let needs_nand = request.fua && !self.model.is_power_loss_protected;
        if self.model.buffer_bytes == 0 || needs_nand {
            self.program_open(room_ns);
            return self.buffer.durable_ns.max(room_ns);
        }
        room_ns
    }

    /// Puts bytes into the buffer and starts a program whenever there are enough for one. Returns
    /// the instant at which the last byte found room.
    fn store(&mut self, mut now_ns: u64, length: u64) -> u64 {
        let capacity = self.model.buffer_bytes.max(self.program_bytes);
        let mut rest = length;
        while rest > 0 {
            let bytes = rest.min(self.program_bytes - self.buffer.open_bytes);
            let wanted = self.buffer.open_bytes + bytes;
            now_ns = self.buffer.room_ns(now_ns, capacity.saturating_sub(wanted));
            self.buffer.open_bytes = wanted;
            rest -= bytes;
            if wanted == self.program_bytes {
                self.program_open(now_ns);
            }
        }
        now_ns
    }

    /// Programs the open bytes, padded with zeroes.
    fn program_open(&mut self, now_ns: u64) {
        if self.buffer.open_bytes > 0 {
            let done_ns = self.dies.program(now_ns);
            let bytes = std::mem::take(&mut self.buffer.open_bytes);
            let buffer = &mut self.buffer;
            buffer.durable_ns = buffer.durable_ns.max(done_ns);
            buffer.programs.push_back((bytes, buffer.durable_ns));
            buffer.programmed_bytes += bytes;
        }
    }

    /// Returns the instant at which everything accepted so far is durable.
    fn flush(&mut self, now_ns: u64) -> u64 {
        if self.model.is_power_loss_protected {
            return now_ns;
        }
        self.program_open(now_ns);
        self.buffer.durable_ns.max(now_ns)
    }
}

impl Buffer {
    /// Returns the first instant from `now_ns` on at which at most `most_bytes` wait for their
    /// programs.
    fn room_ns(&mut self, mut now_ns: u64, most_bytes: u64) -> u64 {
        while let Some(&(bytes, leave_ns)) = self.programs.front() {
            if leave_ns > now_ns && self.programmed_bytes <= most_bytes {
                break;
            }
            now_ns = now_ns.max(leave_ns);
            self.programs.pop_front();
            self.programmed_bytes -= bytes;
        }
        now_ns
    }
}
