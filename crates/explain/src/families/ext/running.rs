//! Explanation of each write to a file system in use.

use std::{collections::BTreeMap, ops::Range};

use super::{
    blocks::{Area, Content, Kind, Run, Use, is_data, structure_of},
    fast_commits::FastCommits,
    jbd2,
    journal::Journal,
    naming::Naming,
    pending::Pending,
    pieces::{BlockWrite, blocks_of, push_merged},
    state::{Blocks, Explanation, State, Trust},
};
use crate::track::reused::Open;
use crate::{Cause, Causes, Disks, Row, Rows, Structure, Write, hash::HashMap};
use fscost_recording::Result;

/// A file system in use.
pub(super) struct Running {
    pub(super) state: State,
    pub(super) journal: Option<Journal>,
    /// Causes of home writes of journaled blocks: all changes committed since the previous home
    /// write.
    pub(super) checkpoints: HashMap<u64, Checkpoint>,
    pub(super) pending: Pending,
    pub(super) fast_commits: FastCommits,
    pub(super) open: Open,
    /// Names of row owners. Used only without a journal.
    pub(super) naming: Naming,
    /// Rows of the journal's own blocks, by transaction.
    pub(super) own: HashMap<u32, Vec<usize>>,
    /// Causes of home writes, by the transaction that last copied each block. The journal's tail
    /// moves past a transaction once all its blocks are written home.
    pub(super) written_home: BTreeMap<u32, Causes>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Checkpoint {
    pub(super) what: Explanation,
    pub(super) transaction: u32,
}

impl Running {
    /// Loads the journal of a file system that mkfs created, and starts to follow both.
    pub(super) fn load(
        state: State,
        journal_disk: Option<u16>,
        disks: &mut Disks<'_>,
    ) -> Result<Running> {
        let bytes = state.block_bytes();
        let (mut places, mut position) = (Vec::new(), 0);
        let mut content = vec![0; bytes as usize];
        if let Some(disk) = journal_disk {
            // An external journal's own superblock follows the superblock that identifies it as
            // part of a file system (`ext4_get_journal_blkdev`). Its positions are block numbers.
            let first = state.superblock.primary_block() + 1;
            disks.read(disk, first * bytes, &mut content)?;
            position = first as u32;
            // Positions have 32 bits.
            places.push((first, (1 << 32) - first, position));
        } else if state.superblock.journal_inode != 0 {
            places = state.places_of(state.superblock.journal_inode, disks)?;
            if let Some(&(block, ..)) = places.iter().find(|p| p.2 == 0) {
                disks.read(state.disk, block.saturating_mul(bytes), &mut content)?;
            }
        }
        let journal = jbd2::Superblock::parse(&content);
        let journal = journal.map(|superblock| Journal::new(places, position, superblock));
        Ok(Running::new(state, journal))
    }

    pub(super) fn new(state: State, journal: Option<Journal>) -> Running {
        Running {
            state,
            journal,
            checkpoints: HashMap::default(),
            pending: Pending::default(),
            fast_commits: FastCommits::default(),
            open: Open::default(),
            naming: Naming::default(),
            own: HashMap::default(),
            written_home: BTreeMap::new(),
        }
    }

    /// Returns whether the content of these bytes stays in use. Without a journal, only structures
    /// at fixed places certainly do.
    pub(super) fn is_in_use(&self, offset: u64, length: u64) -> bool {
        let stays = |used: Use| self.journal.is_some() || matches!(used.kind, Kind::Fixed(_));
        let runs = self.runs(offset, length);
        !runs.is_empty() && runs.iter().all(|run| run.used.is_some_and(stays))
    }

    /// Returns whether [`home`](Self::home) reads the content of a write to this range. With a
    /// journal, it does not read data.
    pub(super) fn reads(&self, offset: u64, length: u64) -> bool {
        let is_read =
            |used: Use| used.kind.is_metadata() || used.kind == Kind::Content(Content::Journal);
        let mut runs = self.runs(offset, length).into_iter();
        self.journal.is_none() || runs.any(|run| run.used.is_some_and(is_read))
    }

    /// Returns the runs of the blocks that these bytes touch.
    fn runs(&self, offset: u64, length: u64) -> Vec<Run> {
        let bytes = self.state.block_bytes();
        let end = offset.saturating_add(length).div_ceil(bytes);
        let first = offset / bytes;
        self.state.space.runs(first, end.saturating_sub(first))
    }

