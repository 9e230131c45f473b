//! Common code of families whose file system is followed by its [`Files`] alone.

use crate::track::files::Files;
use crate::{Disks, Family, FormattedDisks, Now, Rows, Write};
use fscost_recording::{Image, Result};

/// Returns the first disk other than `disk` that `is_log` identifies as its log, with all disks as
/// mkfs left them.
pub fn log_disk(
    formatted: &FormattedDisks<'_>,
    disk: u16,
    is_log: impl Fn(&mut Image<'_>) -> Result<bool>,
) -> Result<Option<u16>> {
    for other in formatted.others(disk) {
        let (other, mut image) = other?;
        if is_log(&mut image)? {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

/// A family that learns owners from metadata as it is written.
pub trait Follower: Send {
    /// True if the file system itself shows when metadata that belongs together is on the disk, for
    /// example by a checkpoint or a transaction. For others, flushes and time show it.
    const IS_ATOMIC: bool;

    /// [`Family::name`].
    fn name(&self) -> &'static str;

    /// [`Family::owns`].
    fn owns(&self, disk: u16) -> bool;

    /// Returns the owners and names.
    fn files(&mut self) -> &mut Files;

    /// Learns what is known once everything before a flush, or before the end, is on the disk.
    fn flushed(&mut self, _rows: &mut Rows) {}

    /// [`Family::write`].
    fn follow(&mut self, now: &mut Now<'_, '_>) -> Result<()>;
}

impl<F: Follower> Family for F {
    fn name(&self) -> &'static str {
        Follower::name(self)
    }

    fn owns(&self, disk: u16) -> bool {
        Follower::owns(self, disk)
    }

    fn write(&mut self, write: &Write<'_>, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        self.files().begin(write, rows);
        self.follow(&mut Now { write, disks, rows })?;
        if !F::IS_ATOMIC {
            self.files().tick(write.time_ns, rows);
        }
        Ok(())
    }

    fn discard(&mut self, _disk: u16, offset: u64, length: u64, _rows: &mut Rows) -> Result<()> {
        if F::IS_ATOMIC {
            self.files().free(offset, length);
        }
        Ok(())
    }

    fn flush(&mut self, _disk: u16, _event: u64, rows: &mut Rows) -> Result<()> {
        if !F::IS_ATOMIC {
            self.flushed(rows);
            self.files().flush(rows);
        }
        Ok(())
    }

    fn finish(&mut self, _disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        self.flushed(rows);
        self.files().commit(0, rows);
        Ok(())
    }
}
