//! File system families: one folder each, and one line each in this file.

pub mod btrfs;
pub mod ext;
mod f2fs;
mod fat;
mod jfs;
mod nilfs2;
mod ntfs;
mod reiserfs;
pub mod xfs;

use crate::{Family, FormattedDisks};
use fscost_recording::{Image, Result};

/// Function that detects a file system. Its arguments are the recording, the disk, and the disk's
/// image as mkfs left it.
type Detect = fn(&FormattedDisks<'_>, u16, &mut Image<'_>) -> Result<Option<Box<dyn Family>>>;

/// Detection functions, in the order in which they are tried.
pub(crate) const DETECT: &[Detect] = &[
    ext::detect,
    xfs::detect,
    btrfs::detect,
    f2fs::detect,
    nilfs2::detect,
    reiserfs::detect,
    jfs::detect,
    ntfs::detect,
    fat::detect,
];
