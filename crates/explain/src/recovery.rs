//! The recovery that mounting the disks would perform in their state at a given instant.

use crate::{Disks, families::btrfs, families::xfs};
use fscost_recording::{Recording, Result};

/// Recovery of one file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// xfs: replay of the log.
    Xfs(xfs::Recovery),
    /// btrfs: choice of superblock, and log replay.
    Btrfs(btrfs::Recovery),
}

/// Finds the recovery of each file system on disks that hold all events completed by `at_ns` except
/// those in `lost` (event numbers, ascending). Each result comes with the first disk of its file
/// system.
pub fn recovery(recording: &Recording, at_ns: u64, lost: &[u64]) -> Result<Vec<(u16, Recovery)>> {
    let mut disks = Disks::at(recording, at_ns, lost)?;
    let mut found = Vec::new();
    for disk in 0..disks.count() {
        let is_of =
            |known: &Recovery| matches!(known, Recovery::Btrfs(b) if b.disks.contains(&disk));
        if found.iter().any(|(_, known)| is_of(known)) {
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
