//! Files of a file system: the owners of the bytes on its disks, their names, and the data that
//! waits for an owner.
//!
//! Families that learn owners from metadata alone use this state. A written block is first
//! attributed to its last known owner, and then waits: metadata that names a new owner is written
//! later.

mod below;
mod given;
mod naming;

use crate::bytes::is_zero;
use crate::track::names::{Names, Place};
use crate::track::runs::Runs;
use crate::track::waiting::{MAX_WAITING, Waiting};
use crate::{Cause, Causes, NO_INODE, Row, Rows, Structure, Write};
use below::Renamed;
use given::GivenNames;
use naming::Unnamed;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Interval between name lookups in file systems that do not show when metadata is on the disk.
/// Data waits in memory for at least this long.
const TICK_NS: u64 = 1_000_000_000;
/// The present owner is final after this many intervals without metadata that names another.
/// Metadata is written after 35 s at the latest (`vm.dirty_expire_centisecs`).
const PATIENCE: u32 = 45;

/// Owner of a block, and the block's structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The inode, or [`NO_INODE`].
    pub inode: u64,
    /// Structure of the owner's blocks.
    pub structure: Structure,
}

impl Owner {
    /// Returns the owner of blocks that belong to the file system itself.
    pub const fn no_inode(structure: Structure) -> Owner {
        Owner {
            inode: NO_INODE,
            structure,
        }
    }
}

/// Explanation that a family gives for a part of a write.
#[derive(Debug, Clone, Copy, Default)]
pub struct Part {
    /// Structure of the part.
    pub structure: Structure,
    /// Causes of the write.
    pub causes: Causes,
    /// Inode that owns the part, or [`NO_INODE`].
    pub inode: u64,
    /// Transaction or checkpoint that contains the part.
    pub transaction: Option<u64>,
    /// Number of the copy, from 0.
    pub copy: u8,
}

impl Part {
    /// Creates a part whose structure belongs to no file.
    pub fn new(structure: Structure, cause: Cause) -> Part {
        Part {
            structure,
            causes: Causes::one(cause),
            ..Part::default()
        }
    }
}

/// A moment: the number of rows, and the event of the last write.
#[derive(Debug, Clone, Copy, Default)]
struct At {
    rows: usize,
    event: u64,
}

impl At {
    /// Returns whether a row was written before this moment. Parts split off a row have their own
    /// numbers.
    fn is_after(self, number: usize, row: &Row) -> bool {
        number < self.rows || row.event < self.event
    }
}

/// Names and their inodes.
type Held = Vec<(Box<[u8]>, u64)>;

/// Owners of a disk's bytes, names of inodes, and rows that wait for either.
#[derive(Debug, Default)]
pub struct Files {
    /// Structure of blocks that no metadata describes.
    unowned: Structure,
    owners: Runs<Owner>,
    names: Names,
    waiting: Waiting,
    /// Rows whose path is to be set.
    unnamed: Vec<Unnamed>,
    /// Rows whose path was still unknown, by inode, with the number of lookups since. Flushes may
    /// be more frequent than new names and are not counted.
    nameless: BTreeMap<u64, Vec<(usize, u32)>>,
    /// Inodes of `nameless` rows added since the last flush.
    still_nameless: BTreeSet<u64>,
    given: GivenNames,
    renamed: Renamed,
    /// Last known names at each place, and their directory.
    places: BTreeMap<Place, (u64, Held)>,
    /// Inodes that were freed or reused since the last settling.
    forgotten: HashSet<u64>,
    /// The moment at which each inode was freed or reused.
    renewed: HashMap<u64, At>,
    /// True if writes belong to the files that have their inodes at the next settling; false if
    /// they may belong to earlier ones.
    pub are_new: bool,
    /// The last flush, and the flush before it.
    flushed: (At, At),
    /// The event of the last write.
    event: u64,
    /// True if the owner of data is certain only once metadata confirms it: only metadata is read,
    /// and a block may have had another owner in between.
    is_doubting: bool,
    /// True if a log is read: the owner of a block is then known when the block is written, unless
    /// it has none yet.
    is_logged: bool,
    /// True if each name reaches the disk by itself, at the next flush at the latest. The file may
    /// have had another name than the one that appears after that flush.
    is_doubting_names: bool,
    /// Unlinked inodes: they may still be open, or their blocks may already have another owner.
    buried: HashSet<u64>,
    ticked_ns: u64,
    is_formatting: bool,
}

