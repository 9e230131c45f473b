//! What mounting the disks as they were at an instant would begin with.

use crate::{Disks, families::btrfs, families::xfs};
use fscost_recording::{Recording, Result};

/// Of one file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// Of xfs: its log.
    Xfs(xfs::Recovery),
    /// Of btrfs: its superblock.
    Btrfs(btrfs::Recovery),
}

/// With all that had completed by `at_ns` but these events (their numbers, ascending): each file
/// system's, with its first disk.
pub fn recovery(recording: &Recording, at_ns: u64, lost: &[u64]) -> Result<Vec<(u16, Recovery)>> {
    let mut disks = Disks::at(recording, at_ns, lost)?;
    let mut found = Vec::new();
    for disk in 0..disks.count() {
        let is_of = |(_, known): &(u16, Recovery)| matches!(known, Recovery::Btrfs(b) if b.disks.contains(&disk));
        if found.iter().any(is_of) {
            continue;
        }
        if let Some(xfs) = xfs::recovery(recording, disk, &mut disks)? {
            found.push((disk, Recovery::Xfs(xfs)));
        } else if let Some(btrfs) = btrfs::Recovery::find(&mut disks, disk)? {
            found.push((disk, Recovery::Btrfs(btrfs)));
        }
    }
    Ok(found)
}
