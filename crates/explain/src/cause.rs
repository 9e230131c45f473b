//! Reasons why a block was written: its differences from the previous version.

use crate::catalogue::catalogue;
use std::fmt;

catalogue! {
    /// Reason why something was written.
    Cause
    Data "data" "the program's data",
    Atime "atime" "access time only",
    Times "times" "other timestamps only (mtime, ctime, change counters)",
    SizeOrExtents "size_or_extents" "the size or the extents of a file",
    DirectoryEntries "directory_entries" "directory entries were added, changed or removed",
    Allocation "allocation" "space or inodes were allocated or freed",
    LinksOrMode "links_or_mode" "link count, owner, mode, flags or attributes",
    NewInode "new_inode" "an inode was created",
    InodeRemoved "inode_removed" "an inode was removed",
    Unchanged "unchanged" "the same bytes as before (except checksums and sequence numbers)",
    Format "format" "mkfs and other tools wrote it",
    Log "log" "blocks of the journal or log itself",
    Accounting "accounting" "counters, pointers and checksums that follow from other changes",
    Unknown "unknown" "not understood",
    LazyInit "lazy_init" "the kernel zeroed blocks that mkfs had left to it",
    Relocation "relocation" "a balance or a cleaner moved it to another place",
    Defragmentation "defragmentation" "data was moved to have fewer extents",
    Padding "padding" "fills a record of the xfs log up to the log's unit",
}

/// Set of reasons for one write: a single one, or several (*mixed*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Causes(u32);

impl Causes {
    /// The empty set.
    pub const NONE: Causes = Causes(0);

    /// Returns the set that contains only `cause`.
    pub const fn one(cause: Cause) -> Causes {
        Causes(1 << cause as u16)
    }

    /// Returns this set with `cause` added.
    pub const fn with(self, cause: Cause) -> Causes {
        Causes(self.0 | 1 << cause as u16)
    }

    /// Returns the union of both sets.
    pub const fn and(self, other: Causes) -> Causes {
        Causes(self.0 | other.0)
    }

    /// Returns this set, or `cause` alone if the set is empty.
    pub const fn or(self, cause: Cause) -> Causes {
        match self.is_empty() {
            true => Causes::one(cause),
            false => self,
        }
    }

    /// Returns the causes whose condition is true.
    pub fn of(conditions: impl IntoIterator<Item = (bool, Cause)>) -> Causes {
        let causes = conditions.into_iter().filter(|&(is_true, _)| is_true);
        causes.fold(Causes::NONE, |causes, (_, cause)| causes.with(cause))
    }

    /// Returns whether the set contains `cause`.
    pub const fn has(self, cause: Cause) -> bool {
        self.0 & (1 << cause as u16) != 0
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the only cause if the set has exactly one.
    pub fn only(self) -> Option<Cause> {
        self.iter().next().filter(|_| self.0.count_ones() == 1)
    }

    /// Returns whether access times alone made this write necessary, so that `noatime` would save
    /// it. The log's own blocks and padding do not count as another reason.
    pub fn is_atime_alone(self) -> bool {
        let log = Causes::one(Cause::Log).with(Cause::Padding);
        self.has(Cause::Atime) && self.and(log) == Causes::one(Cause::Atime).and(log)
    }

    /// Returns the set as it is stored in a file.
    pub(super) const fn bits(self) -> u32 {
        self.0
    }

    /// Restores causes from [`bits`](Self::bits).
    pub(super) const fn from_bits(bits: u32) -> Causes {
        Causes(bits)
    }

    /// Iterates over the causes in the set.
    pub fn iter(self) -> impl Iterator<Item = Cause> {
        Cause::ALL.iter().copied().filter(move |&c| self.has(c))
    }
}

/// Formats the set as `atime`, or as `atime+directory_entries` for several causes.
impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, cause) in self.iter().enumerate() {
            write!(f, "{}{}", if number > 0 { "+" } else { "" }, cause.name())?;
        }
        Ok(())
    }
}