    /// Explains a write to the file system's own disk.
    pub(super) fn home(
        &mut self,
        write: &Write<'_>,
        disks: &mut Disks<'_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let runs = self.runs(write.offset, write.length);
        let mut write = BlockWrite::new(write, self.state.block_bytes());
        let mut waiting = Vec::new();
        let mut contents: Vec<(u64, Vec<u8>)> = Vec::new();
        self.begin(&runs);
        for run in runs {
            let blocks = run.start..run.end();
            match run.used {
                None if run.start >= self.state.superblock.blocks => {
                    write.add(blocks, Structure::Unused, Cause::Accounting);
                }
                None => waiting.push(run),
                Some(used) if self.journal.is_none() && is_data(used.kind) => waiting.push(run),
                Some(used) if used.kind == Kind::Content(Content::Journal) => {
                    self.journal_blocks(&mut write, blocks, disks)?;
                }
                Some(used) if used.kind.is_metadata() => {
                    for block in self.with_content(&mut write, used, blocks) {
                        let content = write.content_of(block, disks)?;
                        if self.journal.is_none() && !self.state.has_form_of(used.kind, &content) {
                            waiting.push(Run {
                                start: block,
                                length: 1,
                                used: None,
                                file_block: None,
                            });
                            continue;
                        }
                        let Some(due) = self.checkpoint(block, &content) else {
                            contents.push((block, content));
                            continue;
                        };
                        let transaction = Some(due.transaction.into());
                        let row = self.row(write.part(block..block + 1), due.what, rows);
                        write.found.push(Row { transaction, ..row });
                    }
                }
                Some(used) => {
                    let shift = self.state.shift_of(run.start, run.file_block);
                    let row = self.row(write.part(blocks), of_content(used), rows);
                    write.found.push(Row { shift, ..row });
                }
            }
        }
        for run in waiting {
            self.wait(&write, run, rows);
        }
        if !contents.is_empty() {
            self.apply(&mut write, &contents, disks, rows)?;
        }
        for number in push_merged(write.found, rows) {
            self.keep_own(number, rows);
            if self.journal.is_none() {
                self.name(number, self.state.names.epoch, rows);
                self.wait_with_owner(number, rows);
            }
        }
        self.commit(disks, rows)
    }

    /// Applies the metadata of a write that no journal explains.
    fn apply(
        &mut self,
        write: &mut BlockWrite<'_>,
        contents: &[(u64, Vec<u8>)],
        disks: &mut Disks<'_>,
        rows: &mut Rows,
    ) -> Result<()> {
        let mut blocks: Blocks<'_> = contents.iter().map(|(b, c)| (*b, c.as_slice())).collect();
        // Blocks that the metadata of this write claims may be part of the write.
        for (index, content) in write.whole_blocks() {
            let used = self.state.space.get(index);
            if used.is_none_or(|used| self.journal.is_none() && is_data(used.kind)) {
                blocks.entry(index).or_insert(content);
            }
        }
        let trust = match self.journal {
            Some(_) => Trust::All,
            None => Trust::Written,
        };
        let applied = self.state.apply(&blocks, trust, disks)?;
        for &(block, _) in contents {
            if let Some(&what) = applied.explanations.get(&block) {
                let row = self.row(write.part(block..block + 1), what, rows);
                write.found.push(row);
            }
        }
        self.take_effect(&applied, rows);
        Ok(())
    }

    /// Starts a new epoch if a flush preceded this write, in a file system without a journal.
    /// Blocks at fixed places that name nothing do not count: they are written with any flush.
    fn begin(&mut self, runs: &[Run]) {
        let names_nothing = |run: &Run| {
            let kind = run.used.map(|used| used.kind);
            matches!(kind, Some(Kind::Fixed(area)) if area != Area::InodeTable)
        };
        let epoch = self.state.rounds.now.epoch;
        if self.journal.is_none()
            && epoch != self.state.names.epoch
            && !runs.iter().all(names_nothing)
        {
            self.state.names.epoch = epoch;
            self.naming.begin();
        }
    }

    /// Adds a metadata row to the waiting rows although it has an owner. The block may already have
    /// another owner and be of any kind. Called only without a journal.
    fn wait_with_owner(&mut self, number: usize, rows: &mut Rows) {
        let Some(row) = rows.get_mut(number) else {
            return;
        };
        let blocks = blocks_of(row, self.state.block_bytes());
        let used = self.state.space.get(blocks.start);
        let may_change = match used {
            // Its content may have released it from its owner, for example when a node and the node
            // that it maps swap places.
            None => row.structure != Structure::Unused,
            Some(used) => !matches!(used.kind, Kind::Fixed(_)),
        };
        if may_change {
            self.pending.add(blocks, number, true, used, &self.state);
        }
    }

    /// Returns the metadata blocks whose content must be examined. These are all blocks of the run,
    /// or only those with a known version for a write-zeroes, which may be as large as the disk.
    /// The kernel zeroes inode tables that mkfs left uninitialised (`lazy_itable_init`).
    fn with_content(&self, write: &mut BlockWrite<'_>, used: Use, run: Range<u64>) -> Vec<u64> {
        if !write.content.is_empty() {
            return run.collect();
        }
        let known = self.state.known(run.clone());
        let structure = structure_of(used.kind);
        let cause = match structure {
            Structure::InodeTable => Cause::LazyInit,
            _ => Cause::Accounting,
        };
        let mut at = run.start;
        for &block in known.iter().chain([&run.end]) {
            write.add(at..block, structure, cause);
            at = block + 1;
        }
        known
    }

