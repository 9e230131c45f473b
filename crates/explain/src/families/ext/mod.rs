//! Family of ext2, ext3 and ext4. The use of each block follows from metadata as it is committed or
//! written home. Committed metadata is read from the journal's copies.

mod blocks;
mod causes;
mod change;
mod commit;
mod explain;
mod fast_commits;
mod formatting;
mod groups;
mod journal;
mod journaled;
mod links;
mod metadata;
mod moved;
mod names;
mod naming;
mod ownership;
mod pending;
mod pieces;
mod places;
mod release;
mod renames;
mod rounds;
mod running;
mod state;

use crate::{Cause, Causes, Disks, Family, FormattedDisks, Row, Rows, Structure, Write};
use fscost_ondisk::ext::{
    directory, fast_commit, inode, journal as jbd2, layout, map, superblock, xattr,
};
use fscost_recording::{Image, Result};
use pieces::blocks_of;
use running::Running;
use state::State;
use std::{mem::take, ops::Range};
use superblock::Superblock;

/// Returns the family that follows `disk`, if it holds one of these file systems. `image` is the
/// disk as mkfs left it.
pub fn detect(
    formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let Some(superblock) = superblock_of(image)?.filter(|s| !s.is_journal_device()) else {
        return Ok(None);
    };
    let mut journal_disk = None;
    if superblock.has_journal() && superblock.journal_inode == 0 {
        for other in formatted.others(disk) {
            let (other, mut image) = other?;
            let found = superblock_of(&mut image)?;
            if found.is_some_and(|s| s.is_journal_device() && s.uuid == superblock.journal_uuid) {
                journal_disk = Some(other);
            }
        }
    }
    Ok(Some(Box::new(Ext {
        disk,
        journal_disk,
        superblock,
        formatting: Vec::new(),
        written: Vec::new(),
        running: None,
    })))
}

fn superblock_of(image: &mut Image<'_>) -> Result<Option<Superblock>> {
    let mut bytes = [0; superblock::BYTES];
    if image.size_bytes() < superblock::AT + bytes.len() as u64 {
        return Ok(None);
    }
    image.read_at(superblock::AT, &mut bytes)?;
    Ok(Superblock::parse(&bytes))
}

/// An ext2, ext3 or ext4 file system.
struct Ext {
    disk: u16,
    journal_disk: Option<u16>,
    superblock: Superblock,
    /// Writes of mkfs that are not yet explained.
    formatting: Vec<Row>,
    /// Blocks of the file system's own disk that mkfs wrote with content.
    written: Vec<Range<u64>>,
    /// State of the file system, set once mkfs has ended.
    running: Option<Running>,
}

impl Family for Ext {
    fn name(&self) -> &'static str {
        "ext"
    }

    fn owns(&self, disk: u16) -> bool {
        disk == self.disk || Some(disk) == self.journal_disk
    }

    /// True without a journal, because data is compared with the nodes that will map it.
    fn reads_all(&self) -> bool {
        !self.superblock.has_journal()
    }

    fn reads(&self, disk: u16, offset: u64, length: u64) -> bool {
        let running = self.running.as_ref().filter(|_| disk == self.disk);
        running.is_none_or(|running| running.reads(offset, length))
    }

    fn write(&mut self, write: &Write<'_>, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        if write.formatting {
            let row = write.row(Structure::Unused, Causes::one(Cause::Format));
            if write.disk == self.disk && !write.content.is_empty() {
                let block_bytes = u64::from(self.superblock.block_bytes);
                self.written.push(blocks_of(&row, block_bytes));
            }
            self.formatting.push(row);
            return Ok(());
        }
        let is_home = write.disk == self.disk;
        let running = self.run(disks, rows)?;
        match is_home {
            true => running.home(write, disks, rows),
            false => running.journal_disk(write, disks, rows),
        }
    }

    /// The kernel zeroes inode tables that mkfs left uninitialised (`ext4_init_inode_table`), and
    /// the rest of a small extent that was allocated but not written (`ext4_ext_zeroout`). It
    /// discards blocks that a committed transaction has freed. Without a journal, it discards freed
    /// blocks before that change is on the disk.
    fn is_in_use(&self, disk: u16, offset: u64, length: u64) -> bool {
        let running = self.running.as_ref().filter(|_| disk == self.disk);
        running.is_some_and(|running| running.is_in_use(offset, length))
    }

    fn flush(&mut self, _: u16, _: u64, rows: &mut Rows) -> Result<()> {
        if let Some(running) = &mut self.running {
            running.state.rounds.flush();
            running.naming.flush(&mut running.state.names, rows);
        }
        Ok(())
    }

    fn mark(&mut self, _: u64, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        match &mut self.running {
            Some(running) => running.settle(disks, rows),
            None => Ok(()),
        }
    }

    fn finish(&mut self, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        self.run(disks, rows)?.finish(disks, rows)
    }
}

impl Ext {
    fn run(&mut self, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<&mut Running> {
        let running = match self.running.take() {
            Some(running) => running,
            None => {
                let state = State::load(
                    self.superblock.clone(),
                    self.disk,
                    take(&mut self.written),
                    disks,
                )?;
                let running = Running::load(state, self.journal_disk, disks)?;
                for row in take(&mut self.formatting) {
                    running.formatted(row, rows);
                }
                running
            }
        };
        Ok(self.running.insert(running))
    }
}
