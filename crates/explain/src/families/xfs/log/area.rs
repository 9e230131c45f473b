//! Where the log is.

/// A range of one disk.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    /// The disk.
    pub disk: u16,
    /// Byte offset.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Area {
    /// Where the area's end or begin cuts a write: its next part's length, and whether this is in
    /// the area.
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