    /// Writes an explanation into a row, with the path of the owner.
    pub(super) fn row(&mut self, row: Row, what: Explanation, rows: &mut Rows) -> Row {
        Row {
            structure: what.structure,
            causes: what.causes,
            inode: what.inode.into(),
            path: match what.inode {
                0 => None,
                inode => self.state.names.path(inode, &mut rows.paths),
            },
            ..row
        }
    }

    /// Adds rows for a write whose owner becomes known with the metadata that maps it.
    fn wait(&mut self, write: &BlockWrite<'_>, run: Run, rows: &mut Rows) {
        let mut start = run.start;
        if self.journal.is_none() {
            for (block, content) in write.whole_blocks() {
                let is_inside = (run.start..run.end()).contains(&block);
                if is_inside && self.state.written_unmapped(block, content) {
                    self.wait_as(write, start..block, run, false, rows);
                    self.wait_as(write, block..block + 1, run, true, rows);
                    start = block + 1;
                }
            }
        }
        self.wait_as(write, start..run.end(), run, false, rows);
    }

    fn wait_as(
        &mut self,
        write: &BlockWrite<'_>,
        blocks: Range<u64>,
        run: Run,
        may_be_metadata: bool,
        rows: &mut Rows,
    ) {
        let used = run.used;
        if blocks.is_empty() {
            return;
        }
        if !may_be_metadata {
            self.state.rounds.data();
        }
        let what = Explanation {
            structure: Structure::FileData,
            causes: Causes::one(Cause::Data),
            inode: used.map_or(0, |u| u.inode),
        };
        let shift = self.state.shift_of(run.start, run.file_block);
        let row = self.row(write.part(blocks.clone()), what, rows);
        let number = rows.push(Row { shift, ..row });
        self.pending
            .add(blocks, number, may_be_metadata, used, &self.state);
        if self.journal.is_none() {
            self.name(number, self.state.names.epoch, rows);
        }
    }
}

/// Explains a write to a block that is not metadata.
fn of_content(used: Use) -> Explanation {
    let cause = match is_data(used.kind) {
        true => Cause::Data,
        false => Cause::Accounting,
    };
    Explanation {
        structure: structure_of(used.kind),
        causes: Causes::one(cause),
        inode: used.inode,
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::ext2;
    use super::*;
    use fscost_recording::Recording;
    use std::path::Path;

    const TABLE: u64 = 10;

    fn pointers(blocks: &[u32]) -> Vec<u8> {
        let mut bytes: Vec<u8> = blocks.iter().flat_map(|b| b.to_le_bytes()).collect();
        bytes.resize(1024, 0);
        bytes
    }

    /// Builds an inode table block in which inode 12 is gone and inode 13 has `node` as its double
    /// indirect block.
    fn table(node: u8) -> Vec<u8> {
        let mut bytes = vec![0; 1024];
        let inode = &mut bytes[4 * 128..5 * 128];
        inode[1] = 0x81;
        inode[0x1A] = 1;
        inode[0x28 + 4 * 13] = node;
        bytes
    }

    #[test]
    fn without_a_journal_two_nodes_may_change_places() {
        let mut state = ext2();
        let set = |kind, inode, node| Use { kind, inode, node };
        state
            .space
            .set(TABLE, 2, set(Kind::Fixed(Area::InodeTable), 1, 0));
        // Block 50 is the double indirect block of inode 12 and maps block 60.
        let double = set(Kind::Pointers(2, Content::Data), 12, 0);
        let single = set(Kind::Pointers(1, Content::Data), 12, 50);
        state.space.claim(50, 1, double);
        state.space.claim(60, 1, single);
        for (block, points) in [(50, [60]), (60, [100])] {
            let content = pointers(&points).as_slice().into();
            state.versions.insert(block, content);
        }
        let mut running = Running::new(state, None);
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ext/ext4-nojournal.fscost");
        let recording = Recording::open(&path).unwrap();
        let mut disks = Disks::new(&recording).unwrap();
        let mut rows = Rows::default();
        // Inode 13 maps them in the opposite order, and is written after them.
        let writes = [
            (60, pointers(&[50])),
            (50, pointers(&[200])),
            (TABLE + 1, table(60)),
        ];
        for (event, (block, content)) in writes.iter().enumerate() {
            let write = Write {
                event: event as u64 + 1,
                time_ns: 0,
                disk: 0,
                offset: block << 10,
                content,
                length: 1024,
                formatting: false,
            };
            running.home(&write, &mut disks, &mut rows).unwrap();
        }
        let found = rows.get_mut(0).map(|row| (row.structure, row.inode));
        assert_eq!(found, Some((Structure::ExtentMap, 13)));
    }
}
