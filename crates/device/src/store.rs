//! The store of all disks: the log is the only storage, and an extent map for each disk locates its
//! current content.

use crate::timing::Replies;
use fscost_recording::{
    ErrorKind, Event, ExtentMap, MAX_REQUEST_BYTES, Mark, Op, Reply, Result, Summary, Totals,
    Writer, fail_point,
};
use rustix::time::{ClockId, clock_gettime};
use std::{collections::BTreeMap, ops::Range, sync::Arc};

/// All disks of a cell, with one clock and one recording.
pub struct Store {
    writer: Writer,
    maps: Vec<ExtentMap>,
    most_extents: usize,
    replies: Option<Arc<Replies>>,
    /// Replies taken from `replies`; empty between requests.
    sent: Vec<Reply>,
    /// The recording's clock.
    pub clock: Clock,
}

/// Clock that counts nanoseconds since the recording began.
#[derive(Clone, Copy)]
pub struct Clock {
    begin_monotonic_ns: u64,
}

impl Clock {
    /// Start a clock.
    pub fn start() -> Self {
        Self {
            begin_monotonic_ns: monotonic_ns(),
        }
    }

    /// Current time.
    pub fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.begin_monotonic_ns)
    }

    /// Convert a time of this clock to CLOCK_MONOTONIC.
    pub fn monotonic_ns(&self, at_ns: u64) -> u64 {
        self.begin_monotonic_ns.saturating_add(at_ns)
    }
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A request without its content.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Time at which the request was received.
    pub submit_ns: u64,
    /// Index of the disk.
    pub disk: u16,
    /// The operation.
    pub op: Op,
    /// Byte offset.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Forced unit access.
    pub fua: bool,
}

impl Store {
    /// Create empty disks whose requests go to `writer`. Requests fail once the maps take more than
    /// `map_bytes`.
    pub fn new(writer: Writer, clock: Clock, map_bytes: usize) -> Self {
        let maps = writer
            .disks()
            .iter()
            .map(|_| ExtentMap::default())
            .collect();
        Self {
            writer,
            maps,
            most_extents: map_bytes / ExtentMap::EXTENT_BYTES,
            replies: None,
            sent: Vec::new(),
            clock,
        }
    }

    /// Log the replies that other threads note.
    #[must_use]
    pub fn with(mut self, replies: Arc<Replies>) -> Self {
        self.replies = Some(replies);
        self
    }

    /// Space for the content of the next write. Filling it before [`request`](Self::request) saves
    /// a copy.
    pub fn space(&mut self) -> &mut [u8] {
        &mut self.writer.space()[..MAX_REQUEST_BYTES]
    }

    /// Execute and log a write (its content is at the beginning of [`space`](Self::space)), flush,
    /// discard or zeroing.
    pub fn request(&mut self, request: Request) -> Result<()> {
        let location = self.log(request)?;
        fail_point("serving");
        let Some(map) = self.maps.get_mut(usize::from(request.disk)) else {
            return Ok(());
        };
        if request.op == Op::Write {
            map.write(request.offset, request.length, location);
            if map.extents() > self.most_extents {
                self.refuse_more();
            }
        } else if request.op.clears() {
            map.clear(request.offset, request.length);
        }
        Ok(())
    }

    /// Refuse every further request; the current one is done.
    #[cold]
    fn refuse_more(&mut self) {
        let mib = (self.most_extents * ExtentMap::EXTENT_BYTES) >> 20;
        let what = format!(
            "the map of written blocks needs more than {mib} MiB, a quarter of the \
            memory that was available"
        );
        self.writer.fail(ErrorKind::HostMemory, what);
    }

    /// Execute and log a read.
    pub fn read(&mut self, request: Request, into: &mut [u8]) -> Result<()> {
        if let Some(map) = self.maps.get(usize::from(request.disk)) {
            for segment in map.segments(request.offset, request.length) {
                let from = (segment.offset - request.offset) as usize;
                let part = &mut into[from..from + segment.length as usize];
                match segment.location {
                    Some(location) => self.writer.read(location, part)?,
                    None => part.fill(0),
                }
            }
        }
        self.log(request)?;
        Ok(())
    }

    /// Log a read that is carried out elsewhere.
    pub fn log_read(&mut self, request: Request) -> Result<()> {
        self.log(request).map(drop)
    }

    /// Returns the ranges of a read that were never written, relative to its beginning.
    pub fn unwritten(&self, request: &Request) -> Vec<Range<usize>> {
        let Some(map) = self.maps.get(usize::from(request.disk)) else {
            return Vec::new();
        };
        map.segments(request.offset, request.length)
            .filter(|segment| segment.location.is_none())
            .map(|segment| {
                let begin = (segment.offset - request.offset) as usize;
                begin..begin + segment.length as usize
            })
            .collect()
    }

