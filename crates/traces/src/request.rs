//! The one form that every format is brought to.

/// The operation that a request asks of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Data are read.
    Read,
    /// Data are written.
    Write,
    /// The range is no longer needed (TRIM, UNMAP).
    Discard,
    /// The range reads as zeros afterwards (WRITE ZEROES). blktrace before version 2 reports it as
    /// a write.
    Zero,
    /// Completed writes become durable. Offset and length are 0.
    Flush,
}

/// A request that reached a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// Time on the trace's own clock, in nanoseconds. The clocks start at different instants (boot,
    /// 1601, 1970, the
    /// start of the job), so only differences within one trace have a meaning.
    pub time_ns: u64,
    /// Index into [`Trace::disks`](crate::Trace::disks).
    pub disk: u32,
    /// Operation.
    pub kind: Kind,
    /// The write itself is durable when it completes (forced unit access).
    pub fua: bool,
    /// First byte.
    pub offset_bytes: u64,
    /// Length. `offset_bytes + length_bytes` does not overflow.
    pub length_bytes: u64,
}
