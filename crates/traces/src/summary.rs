//! What the requests of a trace say without contents: how much, in which order, and where again.

use crate::{Kind, Request, Result, Trace};
use std::collections::{HashMap, VecDeque};

/// Size of the blocks that tell whether a place was written before.
const BLOCK_BYTES: u64 = 4096;
/// Blocks of one part of a disk, 128 MiB.
const PART_BLOCKS: u64 = 1 << 15;
const WORDS: usize = (PART_BLOCKS / 64) as usize;
/// Most parts of all disks together: 128 MiB of memory, for 4 TiB that are written.
const MOST_PARTS: usize = 1 << 15;
/// Writes whose ends the next write may continue, as the streams of a drive.
const STREAMS: usize = 16;

/// Requests of one operation.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Total {
    /// Number of requests.
    pub requests: u64,
    /// Sum of their lengths.
    pub bytes: u64,
}

/// Requests of one disk.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Reads.
    pub read: Total,
    /// Writes, without zeroed ranges.
    pub write: Total,
    /// Discards.
    pub discard: Total,
    /// Zeroed ranges.
    pub zero: Total,
    /// Flushes.
    pub flushes: u64,
    /// Writes that are durable by themselves (FUA).
    pub fua: u64,
    /// Writes by the power of two that their length does not exceed, which is the index.
    pub write_sizes: [Total; 65],
    /// Bytes of writes that begin where one of the last 16 writes ended.
    pub sequential_write_bytes: u64,
    /// Bytes written to blocks of 4 KiB that the trace had written before; none if the trace writes
    /// to too many places.
    pub again_write_bytes: Option<u64>,
    /// Size of the blocks of 4 KiB that were written; none as above.
    pub distinct_bytes: Option<u64>,
    /// Size of all blocks of 4 KiB that the writes touch, each as often as a write touches it; none
    /// as above.
    pub touched_bytes: Option<u64>,
}

impl Default for Summary {
    fn default() -> Self {
        Summary {
            read: Total::default(),
            write: Total::default(),
            discard: Total::default(),
            zero: Total::default(),
            flushes: 0,
            fua: 0,
            write_sizes: [Total::default(); 65],
            sequential_write_bytes: 0,
            again_write_bytes: None,
            distinct_bytes: None,
            touched_bytes: None,
        }
    }
}

/// Reads the rest of a trace, and returns the summaries of its disks, by name.
pub fn summaries(trace: &mut Trace) -> Result<Vec<(String, Summary)>> {
    let mut disks: Vec<Disk> = Vec::new();
    let mut parts = MOST_PARTS;
    while let Some(request) = trace.next_request()? {
        let number = request.disk as usize;
        if disks.len() <= number {
            disks.resize_with(number + 1, Disk::default);
        }
        if let Some(disk) = disks.get_mut(number) {
            disk.add(&request, &mut parts);
        }
    }
    let names = trace.disks().iter().cloned();
    Ok(names.zip(disks.into_iter().map(Disk::finished)).collect())
}

#[derive(Default)]
struct Disk {
    found: Summary,
    again_bytes: u64,
    touched_blocks: u64,
    written: Written,
    ends: VecDeque<u64>,
}

impl Disk {
    fn add(&mut self, request: &Request, parts: &mut usize) {
        let total = match request.kind {
            Kind::Read => &mut self.found.read,
            Kind::Write => &mut self.found.write,
            Kind::Discard => &mut self.found.discard,
            Kind::Zero => &mut self.found.zero,
            Kind::Flush => {
                self.found.flushes += 1;
                return;
            }
        };
        total.add(request.length_bytes);
        if request.kind == Kind::Write {
            self.write(request, parts);
        }
    }

    fn write(&mut self, request: &Request, parts: &mut usize) {
        let (begin, length) = (request.offset_bytes, request.length_bytes);
        let end = begin.saturating_add(length);
        self.found.fua += u64::from(request.fua);
        let power = length.checked_next_power_of_two().map_or(64, u64::ilog2);
        if let Some(size) = self.found.write_sizes.get_mut(power as usize) {
            size.add(length);
        }
        if let Some(stream) = self.ends.iter_mut().find(|each| **each == begin) {
            *stream = end;
            let sequential = &mut self.found.sequential_write_bytes;
            *sequential = sequential.saturating_add(length);
        } else {
            if self.ends.len() == STREAMS {
                self.ends.pop_front();
            }
            self.ends.push_back(end);
        }
        if begin < end {
            let blocks = (end - 1) / BLOCK_BYTES - begin / BLOCK_BYTES + 1;
            self.touched_blocks = self.touched_blocks.saturating_add(blocks);
        }
        let again = self.written.mark(begin, end, parts);
        self.again_bytes = self.again_bytes.saturating_add(again);
    }

    fn finished(self) -> Summary {
        let is_known = !self.written.is_too_large;
        Summary {
            again_write_bytes: is_known.then_some(self.again_bytes),
            distinct_bytes: is_known.then_some(self.written.blocks * BLOCK_BYTES),
            touched_bytes: is_known.then_some(self.touched_blocks.saturating_mul(BLOCK_BYTES)),
            ..self.found
        }
    }
}

