//! Dies and the channels that connect them.

use super::{parameters::Nand, slc::SlcCache};
use crate::{divisor::Divisor, transfer::Rate};

/// Operations booked on one die.
#[derive(Debug, Clone, Copy, Default)]
struct Die {
    /// Instant at which all operations are done.
    free_ns: u64,
    /// Instant at which all reads are done.
    reads_done_ns: u64,
    /// Bytes programmed since the last erase.
    programmed_bytes: u64,
    /// True if the last program went to the SLC cache.
    is_slc: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Dies {
    model: Nand,
    dies: Vec<Die>,
    channels_free_ns: Vec<u64>,
    /// Index of the die to program next.
    next: usize,
    page_transfer_ns: u64,
    program_transfer_ns: u64,
    channel: Rate,
    by_page: Divisor,
    by_dies: Divisor,
    by_channels: Divisor,
    /// Duration of a program, including its transfer.
    by_program: Divisor,
    by_slc_program: Divisor,
    slc: SlcCache,
}

impl Dies {
    pub(super) fn new(model: &Nand) -> Dies {
        let channel = Rate::new(model.channel_bytes_per_s);
        let program_transfer_ns = channel.ns(model.program_bytes);
        Dies {
            dies: vec![Die::default(); model.dies() as usize],
            channels_free_ns: vec![0; model.channels as usize],
            next: 0,
            page_transfer_ns: channel.ns(model.page_bytes),
            program_transfer_ns,
            channel,
            by_page: Divisor::new(model.page_bytes),
            by_dies: Divisor::new(u64::from(model.dies())),
            by_channels: Divisor::new(u64::from(model.channels)),
            by_program: Divisor::new((model.program_ns + program_transfer_ns).max(1)),
            by_slc_program: Divisor::new((model.slc.program_ns + program_transfer_ns).max(1)),
            slc: SlcCache::new(&model.slc),
            model: model.clone(),
        }
    }

    /// Reads a range, starting at `from_ns`. Returns the instant at which its last byte has left
    /// the channel. Only the requested part of a page crosses the channel.
    pub(super) fn read(&mut self, from_ns: u64, first: u64, length: u64) -> u64 {
        let page = self.model.page_bytes;
        let end = first + length;
        let (first_page, end_page) = (self.by_page.quotient(first), self.by_page.div_ceil(end));
        // A range that wraps over all dies many times keeps each of them equally busy: count
        // rounds.
        let rounds = self
            .by_dies
            .quotient(end_page - first_page)
            .saturating_sub(1);
        let skipped = rounds * self.dies.len() as u64;
        if rounds > 0 {
            self.read_rounds(from_ns, rounds);
        }
        let mut done_ns = from_ns;
        for at in first_page + skipped..end_page {
            let (part_first, part_end) = (first.max(at * page), end.min((at + 1) * page));
            let bytes = part_end.saturating_sub(part_first);
            done_ns = done_ns.max(self.read_page(from_ns, at, bytes));
        }
        done_ns
    }

    /// Books `rounds` page reads on every die.
    fn read_rounds(&mut self, from_ns: u64, rounds: u64) {
        for die in &mut self.dies {
            let begin_ns = from_ns.max(die.reads_done_ns);
            die.reads_done_ns = begin_ns + rounds * self.model.page_read_ns;
            die.free_ns = die.free_ns.max(from_ns) + rounds * self.model.page_read_ns;
        }
        let pages = rounds * u64::from(self.model.dies_per_channel);
        for free_ns in &mut self.channels_free_ns {
            *free_ns = from_ns.max(*free_ns) + pages * self.page_transfer_ns;
        }
    }

    fn read_page(&mut self, from_ns: u64, page: u64, bytes: u64) -> u64 {
        let at = self.by_dies.remainder(page) as usize;
        let begin_ns = self.readable_ns(at, from_ns);
        let die = &mut self.dies[at];
        die.reads_done_ns = begin_ns + self.model.page_read_ns;
        die.free_ns = die.free_ns.max(from_ns) + self.model.page_read_ns;
        let transfer_ns = self.channel.ns(bytes);
        let done_ns = die.reads_done_ns + transfer_ns;
        done_ns.max(self.book_channel(at, from_ns, transfer_ns))
    }

    /// Returns the instant at which a die can read. Reads overtake waiting programs, but not the
    /// running one.
    fn readable_ns(&self, at: usize, from_ns: u64) -> u64 {
        let die = &self.dies[at];
        let begin_ns = from_ns.max(die.reads_done_ns);
        let waiting_ns = die.free_ns.saturating_sub(begin_ns);
        let by_program = if die.is_slc {
            self.by_slc_program
        } else {
            self.by_program
        };
        begin_ns + by_program.remainder(waiting_ns)
    }

    /// Programs one die, however much of `program_bytes` is used. Returns the instant at which the
    /// program is done.
    pub(super) fn program(&mut self, from_ns: u64) -> u64 {
        let at = self.next;
        self.next = if at + 1 < self.dies.len() { at + 1 } else { 0 };
        let moved_ns = self.book_channel(at, from_ns, self.program_transfer_ns);
        let is_slc = self.slc.take(from_ns, self.model.program_bytes);
        let program_ns = if is_slc {
            self.model.slc.program_ns
        } else {
            self.model.program_ns
        };
        let die = &mut self.dies[at];
        die.is_slc = is_slc;
        let mut busy_ns = self.program_transfer_ns + program_ns;
        die.programmed_bytes += self.model.program_bytes;
        if die.programmed_bytes >= self.model.block_bytes {
            die.programmed_bytes = 0;
            busy_ns += self.model.erase_ns;
        }
        die.free_ns = die.free_ns.max(from_ns) + busy_ns;
        die.free_ns = die.free_ns.max(moved_ns + program_ns);
        let done_ns = die.free_ns;
        self.slc.busy_until(done_ns);
        done_ns
    }

    /// Blocks every die for `pause_ns` while the device copies data.
    pub(super) fn pause(&mut self, from_ns: u64, pause_ns: u64) {
        for die in &mut self.dies {
            die.free_ns = die.free_ns.max(from_ns) + pause_ns;
            die.reads_done_ns = die.free_ns;
        }
    }

    /// Books a transfer on a channel behind all earlier ones. Returns the instant at which it is
    /// done.
    fn book_channel(&mut self, die: usize, from_ns: u64, transfer_ns: u64) -> u64 {
        let channel = self.by_channels.remainder(die as u64) as usize;
        let free_ns = &mut self.channels_free_ns[channel];
        *free_ns = from_ns.max(*free_ns) + transfer_ns;
        *free_ns
    }
}
