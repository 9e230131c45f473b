//! The files of a file system: which bytes of its disk are whose, under what names, and the data
//! that waits for an owner.
//!
//! For families that learn owners from metadata alone. A written block is at first whoever's it was
//! known to be, and waits: the metadata that says that
//! it is another's by now comes later.

mod naming;

use crate::track::names::{Names, Place};
use crate::track::runs::Runs;
use crate::track::waiting::{MAX_WAITING, Waiting};
use crate::{Cause, Causes, NO_INODE, Row, Rows, Structure, Write};
use naming::Unnamed;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// Where nothing says when metadata is on the disk, names are looked up once in a second, as long
/// as data waits in memory at the least…
const TICK_NS: u64 = 1_000_000_000;
/// …and an owner that metadata has not named for so many of these stays: it is written after 35 s
/// at the latest (`vm.dirty_expire_centisecs`).
const PATIENCE: u32 = 45;

/// Who has a block, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The inode, or [`NO_INODE`].
    pub inode: u64,
    /// What its blocks are.
    pub structure: Structure,
}

/// What a family says of a part of a write.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// What it is.
    pub structure: Structure,
    /// Why it was written.
    pub causes: Causes,
    /// Whose it is, or [`NO_INODE`].
    pub inode: u64,
    /// The transaction or checkpoint that it belongs to.
    pub transaction: Option<u64>,
    /// Which of several copies it is, from 0.
    pub copy: u8,
}

impl Part {
    /// A structure that belongs to no file.
    pub fn new(structure: Structure, cause: Cause) -> Part {
        Part {
            structure,
            causes: Causes::one(cause),
            inode: NO_INODE,
            transaction: None,
            copy: 0,
        }
    }
}

/// A moment: how many rows there were, and the event of the last write.
#[derive(Debug, Clone, Copy, Default)]
struct At {
    rows: usize,
    event: u64,
}

impl At {
    /// Whether a row was written before. What was cut off a row has a number of its own.
    fn is_after(self, number: usize, row: &Row) -> bool {
        number < self.rows || row.event < self.event
    }
}

/// Names and their inodes.
type Held = Vec<(Box<[u8]>, u64)>;

/// Owners of a disk's bytes, names of inodes, and rows that wait for either.
#[derive(Debug)]
pub struct Files {
    /// What nobody has said anything of.
    unowned: Structure,
    owners: Runs<Owner>,
    names: Names,
    waiting: Waiting,
    /// Rows whose path is to be set.
    unnamed: Vec<Unnamed>,
    /// Those of which it was not known then, by inode, and how often they were looked up since.
    /// Flushes may come faster than names: they are not counted.
    nameless: HashMap<u64, Vec<(usize, u32)>>,
    /// What each place that holds names held last, and of which directory.
    places: HashMap<Place, (u64, Held)>,
    /// Inodes that were freed or became other files since the last settling.
    forgotten: HashSet<u64>,
    /// When an inode was freed or became another file.
    renewed: HashMap<u64, At>,
    /// Whether what is written is of the files that the next settling knows.
    are_new: bool,
    /// The last flush, and the flush before it.
    flushed: (At, At),
    /// The event of the last write.
    event: u64,
    /// Whether data is its owner's for certain only when metadata says so again: nothing but the
    /// places of metadata is read, and a block may have had another owner meanwhile.
    is_doubting: bool,
    /// Whether a log is read: who has a block is known when it is written to, unless nobody has it
    /// yet.
    is_logged: bool,
    /// Inodes without a name, which may be open, or whose blocks may have another owner already.
    buried: HashSet<u64>,
    ticked_ns: u64,
    is_formatting: bool,
}

impl Files {
    /// Of a file system with this root directory. What it writes where nothing is known is
    /// `unowned`, until somebody turns out to have it.
    pub fn new(root: u64, unowned: Structure) -> Files {
        Files {
            unowned,
            owners: Runs::default(),
            names: Names::new(root),
            waiting: Waiting::default(),
            unnamed: Vec::new(),
            nameless: HashMap::new(),
            places: HashMap::new(),
            forgotten: HashSet::new(),
            renewed: HashMap::new(),
            are_new: false,
            flushed: (At::default(), At::default()),
            event: 0,
            is_doubting: false,
            is_logged: false,
            buried: HashSet::new(),
            ticked_ns: 0,
            is_formatting: true,
        }
    }

