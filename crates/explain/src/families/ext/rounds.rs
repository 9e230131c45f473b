//! Logical time without a journal: writes between two flushes belong together.
//!
//! A sync or fsync ends with a flush. Before the flush, data and the metadata that maps it are
//! written in any order: a sync starts writeback of all inodes at once, including the block
//! device's own (`ksys_sync`, `wakeup_flusher_threads`). Without a flush, in the kernel's
//! background writeback, the metadata that follows data names its owner.

/// Instant in this logical time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Round {
    /// Number of flushes before this instant.
    pub(super) epoch: u32,
    /// Number of times that data followed metadata since the last flush.
    turn: u32,
}

impl Round {
    /// Returns whether metadata written at `metadata` determines the owner of data written at this
    /// instant. It does if it was written later, or before the same flush and that flush has
    /// completed.
    pub(super) fn is_told_by(self, metadata: Round, now: Round) -> bool {
        metadata >= self || (metadata.epoch >= self.epoch && now.epoch > self.epoch)
    }

    /// Returns whether both precede the same flush, or this instant precedes the flush before it.
    pub(super) fn is_near(self, later: Round) -> bool {
        self.epoch + 1 >= later.epoch
    }

    /// Returns whether both precede the same flush.
    pub(super) fn is_with(self, other: Round) -> bool {
        self.epoch == other.epoch
    }
}

/// Counter of rounds.
#[derive(Debug)]
pub(super) struct Rounds {
    /// Round of current writes.
    pub(super) now: Round,
    has_metadata: bool,
}

impl Default for Rounds {
    /// Starts after the default [`Round`], which precedes all others.
    fn default() -> Rounds {
        Rounds {
            now: Round { epoch: 1, turn: 0 },
            has_metadata: false,
        }
    }
}

impl Rounds {
    /// Records a write of an inode or a node.
    pub(super) fn metadata(&mut self) {
        self.has_metadata = true;
    }

    /// Records a write of data.
    pub(super) fn data(&mut self) {
        self.now.turn += u32::from(std::mem::take(&mut self.has_metadata));
    }

    /// Records a completed flush.
    pub(super) fn flush(&mut self) {
        self.has_metadata = false;
        self.now = Round {
            epoch: self.now.epoch.saturating_add(1),
            turn: 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_tells_of_data_before_it_at_once_and_of_data_after_it_with_the_flush() {
        let mut rounds = Rounds::default();
        rounds.metadata();
        let inode = rounds.now;
        rounds.data();
        let data = rounds.now;
        assert!(data.is_told_by(rounds.now, rounds.now));
        assert!(!data.is_told_by(inode, rounds.now));
        rounds.flush();
        assert!(data.is_told_by(inode, rounds.now));
        rounds.data();
        assert!(!rounds.now.is_told_by(inode, rounds.now));
        assert!(!rounds.now.is_told_by(Round::default(), rounds.now));
    }
}
