//! Which path an inode has, from the names that directories were seen to hold.

use crate::classify::{PathId, Paths};
use std::collections::{HashMap, HashSet};

/// Directories deeper than this are a loop that hostile content made.
const DEEPEST: usize = 256;

/// The last name seen of every inode. A removed file keeps its name until its inode is used again.
#[derive(Debug, Default)]
pub struct Names {
    root: u64,
    names: HashMap<u64, (u64, Box<[u8]>)>,
    directories: HashSet<u64>,
    paths: HashMap<u64, PathId>,
}

impl Names {
    /// Of a file system with this root directory.
    pub fn new(root: u64) -> Names {
        Names {
            root,
            ..Names::default()
        }
    }

    /// `directory` holds `name` for `inode`.
    pub fn learn(&mut self, directory: u64, name: &[u8], inode: u64) {
        if name == b".." || inode == directory || inode == self.root {
            return;
        }
        match self.names.get(&inode) {
            Some((parent, known)) if *parent == directory && **known == *name => return,
            // Whatever lies below it has a new path, too.
            Some(_) if self.directories.contains(&inode) => self.paths.clear(),
            _ => _ = self.paths.remove(&inode),
        }
        self.directories.insert(directory);
        self.names.insert(inode, (directory, name.into()));
    }

    /// The inode's path as of now, with `/` for the root of the file system.
    pub fn path(&mut self, inode: u64, paths: &mut Paths) -> Option<PathId> {
        if let Some(&known) = self.paths.get(&inode) {
            return Some(known);
        }
        let mut parts = Vec::new();
        let mut at = inode;
        while at != self.root {
            let (parent, name) = self.names.get(&at)?;
            parts.push(String::from_utf8_lossy(name));
            at = *parent;
            if parts.len() > DEEPEST {
                return None;
            }
        }
        let text: String = match parts.is_empty() {
            true => "/".into(),
            false => parts.iter().rev().flat_map(|part| ["/", part]).collect(),
        };
        let id = paths.intern(&text);
        self.paths.insert(inode, id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_directory_renames_what_is_in_it() {
        let mut paths = Paths::default();
        let mut names = Names::new(128);
        names.learn(128, b"a", 131);
        names.learn(131, b"f", 132);
        let before = names.path(132, &mut paths).unwrap();
        assert_eq!(paths.text(before), "/a/f");
        names.learn(128, b"b", 131);
        let after = names.path(132, &mut paths).unwrap();
        assert_eq!(paths.text(after), "/b/f");
    }

    #[test]
    fn a_loop_has_no_path() {
        let mut names = Names::new(128);
        names.learn(131, b"a", 132);
        names.learn(132, b"b", 131);
        assert_eq!(names.path(131, &mut Paths::default()), None);
    }
}
