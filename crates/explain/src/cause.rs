//! Why a block was written: what is different from the version before.

use std::fmt;

macro_rules! causes {
    ($($variant:ident $bit:literal $name:literal $meaning:literal),* $(,)?) => {
        /// One reason why something was written.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause {
            $(#[doc = $meaning] $variant = $bit),*
        }

        impl Cause {
            /// All, in the order of tables.
            pub const ALL: &[Cause] = &[$(Cause::$variant),*];

            /// Its name in tables.
            pub fn name(self) -> &'static str {
                match self { $(Cause::$variant => $name),* }
            }

            /// One line for people.
            pub fn meaning(self) -> &'static str {
                match self { $(Cause::$variant => $meaning),* }
            }
        }
    };
}

causes! {
    Data 0 "data" "the program's data",
    Atime 1 "atime" "access time only",
    Times 2 "times" "other timestamps only (mtime, ctime, change counters)",
    SizeOrMap 3 "size_or_map" "a file's size, or where its blocks are",
    Names 4 "names" "names were made, changed or removed",
    Allocation 5 "allocation" "space or inodes were taken or freed",
    LinksOrMode 6 "links_or_mode" "link count, owner, mode, flags or attributes",
    NewInode 7 "new_inode" "an inode was made",
    InodeRemoved 8 "inode_removed" "an inode was removed",
    Unchanged 9 "unchanged" "the same bytes again (checksums and sequence numbers aside)",
    Format 10 "format" "mkfs and other tools wrote it",
    Log 11 "log" "a journal's or log's own blocks",
    Accounting 12 "accounting" "counters, pointers and checksums that follow from other changes",
    Unknown 13 "unknown" "not understood",
    LazyInit 14 "lazy_init" "the kernel zeroed what mkfs had left for later",
}

/// The reasons for one write: one alone, or several (*mixed*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Causes(u16);

impl Causes {
    /// None yet.
    pub const NONE: Causes = Causes(0);

    /// One.
    pub const fn one(cause: Cause) -> Causes {
        Causes(1 << cause as u16)
    }

    /// This and one more.
    pub const fn with(self, cause: Cause) -> Causes {
        Causes(self.0 | 1 << cause as u16)
    }

    /// The reasons of both.
    pub const fn and(self, other: Causes) -> Causes {
        Causes(self.0 | other.0)
    }

    /// Whether `cause` is among them.
    pub const fn has(self, cause: Cause) -> bool {
        self.0 & (1 << cause as u16) != 0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The only one, if there is only one.
    pub fn only(self) -> Option<Cause> {
        self.iter().next().filter(|_| self.0.count_ones() == 1)
    }

    /// Whether nothing but access times (and the log's own blocks, where it is for nothing else)
    /// made this necessary: what `noatime` saves.
    pub fn is_atime_alone(self) -> bool {
        let log = Causes::one(Cause::Log);
        self.has(Cause::Atime) && self.and(log) == Causes::one(Cause::Atime).and(log)
    }

    /// As they are kept in a file.
    pub(super) const fn bits(self) -> u16 {
        self.0
    }

    /// What [`bits`](Self::bits) gave.
    pub(super) const fn from_bits(bits: u16) -> Causes {
        Causes(bits)
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Cause> {
        Cause::ALL.iter().copied().filter(move |&c| self.has(c))
    }
}

/// `atime`, or `atime+names` for several.
impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, cause) in self.iter().enumerate() {
            write!(f, "{}{}", if number > 0 { "+" } else { "" }, cause.name())?;
        }
        Ok(())
    }
}
