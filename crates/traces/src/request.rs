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

impl Request {
    pub(crate) fn flush(time_ns: u64, disk: u32) -> Request {
        Request {
            time_ns,
            disk,
            kind: Kind::Flush,
            fua: false,
            offset_bytes: 0,
            length_bytes: 0,
        }
    }
}

/// Requests that were read and not yet taken. Readers fill it with those of many lines, so that the
/// loop over the lines of a format is compiled for it alone.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    requests: Vec<Request>,
    taken: usize,
}

impl Batch {
    /// Adds a request. A read or write of no bytes moves no data, and does not count.
    pub(crate) fn add(&mut self, request: Request) {
        if request.length_bytes > 0 || request.kind == Kind::Flush {
            self.requests.push(request);
        }
    }

    /// The oldest request.
    pub(crate) fn take(&mut self) -> Option<Request> {
        let request = self.requests.get(self.taken).copied();
        self.taken += usize::from(request.is_some());
        request
    }

    /// Forgets the requests that were taken, which are all.
    pub(crate) fn clear(&mut self) {
        self.requests.clear();
        self.taken = 0;
    }
}
