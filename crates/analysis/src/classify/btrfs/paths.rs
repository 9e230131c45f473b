//! Paths by INODE_REF items, and those of subvolumes by ROOT_BACKREF items, found when they are asked for.

use super::bytes::{u16_at, u64_at};
use super::items::name_of;
use super::key::{Key, kind, tree};
use super::volume::Volume;
use crate::classify::{Disks, PathId, Paths};
use fscost_recording::Result;
use std::collections::HashMap;

/// The root directory of a subvolume (`BTRFS_FIRST_FREE_OBJECTID`).
const ROOT_DIRECTORY: u64 = tree::FIRST_FREE;
/// A longer way up is a cycle, or longer than a path can be named.
const MAX_DEPTH: usize = 512;
const MAX_PATH_BYTES: usize = 4096;
/// How many paths are remembered.
const MAX_KNOWN: usize = 1 << 18;

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
}

impl PathFinder {
    /// Names may have changed.
    pub fn forget(&mut self) {
        self.known.clear();
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
        let path = find(volume, disks, names, inode)?.map(|text| paths.intern(&text));
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert((names.tree, inode), path);
        Ok(path)
    }
}

fn find(
    volume: &mut Volume,
    disks: &mut Disks<'_>,
    mut names: Names,
    mut inode: u64,
) -> Result<Option<String>> {
    let mut parts: Vec<String> = Vec::new();
    let mut bytes = 0;
    for _ in 0..MAX_DEPTH {
        let (parent, name) = if inode != ROOT_DIRECTORY {
            match parent_of(volume, disks, names, inode)? {
                Some(found) => found,
                None => return Ok(None),
            }
        } else if names.tree == tree::FS {
            parts.reverse();
            return Ok(Some(format!("/{}", parts.join("/"))));
        } else {
            let Some((parent_tree, directory, name)) = subvolume_parent(volume, disks, names)?
            else {
                return Ok(None);
            };
            let fs_root = volume.root_of(disks, names.root_tree, parent_tree)?;
            names = Names {
                tree: parent_tree,
                log_root: None,
                fs_root,
                old_root: None,
                ..names
            };
            (directory, name)
        };
        bytes += name.len() + 1;
        if bytes > MAX_PATH_BYTES {
            return Ok(None);
        }
        parts.push(name);
        inode = parent;
    }
    Ok(None)
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
        for (key, item) in volume.items(disks, root, from, to)? {
            if let Some((parent, name)) = name_of(key, &item) {
                return Ok(Some((parent, String::from_utf8_lossy(name).into_owned())));
            }
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
    let items = volume.items(disks, names.root_tree, from, to)?;
    Ok(items.first().and_then(|(key, item)| {
        let name = item.get(18..)?.get(..usize::from(u16_at(item, 16)?))?;
        Some((
            key.offset,
            u64_at(item, 0)?,
            String::from_utf8_lossy(name).into_owned(),
        ))
    }))
}
