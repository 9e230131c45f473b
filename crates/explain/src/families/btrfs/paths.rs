//! Paths of inodes from INODE_REF items, and of subvolumes from ROOT_BACKREF items, resolved on
//! demand.

use super::item::{Key, kind, name_of, subvolume_name, tree};
use super::metadata::{Volume, keys_of};
use crate::escape::escaped;
use crate::hash::HashMap;
use crate::{Disks, PathId, Paths};
use fscost_recording::Result;
use std::sync::Arc;

/// The root directory of a subvolume (`BTRFS_FIRST_FREE_OBJECTID`).
pub const ROOT_DIRECTORY: u64 = tree::FIRST_FREE;
/// Maximum number of path components. A longer chain is a cycle, or exceeds the maximum path
/// length.
pub const MAX_DEPTH: usize = 512;
const MAX_PATH_BYTES: usize = 4096;
/// Maximum number of cached paths.
const MAX_KNOWN: usize = 1 << 18;
const MAX_KNOWN_DIRECTORIES: usize = 1 << 14;

/// Roots in which names are looked up: first the log that fsync wrote, then the tree itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names {
    pub tree: u64,
    pub log_root: Option<u64>,
    pub fs_root: Option<u64>,
    /// Previous root of the tree, for removed inodes.
    pub old_root: Option<u64>,
    /// The tree of roots, for the names of subvolumes.
    pub root_tree: u64,
}

/// Cache of resolved paths.
#[derive(Debug, Default)]
pub struct PathFinder {
    known: HashMap<(u64, u64), Option<PathId>>,
    directories: HashMap<Place, Arc<str>>,
}

/// Key of a directory: tree, inode, and whether the path crossed a subvolume boundary. Beyond the
/// boundary, the tree is searched without its log.
type Place = (u64, u64, bool);

impl Names {
    /// Returns the roots that may name an inode, the newest first.
    pub fn roots(&self) -> impl Iterator<Item = u64> + use<> {
        [self.log_root, self.fs_root, self.old_root]
            .into_iter()
            .flatten()
    }
}

impl PathFinder {
    /// Clears the cache, because names may have changed.
    pub fn forget(&mut self) {
        self.known.clear();
        self.directories.clear();
    }

    /// Returns the path of an inode.
    pub fn path(
        &mut self,
        volume: &mut Volume,
        disks: &mut Disks<'_>,
        names: Names,
        inode: u64,
        paths: &mut Paths,
    ) -> Result<Option<PathId>> {
        if let Some(&path) = self.known.get(&(names.tree, inode)) {
            return Ok(path);
        }
        let path = self.find(volume, disks, names, inode)?;
        let path = path.map(|text| paths.intern(&text));
        if self.known.len() >= MAX_KNOWN {
            self.forget();
        }
        self.known.insert((names.tree, inode), path);
        Ok(path)
    }

    /// Walks up to the root, or to a directory whose path is known.
    fn find(
        &mut self,
        volume: &mut Volume,
        disks: &mut Disks<'_>,
        mut names: Names,
        mut inode: u64,
    ) -> Result<Option<String>> {
        let mut way: Vec<(Place, String)> = Vec::new();
        let (mut crossed, mut bytes) = (false, 0);
        let mut path = loop {
            let place = (names.tree, inode, crossed);
            if let Some(known) = self.directories.get(&place) {
                break known.to_string();
            }
            if (names.tree, inode) == (tree::FS, ROOT_DIRECTORY) {
                break String::new();
            }
            let found = match inode {
                ROOT_DIRECTORY => subvolume_parent(volume, disks, names)?,
                _ => parent_of(volume, disks, names, inode)?,
            };
            let Some((parent_tree, parent, name)) = found else {
                return Ok(None);
            };
            if inode == ROOT_DIRECTORY {
                crossed = true;
                names = Names {
                    tree: parent_tree,
                    fs_root: volume.root_of(disks, names.root_tree, parent_tree)?,
                    root_tree: names.root_tree,
                    ..Names::default()
                };
            }
            bytes += name.len() + 1;
            if bytes > MAX_PATH_BYTES || way.len() >= MAX_DEPTH {
                return Ok(None);
            }
            way.push((place, name));
            inode = parent;
        };
        if path.len() + bytes > MAX_PATH_BYTES {
            return Ok(None);
        }
        while let Some((place, name)) = way.pop() {
            path.push('/');
            path.push_str(&name);
            // Skip the inode that was asked for: it is mostly a file.
            if !way.is_empty() && self.directories.len() < MAX_KNOWN_DIRECTORIES {
                self.directories.insert(place, path.as_str().into());
            }
        }
        if path.is_empty() {
            path.push('/');
        }
        Ok(Some(path))
    }
}

/// Tree and inode of a directory, and a name in it.
type Parent = (u64, u64, String);

fn parent_of(
    volume: &mut Volume,
    disks: &mut Disks<'_>,
    names: Names,
    inode: u64,
) -> Result<Option<Parent>> {
    for root in names.roots() {
        if let Some((parent, name)) = name_in(volume, disks, root, inode)? {
            return Ok(Some((names.tree, parent, name)));
        }
    }
    Ok(None)
}

/// Returns the directory of an inode, and its name there, according to the tree at `root`.
pub fn name_in(
    volume: &mut Volume,
    disks: &mut Disks<'_>,
    root: u64,
    inode: u64,
) -> Result<Option<(u64, String)>> {
    let (from, to) = (
        Key::new(inode, kind::INODE_REF, 0),
        Key::new(inode, kind::INODE_EXTREF, u64::MAX),
    );
    volume.look_up(disks, root, from, to, |key, item| {
        let (parent, name) = name_of(key, item)?;
        Some((parent, escaped(name).into_owned()))
    })
}

/// Returns the parent and the name of a subvolume.
fn subvolume_parent(
    volume: &mut Volume,
    disks: &mut Disks<'_>,
    names: Names,
) -> Result<Option<Parent>> {
    let (from, to) = keys_of(names.tree, kind::ROOT_BACKREF);
    volume.look_up(disks, names.root_tree, from, to, |key, item| {
        let (directory, name) = subvolume_name(item)?;
        Some((key.offset, directory, escaped(name).into_owned()))
    })
}
