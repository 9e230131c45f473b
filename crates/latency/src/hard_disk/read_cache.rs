//! The part of a drive's buffer that holds what was read, and what the drive reads ahead while it
//! has nothing else to do.

use super::{geometry::Geometry, parameters::Electronics};
use std::collections::VecDeque;

/// A range in the buffer.
#[derive(Debug, Clone, Copy)]
struct Segment {
    first: u64,
    end: u64,
}

/// Reading ahead, in the newest segment.
#[derive(Debug, Clone, Copy)]
struct Ahead {
    /// The drive begins to read `from` at `from_ns` and would stop at `limit`.
    from: u64,
    from_ns: u64,
    limit: u64,
    /// When it stops there.
    until_ns: u64,
}

impl Ahead {
    fn new(geometry: &Geometry, from: u64, from_ns: u64, limit: u64) -> Ahead {
        Ahead {
            from,
            from_ns,
            limit,
            until_ns: from_ns + geometry.transfer_ns(from, limit - from),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct ReadCache {
    /// The newest first.
    segments: VecDeque<Segment>,
    most_segments: usize,
    segment_bytes: u64,
    ahead_bytes: u64,
    ahead: Option<Ahead>,
}

impl ReadCache {
    pub(super) fn new(model: &Electronics) -> ReadCache {
        ReadCache {
            segments: VecDeque::new(),
            most_segments: model.read_segments as usize,
            segment_bytes: model.read_segment_bytes,
            ahead_bytes: model.read_ahead_bytes,
            ahead: None,
        }
    }

    /// When the whole range is in the buffer if the drive reads on; none if it would not be.
    pub(super) fn available_ns(&self, geometry: &Geometry, first: u64, length: u64) -> Option<u64> {
        let end = first + length;
        for (at, segment) in self.segments.iter().enumerate() {
            if first < segment.first {
                continue;
            }
            if end <= segment.end {
                return Some(0);
            }
            if let Some(ahead) = self.ahead.filter(|ahead| at == 0 && end <= ahead.limit) {
                return Some(ahead.from_ns + geometry.transfer_ns(ahead.from, end - ahead.from));
            }
        }
        None
    }

    /// A range is read from the medium; the drive then reads on from `end_ns` until
    /// [`stop`](ReadCache::stop).
    pub(super) fn read(
        &mut self,
        geometry: &Geometry,
        (first, end): (u64, u64),
        end_ns: u64,
        capacity_bytes: u64,
    ) {
        if self.most_segments == 0 {
            return;
        }
        self.segments.truncate(self.most_segments - 1);
        let first = first.max(end.saturating_sub(self.segment_bytes));
        self.segments.push_front(Segment { first, end });
        let limit = (end + self.ahead_bytes).min(capacity_bytes).max(end);
        self.ahead = Some(Ahead::new(geometry, end, end_ns, limit));
    }

    /// The host wants what is read ahead: a drive that still reads goes on further.
    pub(super) fn wanted(
        &mut self,
        geometry: &Geometry,
        now_ns: u64,
        end: u64,
        capacity_bytes: u64,
    ) {
        let limit = (end + self.ahead_bytes).min(capacity_bytes);
        if let Some(ahead) = self.ahead
            && ahead.until_ns > now_ns
            && (ahead.from + 1..=ahead.limit).contains(&end)
            && limit > ahead.limit
        {
            self.ahead = Some(Ahead::new(geometry, ahead.from, ahead.from_ns, limit));
        }
    }

    /// When the drive has read ahead as far as it would; none if it does not read ahead.
    pub(super) fn ahead_until_ns(&self) -> Option<u64> {
        self.ahead.map(|ahead| ahead.until_ns)
    }

    /// The drive does something else from `now_ns` on. Returns the first byte that it did not read
    /// ahead.
    pub(super) fn stop(&mut self, geometry: &Geometry, now_ns: u64) -> Option<u64> {
        let ahead = self.ahead.take()?;
        let newest = self.segments.front_mut()?;
        let passed = now_ns.saturating_sub(ahead.from_ns);
        newest.end = geometry
            .reached(ahead.from, passed, ahead.limit)
            .max(newest.end);
        newest.first = newest
            .first
            .max(newest.end.saturating_sub(self.segment_bytes));
        Some(newest.end)
    }

    /// What was written is no longer right in the buffer.
    pub(super) fn forget(&mut self, first: u64, end: u64) {
        if let (Some(ahead), Some(newest)) = (self.ahead, self.segments.front())
            && first < ahead.limit
            && newest.first < end
        {
            self.ahead = None;
        }
        self.segments
            .retain(|segment| end <= segment.first || segment.end <= first);
    }
}
