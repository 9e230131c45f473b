//! The common request type of all formats.

use crate::disks::Disks;

/// Operation requested of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Discards a range that is no longer needed (TRIM, UNMAP).
    Discard,
    /// Zeroes a range (WRITE ZEROES). Records of blktrace version 7 report it as a write.
    Zero,
    /// Makes completed writes durable. Offset and length are 0.
    Flush,
}

/// A request that reached a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// Time on the trace's own clock, in nanoseconds. The clocks start at different instants (boot,
    /// 1601, 1970, the start of the job), so only differences within one trace are meaningful.
    pub time_ns: u64,
    /// Index into [`Trace::disks`](crate::Trace::disks).
    pub disk: u32,
    /// Operation of the request.
    pub kind: Kind,
    /// Forced unit access: the write itself is durable when it completes.
    pub fua: bool,
    /// Offset of the first byte.
    pub offset_bytes: u64,
    /// Length in bytes. `offset_bytes + length_bytes` does not overflow.
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

/// Disks found so far, and requests that were read but not yet taken. Readers fill it with the
/// requests of many lines, so that each format has its own compiled loop over lines.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) disks: Disks,
    requests: Vec<Request>,
    taken: usize,
    /// The first and the last time of any line.
    pub(crate) span_ns: Option<(u64, u64)>,
}

impl Output {
    /// Adds a request. An empty read or write moves no data, and does not count.
    pub(crate) fn add(&mut self, request: Request) {
        self.see(request.time_ns);
        if request.length_bytes > 0 || request.kind == Kind::Flush {
            self.requests.push(request);
        }
    }

    /// Extends the span of the trace to the time of a line, which need not be a request.
    pub(crate) fn see(&mut self, time_ns: u64) {
        let (first, last) = self.span_ns.unwrap_or((time_ns, time_ns));
        self.span_ns = Some((first.min(time_ns), last.max(time_ns)));
    }

    /// Takes the oldest request.
    pub(crate) fn take(&mut self) -> Option<Request> {
        let request = self.requests.get(self.taken).copied();
        self.taken += usize::from(request.is_some());
        request
    }

    /// Drops the requests, all of which must have been taken.
    pub(crate) fn clear(&mut self) {
        self.requests.clear();
        self.taken = 0;
    }
}