impl Total {
    fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Set of blocks, by part. It is empty if it would take too much memory.
#[derive(Default)]
struct Written {
    parts: HashMap<u64, Box<Part>>,
    blocks: u64,
    is_too_large: bool,
}

struct Part {
    words: [u64; WORDS],
    count: u64,
}

impl Written {
    /// Adds the blocks of a range, and returns the bytes of the range in blocks that were there.
    /// `left`: parts that may still be made.
    fn mark(&mut self, begin: u64, end: u64, left: &mut usize) -> u64 {
        if self.is_too_large || begin >= end {
            return 0;
        }
        let part_bytes = PART_BLOCKS * BLOCK_BYTES;
        let (first, last) = (begin / part_bytes, (end - 1) / part_bytes);
        if last - first >= MOST_PARTS as u64 {
            self.give_up();
            return 0;
        }
        let mut again = 0;
        for number in first..=last {
            if !self.parts.contains_key(&number) {
                if *left == 0 {
                    self.give_up();
                    return 0;
                }
                *left -= 1;
            }
            let part = self.parts.entry(number).or_default();
            let base = number * part_bytes;
            let (from, to) = (begin.max(base) - base, (end - base).min(part_bytes));
            if part.count == PART_BLOCKS {
                again += to - from;
                continue;
            }
            let before = part.count;
            again += part.mark(from, to);
            self.blocks += part.count - before;
        }
        again
    }

    fn give_up(&mut self) {
        self.is_too_large = true;
        self.parts = HashMap::new();
    }
}

impl Default for Part {
    fn default() -> Self {
        Part {
            words: [0; WORDS],
            count: 0,
        }
    }
}

impl Part {
    /// Adds the blocks of a range within this part, and returns its bytes in blocks that were
    /// there.
    fn mark(&mut self, from: u64, to: u64) -> u64 {
        let mut again = 0;
        for block in from / BLOCK_BYTES..=(to - 1) / BLOCK_BYTES {
            let Some(word) = self.words.get_mut((block / 64) as usize) else {
                break;
            };
            let bit = 1 << (block % 64);
            if *word & bit == 0 {
                *word |= bit;
                self.count += 1;
            } else {
                let begin = (block * BLOCK_BYTES).max(from);
                again += ((block + 1) * BLOCK_BYTES).min(to) - begin;
            }
        }
        again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(requests: &[(u64, u64)]) -> Summary {
        let (mut disk, mut parts) = (Disk::default(), 4);
        for &(offset_bytes, length_bytes) in requests {
            let request = Request {
                time_ns: 0,
                disk: 0,
                kind: Kind::Write,
                fua: false,
                offset_bytes,
                length_bytes,
            };
            disk.add(&request, &mut parts);
        }
        disk.finished()
    }

    #[test]
    fn a_write_that_continues_another_is_sequential() {
        let found = written(&[
            (0, 4096),
            (1 << 20, 512),
            (4096, 8192),
            ((1 << 20) + 512, 512),
        ]);
        assert_eq!(found.write.requests, 4);
        assert_eq!(found.sequential_write_bytes, 8192 + 512);
        assert_eq!(found.write_sizes[12].bytes, 4096);
        assert_eq!(found.write_sizes[9].requests, 2);
    }

    #[test]
    fn a_place_is_written_again_by_blocks() {
        // The second write lies half in a block that was written, half in one that was not.
        let found = written(&[(0, 4096), (2048, 4096), (6144, 2048)]);
        assert_eq!(found.again_write_bytes, Some(2048 + 2048));
        assert_eq!(found.distinct_bytes, Some(8192));
        assert_eq!(found.touched_bytes, Some(4096 + 8192 + 4096));
    }

    #[test]
    fn parts_that_are_full_count_as_a_whole() {
        let part = PART_BLOCKS * BLOCK_BYTES;
        let found = written(&[(0, 2 * part), (part - 4096, 8192)]);
        assert_eq!(found.again_write_bytes, Some(8192));
        assert_eq!(found.distinct_bytes, Some(2 * part));
    }

    #[test]
    fn sums_and_addresses_at_the_end_of_their_range_are_no_overflow() {
        let found = written(&[(u64::MAX - 511, 511), (u64::MAX - 511, 511)]);
        assert_eq!(found.again_write_bytes, Some(511));
        let half = (1 << 63, u64::MAX >> 1);
        let found = written(&[(0, 1 << 63), half, half, half]);
        assert_eq!(found.sequential_write_bytes, u64::MAX >> 1);
        let found = written(&[(0, u64::MAX), (u64::MAX, 0), (u64::MAX, 0)]);
        assert_eq!(found.write.requests, 3);
    }

    #[test]
    fn too_many_places_are_unknown_and_all_else_is_not() {
        for far in [
            &[(0, u64::MAX)][..],
            &[
                (0, 512),
                (1 << 40, 512),
                (1 << 50, 512),
                (1 << 60, 512),
                (1 << 62, 512),
            ],
        ] {
            let found = written(far);
            assert_eq!(found.again_write_bytes, None);
            assert_eq!(found.write.requests, far.len() as u64);
        }
    }
}