impl Files {
    /// Creates the state of a file system with this root directory. Writes to unknown places are
    /// `unowned` until an owner is found.
    pub fn new(root: u64, unowned: Structure) -> Files {
        Files {
            unowned,
            names: Names::new(root),
            is_formatting: true,
            ..Files::default()
        }
    }

    /// Creates the same state as [`new`](Self::new), but data is doubtful until metadata written
    /// after it names its owner.
    pub fn doubting(root: u64, unowned: Structure) -> Files {
        Files {
            is_doubting: true,
            ..Files::doubting_names(root, unowned)
        }
    }

    /// Creates the same state as [`new`](Self::new), but a path is doubtful if the name appears
    /// after the flush that should have written it.
    pub fn doubting_names(root: u64, unowned: Structure) -> Files {
        Files {
            is_doubting_names: true,
            ..Files::new(root, unowned)
        }
    }

    /// Prepares for a write. At the first write after mkfs, the owners of everything that mkfs
    /// wrote become final.
    pub fn begin(&mut self, write: &Write<'_>, rows: &mut Rows) {
        if self.is_formatting && !write.formatting {
            self.settle(rows);
            self.waiting = Waiting::default();
        }
        self.is_formatting = write.formatting;
        self.event = write.event;
    }

    fn now(&self, rows: &Rows) -> At {
        At {
            rows: rows.next(),
            event: self.event,
        }
    }

    /// Adds a part of a write that is identified by its content or its place.
    pub fn add(&mut self, write: &Write<'_>, part: Part, rows: &mut Rows) -> usize {
        let causes = match write.formatting {
            true => Causes::one(Cause::Format),
            false => part.causes,
        };
        let path = self.known_path(part.inode, rows);
        let number = rows.push(Row {
            inode: part.inode,
            transaction: part.transaction,
            copy: part.copy,
            path,
            ..write.row(part.structure, causes)
        });
        if !self.is_doubting || !is_of_a_file(part.structure) {
            self.look_up_later(number, part.inode, self.are_new);
        }
        number
    }

    /// Adds a write as a waiting row: the known owner of the range may be outdated.
    pub fn add_waiting(&mut self, write: &Write<'_>, part: Part, rows: &mut Rows) -> usize {
        let number = self.add(write, part, rows);
        self.waiting
            .insert(number, write.offset, write.length, MAX_WAITING);
        number
    }

    /// Removes the rows in the range from the waiting rows; the parts outside keep waiting as
    /// separate rows.
    fn take_waiting(&mut self, offset: u64, length: u64, rows: &mut Rows) -> Vec<usize> {
        let first = rows.next();
        let numbers = self.waiting.take(offset, length, rows);
        for number in first..rows.next() {
            let inode = rows.get_mut(number).map_or(NO_INODE, |row| row.inode);
            if !self.is_doubting {
                self.look_up_later(number, inode, self.are_new);
            }
        }
        numbers
    }

