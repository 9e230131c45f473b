//! The part of a drive's buffer that holds data already read, and the data that the drive reads
//! ahead while it is otherwise idle.

use super::{geometry::Geometry, parameters::Electronics};
use std::cell::Cell;

/// A range in the buffer.
#[derive(Debug, Clone, Copy)]
struct Segment {
    first: u64,
    end: u64,
}

/// Reading ahead into the newest segment.
#[derive(Debug, Clone)]
struct Ahead {
    /// First byte read ahead. The drive begins to read `from` at `from_ns` and would stop at
    /// `limit`.
    from: u64,
    from_ns: u64,
    limit: u64,
    /// Instant at which the drive reaches `limit`, cached on first use. A drive with other work
    /// stops at once.
    until_ns: Cell<Option<u64>>,
}

impl Ahead {
    /// Returns the instant at which the drive reaches its limit.
    fn until_ns(&self, geometry: &Geometry) -> u64 {
        if let Some(until_ns) = self.until_ns.get() {
            return until_ns;
        }
        let until_ns = self.reached_ns(geometry, self.limit);
        self.until_ns.set(Some(until_ns));
        until_ns
    }

    /// Returns the instant at which everything before `end` is read.
    fn reached_ns(&self, geometry: &Geometry, end: u64) -> u64 {
        if end == self.from {
            return self.from_ns;
        }
        let begin = geometry.place(self.from);
        self.from_ns + geometry.place_before(end).reading_ns - begin.reading_ns
    }
}

#[derive(Debug, Clone)]
pub(super) struct ReadCache {
    /// Segments, newest first.
    segments: Vec<Segment>,
    most_segments: usize,
    segment_bytes: u64,
    ahead_bytes: u64,
    /// Size of the disk, at which reading ahead ends.
    capacity_bytes: u64,
    ahead: Option<Ahead>,
}

impl ReadCache {
    pub(super) fn new(model: &Electronics, capacity_bytes: u64) -> ReadCache {
        ReadCache {
            segments: Vec::new(),
            most_segments: model.read_segments as usize,
            segment_bytes: model.read_segment_bytes,
            ahead_bytes: model.read_ahead_bytes,
            capacity_bytes,
            ahead: None,
        }
    }

    /// Returns the instant at which the whole range is in the buffer if the drive reads on; `None`
    /// if reading ahead would not cover it.
    pub(super) fn available_ns(&self, geometry: &Geometry, first: u64, length: u64) -> Option<u64> {
        let end = first + length;
        for (at, segment) in self.segments.iter().enumerate() {
            if first < segment.first {
                continue;
            }
            if end <= segment.end {
                return Some(0);
            }
            let ahead = self.ahead.as_ref();
            if let Some(ahead) = ahead.filter(|ahead| at == 0 && end <= ahead.limit) {
                return Some(ahead.reached_ns(geometry, end));
            }
        }
        None
    }

    /// Records that a range was read from the medium. The drive then reads on from `end_ns` until
    /// [`stop`](ReadCache::stop).
    pub(super) fn read(&mut self, first: u64, end: u64, end_ns: u64) {
        if self.most_segments == 0 {
            return;
        }
        self.segments.truncate(self.most_segments - 1);
        let first = first.max(end.saturating_sub(self.segment_bytes));
        self.segments.insert(0, Segment { first, end });
        let limit = (end + self.ahead_bytes).min(self.capacity_bytes).max(end);
        self.ahead = Some(Ahead {
            from: end,
            from_ns: end_ns,
            limit,
            until_ns: Cell::new(None),
        });
    }

    /// Records that the host wants data being read ahead. A drive that is still reading extends its
    /// limit.
    pub(super) fn wanted(&mut self, geometry: &Geometry, now_ns: u64, end: u64) {
        let limit = (end + self.ahead_bytes).min(self.capacity_bytes);
        if let Some(ahead) = &mut self.ahead
            && (ahead.from + 1..=ahead.limit).contains(&end)
            && limit > ahead.limit
            && ahead.until_ns(geometry) > now_ns
        {
            ahead.limit = limit;
            ahead.until_ns.set(None);
        }
    }

    /// Returns the instant at which the drive reaches its read-ahead limit; `None` if it does not
    /// read ahead.
    pub(super) fn ahead_until_ns(&self, geometry: &Geometry) -> Option<u64> {
        self.ahead.as_ref().map(|ahead| ahead.until_ns(geometry))
    }

    /// Ends reading ahead at `now_ns` because the drive has other work. Returns the first byte that
    /// was not read ahead.
    pub(super) fn stop(&mut self, geometry: &Geometry, now_ns: u64) -> Option<u64> {
        let ahead = self.ahead.take()?;
        let newest = self.segments.first_mut()?;
        let passed = now_ns.saturating_sub(ahead.from_ns);
        newest.end = geometry
            .reached(ahead.from, passed, ahead.limit)
            .max(newest.end);
        newest.first = newest
            .first
            .max(newest.end.saturating_sub(self.segment_bytes));
        Some(newest.end)
    }

    /// Drops a written range from the buffer.
    pub(super) fn forget(&mut self, first: u64, end: u64) {
        if let (Some(ahead), Some(newest)) = (&self.ahead, self.segments.first())
            && first < ahead.limit
            && newest.first < end
        {
            self.ahead = None;
        }
        let is_right = |segment: &Segment| end <= segment.first || segment.end <= first;
        if !self.segments.iter().all(is_right) {
            self.segments.retain(is_right);
        }
    }
}
