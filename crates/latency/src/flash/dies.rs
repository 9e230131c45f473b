//! Dies and the channels that lead to them.

use super::parameters::Nand;
use crate::transfer;

/// What a die and a channel have been asked to do.
#[derive(Debug, Clone, Copy, Default)]
struct Die {
    /// When all of it is done.
    free_ns: u64,
    /// When all its reads are done.
    reads_done_ns: u64,
    /// Bytes programmed since the last erase.
    programmed_bytes: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Dies {
    model: Nand,
    dies: Vec<Die>,
    channels_free_ns: Vec<u64>,
    /// The die that is programmed next.
    next: usize,
    page_transfer_ns: u64,
    program_transfer_ns: u64,
}

impl Dies {
    pub(super) fn new(model: &Nand) -> Dies {
        Dies {
            dies: vec![Die::default(); model.dies() as usize],
            channels_free_ns: vec![0; model.channels as usize],
            next: 0,
            page_transfer_ns: transfer::ns(model.page_bytes, model.channel_bytes_per_s),
            program_transfer_ns: transfer::ns(model.program_bytes, model.channel_bytes_per_s),
            model: model.clone(),
        }
    }

    /// Reads a range from an instant on; returns when its last byte has left the channel. Only the
    /// wanted part of a page crosses the channel.
    pub(super) fn read(&mut self, from_ns: u64, first: u64, length: u64) -> u64 {
        let page = self.model.page_bytes;
        let end = first + length;
        // A range that wraps over all dies many times keeps each of them as busy: count rounds.
        let pages = end.div_ceil(page) - first / page;
        let rounds = (pages / self.dies.len() as u64).saturating_sub(1);
        let skipped = rounds * self.dies.len() as u64;
        if rounds > 0 {
            self.read_rounds(from_ns, rounds);
        }
        let mut done_ns = from_ns;
        for at in first / page + skipped..end.div_ceil(page) {
            let (part_first, part_end) = (first.max(at * page), end.min((at + 1) * page));
            let bytes = part_end.saturating_sub(part_first);
            done_ns = done_ns.max(self.read_page(from_ns, at, bytes));
        }
        done_ns
    }

    /// Lets every die read so many pages.
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
        let at = (page % self.dies.len() as u64) as usize;
        let begin_ns = self.readable_ns(at, from_ns);
        let die = &mut self.dies[at];
        die.reads_done_ns = begin_ns + self.model.page_read_ns;
        die.free_ns = die.free_ns.max(from_ns) + self.model.page_read_ns;
        let transfer_ns = transfer::ns(bytes, self.model.channel_bytes_per_s);
        let done_ns = die.reads_done_ns + transfer_ns;
        done_ns.max(self.book_channel(at, from_ns, transfer_ns))
    }

    /// When a die can read: reads overtake the programs that wait, but not the one that runs.
    fn readable_ns(&self, at: usize, from_ns: u64) -> u64 {
        let die = &self.dies[at];
        let begin_ns = from_ns.max(die.reads_done_ns);
        let waiting_ns = die.free_ns.saturating_sub(begin_ns);
        begin_ns + waiting_ns % (self.model.program_ns + self.program_transfer_ns).max(1)
    }

    /// Programs one die, whatever share of `program_bytes` is used; returns when it is done.
    pub(super) fn program(&mut self, from_ns: u64) -> u64 {
        let at = self.next;
        self.next = (at + 1) % self.dies.len();
        let moved_ns = self.book_channel(at, from_ns, self.program_transfer_ns);
        let die = &mut self.dies[at];
        let mut busy_ns = self.program_transfer_ns + self.model.program_ns;
        die.programmed_bytes += self.model.program_bytes;
        if die.programmed_bytes >= self.model.block_bytes {
            die.programmed_bytes = 0;
            busy_ns += self.model.erase_ns;
        }
        die.free_ns = die.free_ns.max(from_ns) + busy_ns;
        die.free_ns = die.free_ns.max(moved_ns + self.model.program_ns);
        die.free_ns
    }

    /// Keeps every die from working for a while: the device copies.
    pub(super) fn pause(&mut self, from_ns: u64, pause_ns: u64) {
        for die in &mut self.dies {
            die.free_ns = die.free_ns.max(from_ns) + pause_ns;
            die.reads_done_ns = die.free_ns;
        }
    }

    /// When a channel has moved what it was given before, and this.
    fn book_channel(&mut self, die: usize, from_ns: u64, transfer_ns: u64) -> u64 {
        let count = self.channels_free_ns.len();
        let free_ns = &mut self.channels_free_ns[die % count];
        *free_ns = from_ns.max(*free_ns) + transfer_ns;
        *free_ns
    }
}
