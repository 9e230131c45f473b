//! Explanation of the writes of mkfs, from the file system that it created.

use super::{
    blocks::structure_of,
    pieces::{BlockWrite, push_merged},
    running::Running,
};
use crate::{Cause, Row, Rows, Structure};

impl Running {
    /// Explains a write of mkfs, which `row` covers, from the file system that it created.
    pub(super) fn formatted(&self, row: Row, rows: &mut Rows) {
        let mut write = BlockWrite::with(row, &[], self.state.block_bytes());
        if row.disk != self.state.disk {
            let own = self.state.superblock.primary_block();
            write.add(0..own, Structure::Unused, Cause::Format);
            write.add(own..own + 1, Structure::Superblock, Cause::Format);
            write.add(
                own + 1..own + 2,
                Structure::JournalSuperblock,
                Cause::Format,
            );
            write.add(own + 2..u64::MAX, Structure::JournalFree, Cause::Format);
        } else {
            let blocks = write.blocks();
            let length = blocks.end - blocks.start;
            for run in self.state.space.runs(blocks.start, length) {
                let structure = run.used.map_or(Structure::Unused, |u| structure_of(u.kind));
                let mut start = run.start;
                let position = self.journal.as_ref().and_then(|j| j.position(start));
                if structure == Structure::JournalFree && position == Some(0) {
                    start += 1;
                    write.add(
                        run.start..start,
                        Structure::JournalSuperblock,
                        Cause::Format,
                    );
                }
                write.add(start..run.end(), structure, Cause::Format);
            }
        }
        push_merged(write.found, rows);
    }
}
