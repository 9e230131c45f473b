//! The log: partial segments, and the owners of their blocks.

use super::*;

impl Nilfs2 {
    /// Explains a write to the segments, up to the next boundary. Returns the length of the
    /// explained part.
    pub(super) fn log(&mut self, write: &Write<'_>, now: &mut Now<'_, '_>) -> Result<u64> {
        let block_bytes = self.geometry.block_bytes;
        let block = write.offset / block_bytes;
        let rest = write.length;
        if write.content.is_empty() {
            self.files.add_owned(write, now.rows);
            return Ok(rest);
        }
        if !self.payload.contains(&block)
            && write.offset.is_multiple_of(block_bytes)
            && let Some(summary) = self.summary(block, write.content)
        {
            let length = (summary.blocks * block_bytes).min(rest);
            let part = Part {
                transaction: Some(summary.checkpoint),
                ..Part::new(Structure::SegmentSummary, Cause::Accounting)
            };
            self.files.add(&write.part(0, length), part, now.rows);
            self.begin(block, &summary, now.rows);
            return Ok(length);
        }
        let (owner, length) = self.files.owner(write.offset, rest);
        let Owner { inode, structure } = owner.unwrap_or(Owner::no_inode(Structure::Unknown));
        match structure {
            Structure::InodeTable => {
                let length = (block_bytes - write.offset % block_bytes).min(rest);
                self.ifile(&write.part(0, length), now)?;
                return Ok(length);
            }
            Structure::Directory => self.names(inode, block, write.part(0, length).content),
            _ => {}
        }
        // The block after the last partial segment may be a summary.
        let end = match self.payload.contains(&block) {
            true => self.payload.end * block_bytes,
            false => (block + 1) * block_bytes,
        };
        let (is_moved, until) = self.moved_until(block);
        let length = length.min(end.min(until.saturating_mul(block_bytes)) - write.offset);
        let first = now.rows.next();
        self.files.add_owned(&write.part(0, length), now.rows);
        for number in (first..now.rows.next()).filter(|_| is_moved) {
            if let Some(row) = now.rows.get_mut(number) {
                row.causes = Causes::one(Cause::Relocation);
            }
        }
        if structure == Structure::Checkpoint && inode == NO_INODE {
            // The super root: all earlier blocks have been submitted.
            self.open.clear();
            self.open_blocks = 0;
            self.files.commit(1, now.rows);
        }
        Ok(length)
    }

    /// Returns whether the cleaner moved this block, and the next block for which the answer may
    /// differ.
    fn moved_until(&self, block: u64) -> (bool, u64) {
        let next = self.moved.iter().find(|moved| moved.end > block);
        match next {
            Some(moved) if moved.contains(&block) => (true, moved.end),
            Some(moved) => (false, moved.start),
            None => (false, u64::MAX),
        }
    }

    /// Returns the summary that begins at this block, if any. Data may look like a summary, but is
    /// unlikely to have the next sequence number.
    pub(super) fn summary(&self, block: u64, content: &[u8]) -> Option<Summary> {
        let summary = Summary::parse(content, self.geometry.block_bytes as usize)?;
        let is_next =
            self.sequence == 0 || (self.sequence..=self.sequence + 1).contains(&summary.sequence);
        let is_within = block + summary.total <= self.geometry.segment_end(block);
        (is_next && is_within).then_some(summary)
    }

    /// Registers the owners of the blocks that follow this summary.
    pub(super) fn begin(&mut self, block: u64, summary: &Summary, rows: &mut Rows) {
        self.sequence = summary.sequence;
        self.files.are_new = !summary.has_data_alone;
        self.payload = block + summary.blocks..block + summary.total;
        self.offsets.clear();
        self.moved.clear();
        let block_bytes = self.geometry.block_bytes;
        let mut at = self.payload.start;
        let mut give = |files: &mut Files, count: u64, inode: u64, structure: Structure| {
            let count = count.min((block + summary.total).saturating_sub(at));
            let owner = Owner { inode, structure };
            files.own(at * block_bytes, count * block_bytes, owner, rows);
            let first = at;
            at += count;
            first..at
        };
        for file in &summary.files {
            let (inode, structure) = match file.inode {
                DAT => (NO_INODE, Structure::Dat),
                // The inode number of the checkpoint file distinguishes its blocks from the super root.
                CPFILE => (CPFILE, Structure::Checkpoint),
                SUFILE => (NO_INODE, Structure::Sufile),
                IFILE => (NO_INODE, Structure::InodeTable),
                inode => {
                    let kind = self.kinds.get(&inode).copied();
                    (inode, kind.unwrap_or(Structure::FileData))
                }
            };
            let data = give(&mut self.files, file.data_blocks, inode, structure);
            let data_from = data.start;
            let placed = data.zip(file.offsets.iter().copied());
            if self.kinds.get(&file.inode) != Some(&Structure::FileData) {
                self.offsets.extend(placed.clone());
            }
            if inode > IFILE || inode == ROOT {
                let most = MOST_OPEN - self.open_blocks;
                let open = self.open.entry(inode).or_default();
                let before = open.len();
                open.extend(placed.take(most));
                self.open_blocks += open.len() - before;
            }
            let structure = match file.inode {
                DAT..=SUFILE => structure,
                _ => Structure::ExtentMap,
            };
            let nodes = file.blocks.saturating_sub(file.data_blocks);
            let nodes = give(&mut self.files, nodes, inode, structure);
            if summary.has_moved(file) {
                self.moved.push(data_from..nodes.end);
            }
        }
        if summary.has_super_root {
            let last = self.payload.end.saturating_sub(1) * block_bytes;
            let owner = Owner::no_inode(Structure::Checkpoint);
            self.files.own(last, block_bytes, owner, rows);
        }
    }
}
