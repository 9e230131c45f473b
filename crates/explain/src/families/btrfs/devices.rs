//! Mapping of disks to devices: devices are added, removed and replaced while the file system is
//! mounted.

use super::superblock::{SUPER_BYTES, SUPER_OFFSETS, Super};
use crate::FormattedDisks;
use crate::disks::read_bytes;
use fscost_recording::{Event, Image, Op, Recording, Result};
use std::collections::{HashMap, HashSet};

/// Device number of a replacement target until the replacement has completed
/// (`BTRFS_DEV_REPLACE_DEVID`).
pub(super) const REPLACEMENT: u64 = 0;

/// Disks of one file system.
#[derive(Debug, Default)]
pub struct Devices {
    /// Current disks, by device number.
    disks: HashMap<u64, u16>,
    /// Disks that are a device of the file system at any time.
    members: HashSet<u16>,
    /// The device being replaced.
    pub replaced: Option<u64>,
}

impl Devices {
    /// Finds the disks of the file system whose superblock is on `disk` at the mark `mount`.
    pub fn find(formatted: &FormattedDisks<'_>, disk: u16, superblock: &Super) -> Result<Devices> {
        let mut devices = Devices::default();
        devices.disks.insert(superblock.devid, disk);
        let mut others = Vec::new();
        for other in formatted.others(disk) {
            let (other, mut image) = other?;
            match superblock_of(&mut image)?.filter(|s| s.fsid == superblock.fsid) {
                Some(member) => {
                    devices.disks.entry(member.devid).or_insert(other);
                }
                None => others.push(other),
            }
        }
        devices.members = devices.disks.values().copied().collect();
        if !others.is_empty() {
            let joining = joining(formatted.recording(), &others, &superblock.fsid)?;
            devices.members.extend(joining);
        }
        Ok(devices)
    }

    /// Adds `disk` as the device `devid`.
    pub fn join(&mut self, disk: u16, devid: u64) {
        self.members.insert(disk);
        self.disks.entry(devid).or_insert(disk);
    }

    pub fn owns(&self, disk: u16) -> bool {
        self.members.contains(&disk)
    }

    /// Records that a superblock identifies `disk` as the device `devid`.
    pub fn is(&mut self, disk: u16, devid: u64) {
        if self.disk(devid) != Some(disk) && self.owns(disk) {
            self.disks.retain(|_, known| *known != disk);
            self.disks.insert(devid, disk);
        }
    }

    /// Removes `disk` from the devices.
    pub fn leave(&mut self, disk: u16) {
        self.disks.retain(|_, known| *known != disk);
    }

    /// Returns whether a device replacement is in progress.
    pub fn is_replacing(&self) -> bool {
        self.disks.contains_key(&REPLACEMENT)
    }

    /// Returns whether a disk is the target of a device replacement that is in progress.
    pub fn is_replacement(&self, disk: u16) -> bool {
        self.disk(REPLACEMENT) == Some(disk)
    }

    /// Returns the device whose chunks lie on a disk. A replacement target has the chunks of the
    /// device that it replaces.
    pub fn devid(&self, disk: u16) -> Option<u64> {
        let mut disks = self.disks.iter();
        let (&devid, _) = disks.find(|&(_, &known)| known == disk)?;
        if devid == REPLACEMENT {
            self.replaced
        } else {
            Some(devid)
        }
    }

    pub fn disk(&self, devid: u64) -> Option<u16> {
        self.disks.get(&devid).copied()
    }
}

/// Reads the superblock of a disk, if it has one.
pub fn superblock_of(image: &mut Image<'_>) -> Result<Option<Super>> {
    let bytes = read_bytes::<{ SUPER_BYTES as usize }>(image, SUPER_OFFSETS[0])?;
    Ok(bytes.and_then(|bytes| Super::parse(&bytes)))
}

/// Returns those of `disks` that receive a superblock of this file system at any time.
fn joining(recording: &Recording, disks: &[u16], fsid: &[u8; 16]) -> Result<HashSet<u16>> {
    let mut found = HashSet::new();
    let is_first_super = |event: &Event| {
        event.op == Op::Write && event.offset == SUPER_OFFSETS[0] && disks.contains(&event.disk)
    };
    recording.for_each_frame(true, |_, frame| {
        for event in frame.events.iter().filter(|event| is_first_super(event)) {
            if Super::parse(frame.content_of(event)).is_some_and(|s| s.fsid == *fsid) {
                found.insert(event.disk);
            }
        }
        Ok(found.len() < disks.len())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(disks: &[(u64, u16)]) -> Devices {
        Devices {
            disks: disks.iter().copied().collect(),
            members: HashSet::from([0, 1, 2]),
            replaced: None,
        }
    }

    #[test]
    fn a_disk_that_comes_back_has_only_its_new_number() {
        let mut devices = devices(&[(1, 0), (2, 1)]);
        devices.is(1, 3);
        assert_eq!((devices.disk(2), devices.disk(3)), (None, Some(1)));
        assert_eq!(devices.devid(1), Some(3));
        devices.leave(1);
        assert_eq!((devices.devid(1), devices.disk(3)), (None, None));
        devices.is(9, 4);
        assert_eq!(devices.disk(4), None);
    }

    #[test]
    fn a_replacement_has_the_chunks_of_what_it_replaces() {
        let mut devices = devices(&[(1, 0), (2, 1)]);
        devices.is(2, REPLACEMENT);
        assert_eq!(devices.devid(2), None);
        devices.replaced = Some(1);
        assert_eq!((devices.devid(2), devices.devid(0)), (Some(1), Some(1)));
        assert_eq!(devices.disk(1), Some(0));
        devices.is(2, 1);
        assert_eq!((devices.devid(2), devices.devid(0)), (Some(1), None));
        assert!(!devices.is_replacing());
    }
}