    /// The same, whose data is doubtful until metadata that is written after it says whose it is.
    pub fn doubting(root: u64, unowned: Structure) -> Files {
        Files {
            is_doubting: true,
            ..Files::new(root, unowned)
        }
    }

    /// A write comes. With the first after mkfs, what that wrote is whose it is.
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

    /// Part of a write of which the content or the place says what it is.
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

    /// What is written from now on is of the files that the next settling knows, or may be of
    /// those before them.
    pub fn set_new(&mut self, are_new: bool) {
        self.are_new = are_new;
    }

    /// The same, where the owner by whom it is told may be another's by now.
    pub fn add_waiting(&mut self, write: &Write<'_>, part: Part, rows: &mut Rows) -> usize {
        let number = self.add(write, part, rows);
        self.waiting
            .insert(number, write.offset, write.length, MAX_WAITING);
        number
    }

    /// What waits in the range waits no longer; what is cut off it waits on, as rows of its own.
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

    /// Part of a write that is its owner's, whoever that is.
    pub fn add_owned(&mut self, write: &Write<'_>, rows: &mut Rows) {
        let mut done = 0;
        while done < write.length {
            let (owner, length) = self.owner(write.offset + done, write.length - done);
            let piece = write.part(done, length);
            let owner = owner.unwrap_or(Owner {
                inode: NO_INODE,
                structure: match self.unowned {
                    // What mkfs leaves without an owner is nobody's.
                    _ if write.formatting && is_zero(piece.content) => Structure::Unused,
                    _ if write.formatting => Structure::Unknown,
                    other => other,
                },
            });
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
            done += length;
        }
    }

    /// Who has a byte, and how many from it on have the same answer, `most` at most.
    pub fn owner(&self, offset: u64, most: u64) -> (Option<Owner>, u64) {
        match self.owners.at(offset) {
            Some((end, owner)) => (Some(owner), most.min(end - offset)),
            None => {
                let free = self.owners.next(offset).map_or(most, |next| next - offset);
                (None, most.min(free))
            }
        }
    }

    /// A range is `owner`'s from now on, and so is what waits there.
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
                // Metadata that was written since then did not say so.
                let is_late = is_changed && self.flushed.1.is_after(number, row);
                // Written over since: by this one, too, or by one that is gone.
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

    /// What was written here until now is whose it is by now; what is nobody's yet waits on.
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

    /// The log is read from now on: it is ahead of all other metadata.
    pub fn trust_log(&mut self) {
        (self.is_doubting, self.is_logged) = (false, true);
    }

    /// The inode has no name any more, and is free when nobody has it open.
    pub fn bury(&mut self, inode: u64, rows: &mut Rows) {
        self.settle(rows);
        self.names.forget(inode);
        self.buried.insert(inode);
    }

    /// The inode is another file than before.
    pub fn revive(&mut self, inode: u64, rows: &Rows) {
        self.buried.remove(&inode);
        self.forget(inode, rows);
    }

    /// The inode gives up this range. Whatever was written there so far keeps its present owner.
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

    /// Nobody has this range any more. What waits there waits on.
    pub fn free(&mut self, offset: u64, length: u64) {
        self.owners.take(offset, offset.saturating_add(length));
    }

    /// It is `time_ns`.
    pub fn tick(&mut self, time_ns: u64, rows: &mut Rows) {
        if time_ns.saturating_sub(self.ticked_ns) >= TICK_NS {
            self.ticked_ns = time_ns;
            self.commit(PATIENCE, rows);
        }
    }
}

/// Why a block of this kind is written, as far as its kind tells.
pub fn cause_of(structure: Structure) -> Cause {
    match structure {
        Structure::FileData => Cause::Data,
        Structure::Directory | Structure::DirectoryIndex => Cause::Names,
        Structure::ExtentMap => Cause::SizeOrMap,
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

/// Runs of numbers that follow each other, as first and count; zeroes are left out.
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

/// Whether blocks of this kind are data or attributes: inodes name them each time that they are
/// written.
fn is_of_a_file(structure: Structure) -> bool {
    matches!(structure, Structure::FileData | Structure::Xattr)
}

/// Of rows that lie in one range, those that no later one covers.
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

fn is_zero(content: &[u8]) -> bool {
    content.iter().all(|&byte| byte == 0)
}
