//! A part of the NAND that is programmed with one bit per cell, which is fast, and emptied while
//! the device is idle.

use super::parameters::Slc as Model;
use crate::transfer::Rate;

/// Pause after which a device begins to empty its cache. Assumption: shorter gaps are those of a
/// busy host.
const PAUSE_NS: u64 = 10_000_000;

#[derive(Debug, Clone)]
pub(super) struct SlcCache {
    capacity_bytes: u64,
    /// Rate at which an idle device moves data out of the cache; `None`: never.
    fold: Option<Rate>,
    held_bytes: u64,
    /// Instant at which the last program ended.
    idle_ns: u64,
}

impl SlcCache {
    pub(super) fn new(model: &Model) -> SlcCache {
        SlcCache {
            capacity_bytes: model.bytes,
            fold: (model.fold_bytes_per_s > 0).then(|| Rate::new(model.fold_bytes_per_s)),
            held_bytes: 0,
            idle_ns: 0,
        }
    }

    /// Takes bytes that are programmed at `now_ns`. False if the cache has no room for them.
    pub(super) fn take(&mut self, now_ns: u64, bytes: u64) -> bool {
        if self.capacity_bytes == 0 {
            return false;
        }
        if let Some(fold) = self.fold
            && let Some(idle_ns) = now_ns.checked_sub(self.idle_ns + PAUSE_NS)
        {
            let folded = fold.bytes(idle_ns);
            self.held_bytes = self.held_bytes.saturating_sub(folded);
        }
        self.idle_ns = self.idle_ns.max(now_ns);
        let has_room = self.held_bytes + bytes <= self.capacity_bytes;
        if has_room {
            self.held_bytes += bytes;
        }
        has_room
    }

    /// Notes that a program ends at `done_ns`: until then, the device is not idle.
    pub(super) fn busy_until(&mut self, done_ns: u64) {
        self.idle_ns = self.idle_ns.max(done_ns);
    }
}
