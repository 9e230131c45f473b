//! The stripe cache of RAID 4, 5 and 6, and the choice between read-modify-write and
//! reconstruct-write.
//!
//! A *stripe* is a row of 4 KiB blocks at one offset of all members (`RAID5_STRIPE_SIZE`). Blocks
//! that md has read or written stay up to date until another stripe takes the cache entry, and are
//! not read again.

use std::collections::{BTreeMap, HashMap};

use super::{MemberRequest, Operation, Requests, WritePath, merge};
use crate::Place;
use crate::parity::Parity;

/// Largest number of members: they are the bits of a `u64`.
pub(super) const MOST_MEMBERS: usize = 64;
pub(super) const BLOCK_BYTES: u64 = 4096;
const SECTOR_BYTES: u64 = 512;
/// Bit mask of all sectors of a block.
const WHOLE: u8 = u8::MAX;

/// `rmw_level` (`Documentation/ABI/testing/sysfs-block`, `PARITY_*_RMW` in `drivers/md/raid5.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rmw {
    /// 0: always reconstruct.
    Never,
    /// 1, the default: read-modify-write only if it takes fewer reads than reconstructing.
    WhenFewerReads,
    /// 2: read-modify-write also if it takes equally many reads.
    WhenNoMoreReads,
}

/// Method that computes the parity of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Parity is computed from all data of the row.
    Reconstruct,
    /// Parity is computed from old parity, old data and new data.
    ReadModifyWrite,
}

/// Number of rows written, by method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowCounts {
    /// Full-stripe write: the request replaced all data of the row, without reads.
    pub full: u64,
    /// Partial write with the rest in the cache, without reads.
    pub cached: u64,
    /// Reconstruct-write: parity computed from all data of the row, after reading the missing
    /// blocks.
    pub reconstruct: u64,
    /// Read-modify-write: parity computed from old parity and old data, after reading them.
    pub read_modify_write: u64,
}

/// The members of a row as bit masks, and the new blocks in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Members with data.
    pub data: u64,
    /// Members with P or Q.
    pub parity: u64,
    /// Data blocks with new sectors.
    pub new: u64,
    /// Blocks of `new` that are replaced as a whole.
    pub overwritten: u64,
    /// Blocks that md holds in memory.
    pub up_to_date: u64,
}

impl Row {
    /// True if all data is replaced.
    fn is_full(&self) -> bool {
        self.overwritten == self.data
    }

    /// Returns the method that md chooses, and the blocks that it reads
    /// (`handle_stripe_dirtying()`).
    #[must_use]
    pub fn method(&self, rmw: Rmw) -> (Method, u64) {
        let for_modify = (self.new | self.parity) & !self.up_to_date;
        let for_reconstruct = self.data & !self.overwritten & !self.up_to_date;
        let (modify, reconstruct) = (for_modify.count_ones(), for_reconstruct.count_ones());
        let is_modify = match rmw {
            Rmw::Never => false,
            Rmw::WhenFewerReads => modify < reconstruct,
            Rmw::WhenNoMoreReads => modify <= reconstruct && reconstruct > 0,
        };
        match is_modify {
            true => (Method::ReadModifyWrite, for_modify),
            false => (Method::Reconstruct, for_reconstruct),
        }
    }
}

/// A stripe in the cache.
#[derive(Debug, Clone, Default)]
struct Stripe {
    up_to_date: u64,
    /// Position in the order of last use.
    used: u64,
}

/// The cache and its waiting stripes.
#[derive(Debug, Clone)]
pub(super) struct Stripes {
    map: Parity,
    options: WritePath,
    /// Waiting writes by stripe number, as members with their new sectors.
    waiting: BTreeMap<u64, Vec<(usize, u8)>>,
    /// Stripes in the order in which they began to wait; stripes written in the meantime are
    /// skipped.
    arrivals: Vec<u64>,
    cached: HashMap<u64, Stripe>,
    by_use: BTreeMap<u64, u64>,
    uses: u64,
    pub(super) counts: RowCounts,
}

impl Stripes {
    pub(super) fn new(map: Parity, options: WritePath) -> Stripes {
        Stripes {
            map,
            options,
            waiting: BTreeMap::new(),
            arrivals: Vec::new(),
            cached: HashMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
            counts: RowCounts::default(),
        }
    }

