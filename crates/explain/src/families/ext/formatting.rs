//! Explanation of the writes of mkfs, from the file system that it created.

use super::{
    blocks::structure_of,
    journal::Piece,
    pieces::{blocks_of, piece, plain, push_merged},
    running::Running,
};
use crate::{Cause, Rows, Structure, Write};

impl Running {
    /// Explains the writes of mkfs from the file system that it created.
    pub(super) fn formatted(&self, written: Piece, disk: u16, bytes: u64, rows: &mut Rows) {
        let write = Write {
            event: written.event,
            time_ns: 0,
            disk: written.disk,
            offset: written.offset,
            content: &[],
            length: written.length,
            formatting: true,
        };
        let (first, count) = blocks_of(&write, bytes);
        let mut found = Vec::new();
        let mut add = |start: u64, end: u64, structure: Structure| {
            found.push(plain(
                piece(&write, start, end, bytes),
                structure,
                Cause::Format,
            ));
        };
        if written.disk != disk {
            let own = self.state.superblock.primary_block();
            let parts = [
                (0, own, Structure::Unused),
                (own, own + 1, Structure::Superblock),
                (own + 1, own + 2, Structure::JournalSuperblock),
                (own + 2, u64::MAX, Structure::JournalFree),
            ];
            for (start, end, structure) in parts {
                let (start, end) = (start.max(first), end.min(first + count));
                if start < end {
                    add(start, end, structure);
                }
            }
        } else {
            for run in self.state.space.runs(first, count) {
                let end = run.start + run.length;
                let structure = run.used.map_or(Structure::Unused, |u| structure_of(u.kind));
                if structure == Structure::JournalFree {
                    let journal = self.journal.as_ref();
                    let is_first = journal.and_then(|j| j.position(run.start)) == Some(0);
                    let middle = run.start + u64::from(is_first);
                    if is_first {
                        add(run.start, middle, Structure::JournalSuperblock);
                    }
                    if middle < end {
                        add(middle, end, structure);
                    }
                } else {
                    add(run.start, end, structure);
                }
            }
        }
        push_merged(found, rows);
    }
}
