//! State that a mount would find: the newest superblock, and the log trees that fsync wrote since.

use super::devices::Devices;
use super::item::{Key, kind};
use super::metadata::Volume;
use super::paths::{Names, PathFinder};
use super::superblock::{SUPER_BYTES, SUPER_OFFSETS, Super};
use crate::{Disks, Paths};
use fscost_recording::Result;
use std::cmp::Reverse;

/// Maximum number of inodes in logs that are listed.
const MOST_NAMED: usize = 100;
/// Maximum number of leaves read from one log.
const MOST_LEAVES: usize = 1 << 12;

/// State of the file system according to its newest superblock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Disks of the file system.
    pub disks: Vec<u16>,
    /// Generation of the last commit.
    pub generation: u64,
    /// True if the tree of roots is present and has this generation.
    pub is_sound: bool,
    /// Number of inodes in the log trees, which a mount would replay.
    pub logged_count: u64,
    /// The first of these inodes.
    pub logged: Vec<Logged>,
}

/// An inode in a log tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// The subvolume.
    pub tree: u64,
    /// Inode number in the subvolume.
    pub inode: u64,
    /// Path after the replay, if known.
    pub path: Option<String>,
}

impl Recovery {
    /// Returns the state of the file system on `disk`, or None if there is none.
    pub fn find(disks: &mut Disks<'_>, disk: u16) -> Result<Option<Recovery>> {
        let Some(mut newest) = superblock(disks, disk)? else {
            return Ok(None);
        };
        let (mut devices, mut members) = (Devices::default(), Vec::new());
        for other in 0..disks.count() {
            let Some(member) = superblock(disks, other)?.filter(|s| s.fsid == newest.fsid) else {
                continue;
            };
            devices.join(other, member.devid);
            members.push(other);
            // Among superblocks of one generation, open_fs_devices (fs/btrfs/volumes.c) picks the
            // one with the lowest device id. Their contents may differ, because fsync does not
            // raise the generation and writes to one device after another.
            let rank = |s: &Super| (s.generation, Reverse(s.devid));
            if rank(&member) > rank(&newest) {
                newest = member;
            }
        }
        let mut volume = Volume::new(&newest, devices);
        volume.follow_chunks(disks, &newest)?;
        let root = volume.block(disks, newest.root)?;
        let mut found = Recovery {
            disks: members,
            generation: newest.generation,
            is_sound: root.is_some_and(|root| root.header.generation == newest.generation),
            ..Recovery::default()
        };
        if newest.log_root != 0 {
            found.read_logs(&mut volume, disks, &newest)?;
        }
        Ok(Some(found))
    }

    fn read_logs(
        &mut self,
        volume: &mut Volume,
        disks: &mut Disks<'_>,
        superblock: &Super,
    ) -> Result<()> {
        let (mut finder, mut paths) = (PathFinder::default(), Paths::default());
        for (tree, root) in volume.logs(disks, superblock.log_root)? {
            let names = Names {
                tree,
                log_root: Some(root),
                fs_root: volume.root_of(disks, superblock.root, tree)?,
                old_root: None,
                root_tree: superblock.root,
            };
            let leaves = volume.leaves(disks, root, Key::FIRST, Key::LAST, MOST_LEAVES)?;
            let inodes = leaves
                .iter()
                .flat_map(|leaf| leaf.items_of(kind::INODE_ITEM));
            for (key, _) in inodes {
                self.logged_count += 1;
                if self.logged.len() < MOST_NAMED {
                    let inode = key.objectid;
                    let path = finder.path(volume, disks, names, inode, &mut paths)?;
                    self.logged.push(Logged {
                        tree,
                        inode,
                        path: path.map(|path| paths.text(path).to_owned()),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Reads the superblock of a disk, if it has one.
pub fn superblock(disks: &mut Disks<'_>, disk: u16) -> Result<Option<Super>> {
    let mut bytes = [0; SUPER_BYTES as usize];
    disks.read(disk, SUPER_OFFSETS[0], &mut bytes)?;
    Ok(Super::parse(&bytes))
}
