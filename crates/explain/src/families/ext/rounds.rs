//! Time without a journal: what is written between two flushes belongs together.
//!
//! A sync or fsync ends with a flush. Before it, data and the metadata that maps it come in any
//! order: a sync starts writeback of
//! all inodes at once, the block device's own among them (`ksys_sync`, `wakeup_flusher_threads`).
//! Without a flush, metadata that
//! follows data tells whose it is: what the kernel writes back by itself.

/// An instant in this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Round {
    /// Flushes before it.
    epoch: u32,
    /// How often data followed metadata since the last flush.
    turn: u32,
}

impl Round {
    /// Flushes before it.
    pub(super) fn epoch(self) -> u32 {
        self.epoch
    }

    /// Whether metadata says enough of data that was written then: it was written later, or before
    /// the same flush, which has come.
    pub(super) fn is_told_by(self, metadata: Round, now: Round) -> bool {
        metadata >= self || (metadata.epoch >= self.epoch && now.epoch > self.epoch)
    }

    /// Whether both are before the same flush, or the one before it.
    pub(super) fn is_near(self, later: Round) -> bool {
        self.epoch + 1 >= later.epoch
    }

    /// Whether both are before the same flush.
    pub(super) fn is_with(self, other: Round) -> bool {
        self.epoch == other.epoch
    }
}

/// Counts rounds.
#[derive(Debug)]
pub(super) struct Rounds {
    now: Round,
    has_metadata: bool,
}

impl Default for Rounds {
    /// The default of [`Round`] is before all.
    fn default() -> Rounds {
        Rounds {
            now: Round { epoch: 1, turn: 0 },
            has_metadata: false,
        }
    }
}

impl Rounds {
    /// The round of what is written now.
    pub(super) fn now(&self) -> Round {
        self.now
    }

    /// An inode or a node was written.
    pub(super) fn metadata(&mut self) {
        self.has_metadata = true;
    }

    /// Data was written.
    pub(super) fn data(&mut self) {
        self.now.turn += u32::from(std::mem::take(&mut self.has_metadata));
    }

    /// A flush has completed.
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
        let inode = rounds.now();
        rounds.data();
        let data = rounds.now();
        assert!(data.is_told_by(rounds.now(), rounds.now()));
        assert!(!data.is_told_by(inode, rounds.now()));
        rounds.flush();
        assert!(data.is_told_by(inode, rounds.now()));
        rounds.data();
        assert!(!rounds.now().is_told_by(inode, rounds.now()));
        assert!(!rounds.now().is_told_by(Round::default(), rounds.now()));
    }
}
