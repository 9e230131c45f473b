//! Paths by INODE_REF items, and those of subvolumes by ROOT_BACKREF items, found when they are
//! asked for.

use super::bytes::{u16_at, u64_at};
use super::items::name_of;
use super::key::{Key, kind, tree};
use super::volume::Volume;
use crate::escape::escaped;
use crate::hash::HashMap;
use crate::{Disks, PathId, Paths};
use fscost_recording::Result;
use std::rc::Rc;

/// The root directory of a subvolume (`BTRFS_FIRST_FREE_OBJECTID`).
const ROOT_DIRECTORY: u64 = tree::FIRST_FREE;
/// A longer way up is a cycle, or longer than a path can be named.
const MAX_DEPTH: usize = 512;
const MAX_PATH_BYTES: usize = 4096;
/// How many paths are remembered.
const MAX_KNOWN: usize = 1 << 18;
const MAX_KNOWN_DIRECTORIES: usize = 1 << 14;

/// Where names are looked up: what fsync logged first, then the tree itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names {
    pub tree: u64,
    pub log_root: Option<u64>,
    pub fs_root: Option<u64>,
    /// The tree before, for what is gone.
    pub old_root: Option<u64>,
    /// The tree of roots, for the names of subvolumes.
    pub root_tree: u64,
}

/// Paths that were found.
#[derive(Debug, Default)]
pub struct PathFinder {
    known: HashMap<(u64, u64), Option<PathId>>,
    directories: HashMap<Place, Rc<str>>,
}

/// A directory as it is looked up: a tree on the way up from a subvolume in it is looked up without
/// its log.
type Place = (u64, u64, bool);

impl PathFinder {
    /// Names may have changed.
    pub fn forget(&mut self) {
        self.known.clear();
        self.directories.clear();
    }

    /// The path of an inode.
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

    /// Go up to the root, or to a directory whose path is known.
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
            let found = if inode != ROOT_DIRECTORY {
                parent_of(volume, disks, names, inode)?
            } else {
                let found = subvolume_parent(volume, disks, names)?;
                crossed = true;
                match found {
                    Some((parent_tree, directory, name)) => {
                        names = Names {
                            tree: parent_tree,
                            log_root: None,
                            fs_root: volume.root_of(disks, names.root_tree, parent_tree)?,
                            old_root: None,
                            ..names
                        };
                        Some((directory, name))
                    }
                    None => None,
                }
            };
            let Some((parent, name)) = found else {
                return Ok(None);
            };
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
            // Not what was asked for: that is mostly a file.
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

fn parent_of(
    volume: &mut Volume,
    disks: &mut Disks<'_>,
    names: Names,
    inode: u64,
) -> Result<Option<(u64, String)>> {
    let (from, to) = (
        Key::new(inode, kind::INODE_REF, 0),
        Key::new(inode, kind::INODE_EXTREF, u64::MAX),
    );
    for root in [names.log_root, names.fs_root, names.old_root]
        .into_iter()
        .flatten()
    {
        let found = volume.look_up(disks, root, from, to, |key, item| {
            let (parent, name) = name_of(key, item)?;
            Some((parent, escaped(name).into_owned()))
        })?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The tree, directory and name that a subvolume is found by: `struct btrfs_root_ref`.
fn subvolume_parent(
    volume: &mut Volume,
    disks: &mut Disks<'_>,
    names: Names,
) -> Result<Option<(u64, u64, String)>> {
    let (from, to) = (
        Key::new(names.tree, kind::ROOT_BACKREF, 0),
        Key::new(names.tree, kind::ROOT_BACKREF, u64::MAX),
    );
    volume.look_up(disks, names.root_tree, from, to, |key, item| {
        let name = item.get(18..)?.get(..usize::from(u16_at(item, 16)?))?;
        let name = escaped(name).into_owned();
        Some((key.offset, u64_at(item, 0)?, name))
    })
}
