//! The directory that each row counts towards.

use crate::hash::HashMap;
use crate::{Paths, Row, Structure};

/// Directories of the paths of rows, numbered from 0.
#[derive(Debug)]
pub struct Directories<'p> {
    paths: &'p Paths,
    /// Number of the directory that holds each path.
    above: Vec<u32>,
    numbers: HashMap<&'p str, u32>,
    texts: Vec<&'p str>,
}

impl<'p> Directories<'p> {
    pub fn of(paths: &'p Paths) -> Directories<'p> {
        let mut found = Directories {
            paths,
            above: Vec::with_capacity(paths.texts().len()),
            numbers: HashMap::default(),
            texts: Vec::new(),
        };
        let mut last = ("", 0);
        for (place, path) in paths.texts().enumerate() {
            let above = parent(path);
            // Paths of one directory are near each other.
            if place == 0 || above != last.0 {
                last = (above, found.number(above));
            }
            found.above.push(last.1);
        }
        found
    }

    fn number(&mut self, text: &'p str) -> u32 {
        let next = self.texts.len() as u32;
        let number = *self.numbers.entry(text).or_insert(next);
        if number == next {
            self.texts.push(text);
        }
        number
    }

    /// Returns the number of the directory that holds the row's file. A directory's own blocks
    /// belong to the directory itself.
    pub fn of_row(&mut self, row: &Row) -> Option<u32> {
        let path = row.path?;
        match row.home.unwrap_or(row.structure) {
            Structure::Directory | Structure::DirectoryIndex => {
                let paths = self.paths;
                Some(self.number(paths.text(path)))
            }
            _ => self.above.get(path.index() as usize).copied(),
        }
    }

    /// Returns the directories, in the order of their numbers.
    pub fn texts(&self) -> &[&'p str] {
        &self.texts
    }
}

/// Returns the directory that holds a path: `/` for a path without one.
fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((above, _)) if !above.is_empty() => above,
        _ => "/",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_towards_the_directory_above_or_itself() {
        let mut paths = Paths::default();
        let all = [
            "/a/b/c",
            "/a/b",
            "/a/b/d.txt",
            "/a",
            "/",
            "no folder",
            "/a/b/",
        ];
        let rows = all.map(|path| Row {
            path: Some(paths.intern(path)),
            ..Row::data(0, 1)
        });
        let mut directories = Directories::of(&paths);
        let mut of = |row: &Row| {
            let number = directories.of_row(row)?;
            Some(directories.texts()[number as usize])
        };
        let above = rows.each_ref().map(|row| of(row).unwrap());
        assert_eq!(above, ["/a/b", "/a", "/a/b", "/", "/", "/", "/a/b"]);
        for structure in [Structure::Directory, Structure::DirectoryIndex] {
            let own = Row {
                structure,
                ..rows[1]
            };
            let copied = Row {
                home: Some(structure),
                ..rows[1]
            };
            assert_eq!([of(&own), of(&copied)], [Some("/a/b"); 2]);
        }
        assert_eq!(of(&Row::data(0, 1)), None);
    }
}
