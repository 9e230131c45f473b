//! Location of the log.

/// Range of one disk.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    /// Disk that holds the range.
    pub disk: u16,
    /// Byte offset.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

impl Area {
    /// Splits a write at the borders of the area. Returns the length of the first part, and whether
    /// it lies in the area.
    pub fn part(&self, disk: u16, offset: u64, length: u64) -> (u64, bool) {
        let end = self.offset.saturating_add(self.bytes);
        if disk != self.disk || offset >= end {
            (length, false)
        } else if offset < self.offset {
            (length.min(self.offset - offset), false)
        } else {
            (length.min(end - offset), true)
        }
    }
}
