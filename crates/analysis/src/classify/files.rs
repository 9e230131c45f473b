//! The files of a file system: which bytes of its disk are whose, under what names, and the data
//! that waits for an owner.
//!
//! For families that learn owners from metadata alone. A written block is at first whoever's it was
//! known to be, and waits: the metadata that says that
//! it is another's by now comes later.

use crate::classify::names::{Entry, Names};
use crate::classify::runs::Runs;
use crate::classify::waiting::{MAX_WAITING, Waiting};
use crate::classify::{Cause, Causes, NO_INODE, PathId, Row, Rows, Structure, Write};
use std::collections::HashMap;

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

/// Owners of a disk's bytes, names of inodes, and rows that wait for either.
#[derive(Debug)]
pub struct Files {
    /// What nobody has said anything of.
    unowned: Structure,
    owners: Runs<Owner>,
    names: Names,
    waiting: Waiting,
    /// Rows whose path is to be set, and their inodes.
    unnamed: Vec<(usize, u64)>,
    /// Those of which it was not known then, and how often they were looked up since. Flushes may
    /// come faster than names: they are not counted.
    nameless: Vec<(usize, u64, u32)>,
    /// Inodes whose files were removed since the last settling: how many of `unnamed` are of those,
    /// and their path.
    removed: HashMap<u64, (usize, Option<PathId>)>,
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
            nameless: Vec::new(),
            removed: HashMap::new(),
            ticked_ns: 0,
            is_formatting: true,
        }
    }

    /// A write comes. With the first after mkfs, what that wrote is whose it is.
    pub fn begin(&mut self, write: &Write<'_>, rows: &mut Rows) {
        if self.is_formatting && !write.formatting {
            self.settle(rows);
            self.waiting = Waiting::default();
        }
        self.is_formatting = write.formatting;
    }

    /// Part of a write of which the content or the place says what it is.
    pub fn add(&mut self, write: &Write<'_>, part: Part, rows: &mut Rows) -> usize {
        let causes = match write.formatting {
            true => Causes::one(Cause::Format),
            false => part.causes,
        };
        let number = rows.push(Row {
            inode: part.inode,
            transaction: part.transaction,
            copy: part.copy,
            ..write.row(part.structure, causes)
        });
        self.look_up_later(number, part.inode);
        number
    }

    /// The same, where the owner by whom it is told may be another's by now.
    pub fn add_waiting(&mut self, write: &Write<'_>, part: Part, rows: &mut Rows) {
        let number = self.add(write, part, rows);
        self.waiting
            .insert(number, write.offset, write.length, MAX_WAITING);
    }

    /// What waits in the range waits no longer; what is cut off it waits on, as rows of its own.
    fn take_waiting(&mut self, offset: u64, length: u64, rows: &mut Rows) -> Vec<usize> {
        let first = rows.next();
        let numbers = self.waiting.take(offset, length, rows);
        for number in first..rows.next() {
            let inode = rows.get_mut(number).map_or(NO_INODE, |row| row.inode);
            self.look_up_later(number, inode);
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
            self.add_waiting(&piece, part, rows);
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
            for number in self.take_waiting(at, part, rows) {
                let Some(row) = rows.get_mut(number) else {
                    continue;
                };
                if (row.inode, row.structure) == (owner.inode, owner.structure) {
                    continue;
                }
                row.inode = owner.inode;
                row.structure = owner.structure;
                row.path = None;
                if row.causes != Causes::one(Cause::Format) {
                    row.causes = Causes::one(cause_of(owner.structure));
                }
                self.look_up_later(number, owner.inode);
            }
        }
    }

    /// What was written here until now is whose it is by now; what is nobody's yet waits on.
    pub fn confirm(&mut self, offset: u64, length: u64, rows: &mut Rows) {
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

    /// Nobody has this range any more. What waits there waits on.
    pub fn free(&mut self, offset: u64, length: u64) {
        self.owners.take(offset, offset.saturating_add(length));
    }

    /// A directory has these names, and perhaps others.
    pub fn name(&mut self, directory: u64, entries: &[Entry<'_>]) {
        self.names.replace(directory, &[], directory, entries);
    }

    /// A new inode has this name, whatever the one of this number had before it.
    pub fn name_new(&mut self, directory: u64, name: &[u8], inode: u64) {
        self.name(directory, &[(name, inode)]);
        self.names.settle(|_| false);
    }

    /// The file that had this inode is removed: what was written of it has the name that is known
    /// by now or none, never one of the next file with this number.
    pub fn remove(&mut self, inode: u64, rows: &mut Rows) {
        self.names.settle(|_| false);
        let path = self.names.path(inode, &mut rows.paths);
        self.removed.insert(inode, (self.unnamed.len(), path));
    }

    fn settle_removed(&mut self, rows: &mut Rows) {
        let removed = std::mem::take(&mut self.removed);
        if removed.is_empty() {
            return;
        }
        let mut name = |number, inode, path| {
            if let Some(row) = rows.get_mut(number)
                && row.inode == inode
            {
                row.path = path;
            }
        };
        self.nameless.retain(|&(number, inode, _)| {
            let found = removed.get(&inode);
            if let Some(&(_, path)) = found {
                name(number, inode, path);
            }
            found.is_none()
        });
        let mut index = 0;
        self.unnamed.retain(|&(number, inode)| {
            let found = removed.get(&inode).filter(|(count, _)| index < *count);
            index += 1;
            if let Some(&(_, path)) = found {
                name(number, inode, path);
            }
            found.is_none()
        });
    }

    /// What was named is known from now on: rows without a path get theirs.
    pub fn settle(&mut self, rows: &mut Rows) {
        self.settle_removed(rows);
        self.names.settle(|_| false);
        for (number, inode) in std::mem::take(&mut self.unnamed) {
            if !self.give_path(number, inode, rows) && self.nameless.len() < MAX_WAITING {
                self.nameless.push((number, inode, 0));
            }
        }
    }

    /// The metadata of before is on the disk: what has waited for `patience` of these has no other
    /// owner.
    pub fn commit(&mut self, patience: u32, rows: &mut Rows) {
        self.settle(rows);
        self.waiting.commit(patience);
        for (number, inode, look_ups) in std::mem::take(&mut self.nameless) {
            if !self.give_path(number, inode, rows) && look_ups < PATIENCE {
                self.nameless.push((number, inode, look_ups + 1));
            }
        }
    }

    /// Whether the inode of a row has a path by now, or the row another inode.
    fn give_path(&mut self, number: usize, inode: u64, rows: &mut Rows) -> bool {
        let Some(path) = self.names.path(inode, &mut rows.paths) else {
            return false;
        };
        if let Some(row) = rows.get_mut(number)
            && row.inode == inode
        {
            row.path = Some(path);
        }
        true
    }

    /// It is `time_ns`.
    pub fn tick(&mut self, time_ns: u64, rows: &mut Rows) {
        if time_ns.saturating_sub(self.ticked_ns) >= TICK_NS {
            self.ticked_ns = time_ns;
            self.commit(PATIENCE, rows);
        }
    }

    /// A name may be on its way still, and the one that is known be of another inode with this
    /// number.
    fn look_up_later(&mut self, row: usize, inode: u64) {
        if inode != NO_INODE && self.unnamed.len() < MAX_WAITING {
            self.unnamed.push((row, inode));
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

fn is_zero(content: &[u8]) -> bool {
    content.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_of_a_removed_file_has_no_name_of_the_next_with_its_inode() {
        let mut files = Files::new(2, Structure::Unknown);
        let mut rows = Rows::default();
        let write = Write {
            event: 1,
            time_ns: 0,
            disk: 0,
            offset: 0,
            length: 4,
            content: &[1; 4],
            formatting: false,
        };
        let add = |files: &mut Files, rows: &mut Rows, inode| {
            let part = Part {
                inode,
                ..Part::new(Structure::FileData, Cause::Data)
            };
            files.add(&write, part, rows)
        };
        let (nameless, named) = (add(&mut files, &mut rows, 5), add(&mut files, &mut rows, 6));
        files.commit(1, &mut rows);
        let unnamed = add(&mut files, &mut rows, 5);
        files.name(2, &[(b"old", 6)]);
        files.remove(5, &mut rows);
        files.remove(6, &mut rows);
        let next = add(&mut files, &mut rows, 5);
        files.name(2, &[(b"new", 5), (b"newer", 6)]);
        files.commit(1, &mut rows);
        let path = |number: usize| {
            let row = rows.to_vec()[number];
            row.path.map(|path| rows.paths.text(path).to_owned())
        };
        assert_eq!([nameless, unnamed].map(path), [None, None]);
        assert_eq!(path(named).as_deref(), Some("/old"));
        assert_eq!(path(next).as_deref(), Some("/new"));
    }
}
