//! Rows whose owner's name comes later: without a journal an inode is written apart from its name,
//! and only once all is written do they fit together.

use super::names::{Life, Names};
use crate::classify::waiting::MAX_WAITING;
use crate::classify::{PathId, Rows};

/// The rows of a file system without a journal that wait for a name, or may get another.
#[derive(Debug, Default)]
pub struct Naming {
    unnamed: Vec<Owned>,
    /// Rows that got a path since the last mark.
    named: Vec<Owned>,
    /// How often names had changed when rows got theirs, and how many rows were left.
    named_at: (u64, usize),
}

/// A row of the file that an inode was.
#[derive(Debug, Clone, Copy)]
struct Owned {
    row: usize,
    inode: u32,
    life: Life,
}

impl Owned {
    /// The path of the file that owns the row; nothing if its inode is another file by now, or the
    /// row another inode's.
    fn path(self, names: &mut Names, rows: &mut Rows) -> Option<Option<PathId>> {
        let is_same = names.life(self.inode) == self.life
            && rows.get_mut(self.row)?.inode == u64::from(self.inode);
        is_same.then(|| names.path(self.inode, &mut rows.paths))
    }
}

impl Naming {
    /// The name of the row's owner may not be there yet.
    pub fn later(&mut self, row: usize, names: &Names, rows: &mut Rows) {
        let inode = rows.get_mut(row).map_or(0, |row| row.inode as u32);
        if inode == 0 {
            return;
        }
        if self.unnamed.len() >= MAX_WAITING {
            self.unnamed.drain(..MAX_WAITING / 2);
        }
        let life = names.life(inode);
        self.unnamed.push(Owned { row, inode, life });
    }

    /// Rows whose owner has a name by now get it.
    pub fn name(&mut self, names: &mut Names, rows: &mut Rows) {
        if (names.changes(), self.unnamed.len()) == self.named_at {
            return;
        }
        for owned in std::mem::take(&mut self.unnamed) {
            match owned.path(names, rows) {
                None => {}
                Some(None) => self.unnamed.push(owned),
                Some(path) => {
                    if let Some(row) = rows.get_mut(owned.row) {
                        row.path = path;
                    }
                    if self.named.len() < MAX_WAITING {
                        self.named.push(owned);
                    }
                }
            }
        }
        self.named_at = (names.changes(), self.unnamed.len());
    }

    /// All directories are on the disk: an inode may have been named after what it was before,
    /// whose entry was there still.
    pub fn again(&mut self, names: &mut Names, rows: &mut Rows) {
        names.settle();
        self.name(names, rows);
        for owned in std::mem::take(&mut self.named) {
            let path = owned.path(names, rows).flatten();
            if let Some(row) = rows.get_mut(owned.row).filter(|_| path.is_some()) {
                row.path = path;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{directory::Entry, journal::Piece, pieces::plain, state};
    use super::*;
    use crate::classify::{Cause, Row, Structure};

    fn entry(name: &str) -> Entry<'_> {
        Entry {
            inode: 12,
            name: name.as_bytes(),
            is_directory: false,
        }
    }

    fn row(rows: &mut Rows) -> usize {
        let piece = Piece {
            event: 1,
            disk: 0,
            offset: 0,
            length: 1024,
        };
        let row = plain(piece, Structure::FileData, Cause::Data);
        rows.push(Row { inode: 12, ..row })
    }

    fn paths(rows: &Rows) -> Vec<String> {
        let paths = rows.to_vec().into_iter().map(|row| row.path.unwrap());
        paths.map(|path| rows.paths.text(path).into()).collect()
    }

    #[test]
    fn a_row_is_named_after_the_file_that_it_is_of() {
        let (mut naming, mut names) = (Naming::default(), Names::default());
        let mut rows = Rows::default();
        for name in ["first", "second"] {
            names.inode_new(12);
            naming.later(row(&mut rows), &names, &mut rows);
            names.add(2, &entry(name));
            naming.name(&mut names, &mut rows);
            names.inode_removed(12);
        }
        naming.again(&mut names, &mut rows);
        assert_eq!(paths(&rows), ["/first", "/second"]);
    }

    #[test]
    fn what_was_named_after_an_entry_that_was_still_there_is_named_again() {
        let (mut naming, mut names) = (Naming::default(), Names::default());
        let mut rows = Rows::default();
        names.add(2, &entry("old"));
        names.inode_new(12);
        naming.later(row(&mut rows), &names, &mut rows);
        naming.name(&mut names, &mut rows);
        names.add(2, &entry("new"));
        names.remove(2, &entry("old"));
        naming.name(&mut names, &mut rows);
        assert_eq!(paths(&rows), ["/old"]);
        naming.again(&mut names, &mut rows);
        assert_eq!(paths(&rows), ["/new"]);
    }

    #[test]
    fn a_name_that_moves_to_another_block_stays_the_oldest() {
        let (mut state, mut rows) = (state::ext2(), Rows::default());
        let (first, second) = (entry("first"), entry("second"));
        state.rename(2, &[], &[first, second]);
        state.name();
        state.rename(2, &[first, second], &[second]);
        state.rename(2, &[], &[first]);
        state.name();
        let path = state.names.path(12, &mut rows.paths).unwrap();
        assert_eq!(rows.paths.text(path), "/first");
    }
}