    /// Gathers a write, block by block.
    pub(super) fn write(&mut self, offset: u64, bytes: u64, out: &mut Requests) {
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let (places, run) = self.map.places(at);
            let Some(&Place { member, offset }) = places.first() else {
                return; // Array::write() has checked the bounds
            };
            let length = run.min(BLOCK_BYTES - offset % BLOCK_BYTES).min(end - at);
            let new = sectors(offset % BLOCK_BYTES, length);
            self.gather(offset / BLOCK_BYTES, member, new, out);
            at += length;
        }
    }

    fn gather(&mut self, number: u64, member: usize, new: u8, out: &mut Requests) {
        let mut waiting = self.waiting.get(&number).into_iter().flatten();
        // A write to sectors that are already waiting sleeps until they are written (R5_Overlap).
        if waiting.any(|&(other, sectors)| other == member && sectors & new != 0) {
            self.settle(out);
        }
        if !self.waiting.contains_key(&number) {
            self.make_room(out);
            self.arrivals.push(number);
        }
        let waiting = self.waiting.entry(number).or_default();
        match waiting.iter_mut().find(|(other, _)| *other == member) {
            Some((_, sectors)) => *sectors |= new,
            None => waiting.push((member, new)),
        }
    }

    /// Frees a cache entry for a stripe if needed. Full rows are written first; partial rows are
    /// delayed as long as possible (`STRIPE_DELAYED`).
    fn make_room(&mut self, out: &mut Requests) {
        if self.waiting.len() < self.options.cached_stripes.max(1) {
            return;
        }
        let arrivals = std::mem::take(&mut self.arrivals).into_iter();
        let (full, partial): (Vec<u64>, _) =
            arrivals.partition(|&number| self.row(number).is_full());
        if full.is_empty() {
            self.write_out(&partial, out);
        } else {
            self.write_out(&full, out);
            self.arrivals = partial;
        }
    }

    pub(super) fn settle(&mut self, out: &mut Requests) {
        let arrivals = std::mem::take(&mut self.arrivals);
        self.write_out(&arrivals, out);
    }

    fn row(&self, number: u64) -> Row {
        let (data, parity) = self.map.members_of_row(number * BLOCK_BYTES);
        let (mut new, mut overwritten) = (0, 0);
        for &(member, sectors) in self.waiting.get(&number).into_iter().flatten() {
            new |= 1 << member;
            overwritten |= u64::from(sectors == WHOLE) << member;
        }
        let cached = self.cached.get(&number);
        Row {
            data,
            parity,
            new,
            overwritten,
            up_to_date: cached.map_or(0, |stripe| stripe.up_to_date),
        }
    }

    /// Writes these stripes, in this order of use.
    fn write_out(&mut self, numbers: &[u64], out: &mut Requests) {
        let mut pieces = Vec::new();
        for &number in numbers {
            let row = self.row(number);
            let (method, reads) = row.method(self.options.rmw);
            let count = match (row.is_full(), reads, method) {
                (true, ..) => &mut self.counts.full,
                (_, 0, _) => &mut self.counts.cached,
                (_, _, Method::Reconstruct) => &mut self.counts.reconstruct,
                (_, _, Method::ReadModifyWrite) => &mut self.counts.read_modify_write,
            };
            *count += 1;
            for (blocks, operation, redundant_bytes) in [
                (reads, Operation::Preread, 0),
                (row.new, Operation::Write, 0),
                (row.parity, Operation::Write, BLOCK_BYTES),
            ] {
                pieces.extend(members(blocks).map(|member| MemberRequest {
                    member,
                    operation,
                    offset: number * BLOCK_BYTES,
                    bytes: BLOCK_BYTES,
                    redundant_bytes,
                }));
            }
            self.waiting.remove(&number);
            self.cache(number, row.up_to_date | reads | row.new | row.parity);
        }
        // Reads of a batch precede its writes.
        let (reads, writes) = pieces
            .into_iter()
            .partition(|piece| piece.operation == Operation::Preread);
        merge(reads, out);
        merge(writes, out);
    }

    /// Marks blocks as up to date, and this stripe as the most recently used.
    fn cache(&mut self, number: u64, up_to_date: u64) {
        self.uses += 1;
        let stripe = self.cached.entry(number).or_default();
        self.by_use.remove(&stripe.used);
        *stripe = Stripe {
            up_to_date,
            used: self.uses,
        };
        self.by_use.insert(self.uses, number);
        if self.cached.len() > self.options.cached_stripes
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.cached.remove(&oldest);
        }
    }
}

/// Returns the sectors of a block that a range touches, as a bit mask.
fn sectors(within: u64, length: u64) -> u8 {
    let end = (within + length).div_ceil(SECTOR_BYTES);
    (within / SECTOR_BYTES..end).fold(0, |bits, sector| bits | 1 << sector)
}

fn members(bits: u64) -> impl Iterator<Item = usize> {
    (0..MOST_MEMBERS).filter(move |&member| bits >> member & 1 == 1)
}