    /// Adds a part of a write that belongs to the known owner of its range, if there is one.
    pub fn add_owned(&mut self, write: &Write<'_>, rows: &mut Rows) {
        let mut rest = *write;
        while rest.length > 0 {
            let (owner, length) = self.owner(rest.offset, rest.length);
            let piece = rest.take_front(length);
            let owner = owner.unwrap_or(Owner::no_inode(match self.unowned {
                // Zeroed blocks that mkfs leaves without an owner are unused.
                _ if write.formatting && is_zero(piece.content) => Structure::Unused,
                _ if write.formatting => Structure::Unknown,
                other => other,
            }));
            let part = Part {
                inode: owner.inode,
                ..Part::new(owner.structure, cause_of(owner.structure))
            };
            let number = self.add_waiting(&piece, part, rows);
            let is_unknown = owner.inode == NO_INODE || self.buried.contains(&owner.inode);
            if (self.is_doubting || self.is_logged && is_unknown)
                && is_of_a_file(owner.structure)
                && !write.formatting
                && let Some(row) = rows.get_mut(number)
            {
                row.is_doubtful = true;
            }
        }
    }

    /// Returns the owner of a byte, and the number of bytes from there on with the same owner, at
    /// most `most`.
    pub fn owner(&self, offset: u64, most: u64) -> (Option<Owner>, u64) {
        match self.owners.at(offset) {
            Some((end, owner)) => (Some(owner), most.min(end - offset)),
            None => {
                let free = self.owners.next(offset).map_or(most, |next| next - offset);
                (None, most.min(free))
            }
        }
    }

    /// Assigns a range to `owner`, together with the rows that wait there.
    pub fn own(&mut self, offset: u64, length: u64, owner: Owner, rows: &mut Rows) {
        let mut done = 0;
        while done < length {
            let at = offset + done;
            let (before, part) = self.owner(at, length - done);
            done += part.max(1);
            if before != Some(owner) {
                self.owners.take(at, at + part);
                self.owners.insert(at, at + part, owner);
            }
            let taken = self.take_waiting(at, part, rows);
            let renewed = self.renewed.get(&owner.inode).copied().unwrap_or_default();
            let mut is_renewed =
                |&row: &usize| rows.get_mut(row).is_some_and(|r| renewed.is_after(row, r));
            let is_changed = before != Some(owner) || taken.iter().any(&mut is_renewed);
            let is_hiding = (self.is_doubting || self.is_logged) && is_changed;
            let seen = is_hiding.then(|| newest(&taken, rows));
            let path = match self.forgotten.contains(&owner.inode) {
                true => None,
                false => self.known_path(owner.inode, rows),
            };
            for number in taken {
                let Some(row) = rows.get_mut(number) else {
                    continue;
                };
                let is_renewed = renewed.is_after(number, row);
                // Metadata written since then did not name this owner.
                let is_late = is_changed && self.flushed.1.is_after(number, row);
                // The row was overwritten since, by this owner or by one that is gone.
                let is_hidden = seen.as_ref().is_some_and(|seen| !seen.contains(&number));
                if is_hidden && row.inode != NO_INODE {
                    continue;
                }
                row.is_doubtful = self.is_doubting && is_late || is_hidden;
                if (row.inode, row.structure) == (owner.inode, owner.structure) {
                    if self.is_doubting || is_renewed {
                        row.path = row.path.filter(|_| !is_renewed).or(path);
                        self.look_up_later(number, owner.inode, true);
                    }
                    continue;
                }
                row.inode = owner.inode;
                row.structure = owner.structure;
                row.path = path;
                if row.causes != Causes::one(Cause::Format) {
                    row.causes = Causes::one(cause_of(owner.structure));
                }
                self.look_up_later(number, owner.inode, true);
            }
        }
    }

    /// Settles pending rows in this range with their current owner; rows without an owner keep
    /// waiting.
    pub fn confirm(&mut self, offset: u64, length: u64, rows: &mut Rows) {
        if self.is_doubting {
            return;
        }
        for number in self.take_waiting(offset, length, rows) {
            if let Some(row) = rows.get_mut(number)
                && row.structure == self.unowned
                && row.inode == NO_INODE
            {
                self.waiting
                    .insert(number, row.offset, row.length, MAX_WAITING);
            }
        }
    }

    /// Switches to owners from the log, which is ahead of all other metadata.
    pub fn trust_log(&mut self) {
        (self.is_doubting, self.is_logged) = (false, true);
        self.is_doubting_names = false;
    }