    fn log(&mut self, request: Request) -> Result<fscost_recording::Location> {
        let location = self.writer.append(Event {
            submit_ns: request.submit_ns,
            complete_ns: self.clock.now_ns(),
            offset: request.offset,
            length: request.length,
            content_offset: 0,
            disk: request.disk,
            op: request.op,
            fua: request.fua,
        })?;
        // Not earlier: a frame full of replies would end before the content in its space is logged.
        self.log_replies()?;
        Ok(location)
    }

    fn log_replies(&mut self) -> Result<()> {
        if let Some(replies) = &self.replies {
            replies.take(&mut self.sent);
        }
        self.sent
            .drain(..)
            .try_for_each(|reply| self.writer.reply(reply))
    }

    /// Refuse every further request.
    pub fn fail(&mut self, what: &str) {
        self.writer.fail(ErrorKind::Io, what);
    }

    /// Log a mark; returns its time.
    pub fn mark(&mut self, mark: &Mark) -> Result<u64> {
        let at_ns = self.clock.now_ns();
        self.writer.mark(mark, at_ns)?;
        Ok(at_ns)
    }

    /// Fails if every request is refused; the error is the reason.
    pub fn check(&self) -> Result<()> {
        self.writer.check()
    }

    /// Start storing unstored data. Called when idle, so that a killed server loses little.
    pub fn idle(&mut self) -> Result<()> {
        self.log_replies()?;
        self.writer.seal()
    }

    /// Number of the next request in the recording.
    pub fn requests(&self) -> u64 {
        self.writer.requests()
    }

    /// Names and sizes of the disks.
    pub fn disks(&self) -> &[fscost_recording::DiskInfo] {
        self.writer.disks()
    }

    /// Totals so far, by disk name.
    pub fn totals(&self) -> BTreeMap<String, Totals> {
        named(self.disks(), self.writer.totals())
    }

    /// Finish the recording.
    pub fn finish(mut self) -> Result<(BTreeMap<String, Totals>, Summary)> {
        self.log_replies()?;
        let disks = self.writer.disks().to_vec();
        let summary = self.writer.finish()?;
        Ok((named(&disks, &summary.totals), summary))
    }
}

fn named(disks: &[fscost_recording::DiskInfo], totals: &[Totals]) -> BTreeMap<String, Totals> {
    disks
        .iter()
        .map(|d| d.name.clone())
        .zip(totals.iter().copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Part;
    use fscost_recording::{DiskInfo, Header, Recording, Stripped};
    use std::path::Path;

    fn store(path: &Path, map_bytes: usize) -> Store {
        let disk = DiskInfo {
            name: "main".into(),
            size_bytes: 1 << 20,
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
        };
        let header = Header {
            begin_unix_ns: 0,
            disks: vec![disk],
            stripped: Stripped::No,
        };
        let writer = Writer::create(path, &header).unwrap();
        Store::new(writer, Clock::start(), map_bytes)
    }

    fn write(offset: u64) -> Request {
        Request {
            submit_ns: 0,
            disk: 0,
            op: Op::Write,
            offset,
            length: 512,
            fua: false,
        }
    }

    #[test]
    fn replies_that_fill_a_frame_keep_the_content_of_a_write() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("recording");
        let replies = Arc::new(Replies::default());
        let mut store = store(&path, 1 << 20).with(Arc::clone(&replies));
        for number in 0..3 {
            let part = Part {
                number,
                at_ns: number,
            };
            replies.note(&[part; 5000], number);
            store.space()[..512].fill(number as u8 + 1);
            store.request(write(number * 512)).unwrap();
        }
        let mut read = [0; 3 * 512];
        let all = Request {
            op: Op::Read,
            length: read.len() as u64,
            ..write(0)
        };
        store.read(all, &mut read).unwrap();
        assert_eq!(read, *[[1; 512], [2; 512], [3; 512]].as_flattened());
        store.finish().unwrap();
        let recording = Recording::open(&path).unwrap();
        assert_eq!(recording.replies().unwrap().len(), 15_000);
    }

    #[test]
    fn a_map_that_takes_too_much_memory_ends_the_recording() {
        let dir = tempfile::tempdir().unwrap();
        let map_bytes = 2 * ExtentMap::EXTENT_BYTES;
        let mut store = store(&dir.path().join("recording"), map_bytes);
        // Writing the same place again adds no extent.
        for offset in [0, 0, 0, 4096, 4096, 8192] {
            store.request(write(offset)).unwrap();
        }
        let error = store.request(write(0)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::HostMemory);
    }
}
