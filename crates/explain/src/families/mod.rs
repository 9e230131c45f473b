//! One folder for each family of file systems, and one line here.

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

/// What finds a file system, given the recording, the disk, and its image as mkfs left it.
type Detect = fn(&FormattedDisks<'_>, u16, &mut Image<'_>) -> Result<Option<Box<dyn Family>>>;

/// In the order of asking.
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
