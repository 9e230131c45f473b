//! Requests to a device, and their completions.

/// Largest device: 1 PiB. Bytes beyond the end of a device are not transferred.
pub(crate) const LARGEST_BYTES: u64 = 1 << 50;

/// Kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Reads a range.
    Read,
    /// Writes a range.
    Write,
    /// Discards a range (TRIM, deallocate).
    Discard,
    /// Writes zeroes to a range without sending them.
    WriteZeroes,
    /// Makes every write that completed earlier durable.
    Flush,
}

/// A request, as the block layer sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Identifier chosen by the caller; [`Completion`] repeats it.
    pub id: u64,
    /// Kind of request.
    pub op: Op,
    /// First byte; 0 for a flush.
    pub offset_bytes: u64,
    /// Length of the range; 0 for a flush.
    pub length_bytes: u64,
    /// Forced unit access: this write is durable when it completes.
    pub fua: bool,
}

/// Completion of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Identifier of the request: [`Request::id`].
    pub id: u64,
    /// Instant of the completion, on the clock of the submissions.
    pub at_ns: u64,
}
