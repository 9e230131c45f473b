//! xfs (v5).

use crate::classify::Family;
use fscost_recording::{Image, Recording, Result};

/// The family that follows `disk`, if it holds one of these file systems. `image` is the disk as mkfs left it.
pub fn detect(
    _recording: &Recording,
    _disk: u16,
    _image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    Ok(None)
}
