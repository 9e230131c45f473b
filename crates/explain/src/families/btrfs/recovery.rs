//! What a mount would find: the superblock that is newest, and what fsync logged since.

use super::compare::logs_at;
use super::devices::Devices;
use super::key::{Key, kind};
use super::paths::{Names, PathFinder};
use super::superblock::{SUPER_BYTES, SUPER_OFFSETS, Super};
use super::volume::Volume;
use crate::{Disks, Paths};
use fscost_recording::Result;
use std::cmp::Reverse;

/// So many inodes of logs are named.
const MOST_NAMED: usize = 100;
/// Leaves of one log that are looked at.
const MOST_LEAVES: usize = 1 << 12;

/// Where the newest superblock leads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// All that it is on.
    pub disks: Vec<u16>,
    /// Its generation: that of the last commit.
    pub generation: u64,
    /// Whether the tree of roots of that generation is where it says.
    pub is_sound: bool,
    /// Inodes that the log trees hold, and a mount would replay.
    pub logged_count: u64,
    /// The first of them.
    pub logged: Vec<Logged>,
}

/// An inode in a log tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// The subvolume.
    pub tree: u64,
    /// Its number there.
    pub inode: u64,
    /// What it would be called.
    pub path: Option<String>,
}

impl Recovery {
    /// Of the file system on `disk`; None where there is none.
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
            // Among equal ones open_fs_devices (fs/btrfs/volumes.c) takes the lowest device id. They
            // may differ: fsync does not raise the generation, and reaches one device after another.
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
        for (tree, root) in logs_at(volume, disks, superblock.log_root)? {
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

fn superblock(disks: &mut Disks<'_>, disk: u16) -> Result<Option<Super>> {
    let mut bytes = [0; SUPER_BYTES as usize];
    disks.read(disk, SUPER_OFFSETS[0], &mut bytes)?;
    Ok(Super::parse(&bytes))
}