    /// Marks the inode as unlinked. It is free once no process has it open.
    pub fn bury(&mut self, inode: u64, rows: &mut Rows) {
        self.settle(rows);
        self.names.forget(inode);
        self.buried.insert(inode);
    }

    /// Marks the inode as reused by another file.
    pub fn revive(&mut self, inode: u64, rows: &mut Rows) {
        self.buried.remove(&inode);
        self.forget(inode, rows);
    }

    /// Releases the parts of a range that the inode owns. Rows already written there keep their
    /// present owner.
    pub fn release(&mut self, inode: u64, offset: u64, length: u64, rows: &mut Rows) {
        let mut done = 0;
        while done < length {
            let (owner, part) = self.owner(offset + done, length - done);
            if owner.is_some_and(|owner| owner.inode == inode) {
                self.confirm(offset + done, part, rows);
                self.free(offset + done, part);
            }
            done += part.max(1);
        }
    }

    /// Assigns a range to `owner` for later writes. Rows that wait there keep waiting.
    pub fn expect(&mut self, offset: u64, length: u64, owner: Owner) {
        self.free(offset, length);
        self.owners
            .insert(offset, offset.saturating_add(length), owner);
    }

    /// Removes the owners of a range. Rows that wait there keep waiting.
    pub fn free(&mut self, offset: u64, length: u64) {
        self.owners.take(offset, offset.saturating_add(length));
    }

    /// Advances the time to `time_ns`, and commits once per interval.
    pub fn tick(&mut self, time_ns: u64, rows: &mut Rows) {
        if time_ns.saturating_sub(self.ticked_ns) >= TICK_NS {
            self.ticked_ns = time_ns;
            self.commit(PATIENCE, rows);
        }
    }
}

/// Returns the cause of a write to a block of this structure, as far as the structure determines
/// it.
pub fn cause_of(structure: Structure) -> Cause {
    match structure {
        Structure::FileData => Cause::Data,
        Structure::Directory | Structure::DirectoryIndex => Cause::DirectoryEntries,
        Structure::ExtentMap => Cause::SizeOrExtents,
        Structure::Xattr => Cause::LinksOrMode,
        // A target never changes.
        Structure::Symlink => Cause::NewInode,
        Structure::Unknown => Cause::Unknown,
        Structure::BlockBitmap | Structure::InodeBitmap | Structure::AllocationTable => {
            Cause::Allocation
        }
        _ => Cause::Accounting,
    }
}

/// Returns the inode if it is the only one, otherwise [`NO_INODE`].
pub fn the_only(inodes: &[u64]) -> u64 {
    match *inodes {
        [inode] => inode,
        _ => NO_INODE,
    }
}

/// Returns runs of consecutive numbers, each as first and count; zeroes are left out.
pub fn runs(numbers: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers.filter(|&number| number != 0) {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == number => *count += 1,
            _ => runs.push((number, 1)),
        }
    }
    runs
}

/// Returns whether blocks of this structure are data or attributes. The inode names these whenever
/// it is written.
fn is_of_a_file(structure: Structure) -> bool {
    matches!(structure, Structure::FileData | Structure::Xattr)
}

/// Returns the rows of a range that no later row covers.
fn newest(numbers: &[usize], rows: &mut Rows) -> HashSet<usize> {
    let mut covered: Runs<()> = Runs::default();
    let mut newest = HashSet::new();
    let mut numbers = numbers.to_vec();
    numbers.sort_by_cached_key(|&number| Reverse(rows.age(number)));
    for number in numbers {
        let Some(row) = rows.get_mut(number) else {
            continue;
        };
        let (from, to) = (row.offset, row.offset.saturating_add(row.length));
        let hidden = covered.take(from, to).into_iter();
        let hidden: u64 = hidden.map(|(begin, end, ())| end - begin).sum();
        covered.insert(from, to, ());
        if hidden < row.length {
            newest.insert(number);
        }
    }
    newest
}
