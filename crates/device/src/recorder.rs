//! The recorder of all disks: the log is the only storage, and an extent map for each disk locates
//! its current content.

use crate::{
    backend::{Backend, Clock, Request},
    timing::Replies,
};
use fscost_recording::{
    ErrorKind, Event, ExtentMap, MAX_REQUEST_BYTES, Mark, Op, Reply, Result, Summary, Totals,
    Writer, fail_point,
};
use std::{collections::BTreeMap, ops::Range, sync::Arc};

/// All disks of a cell, with one clock and one recording.
pub struct Recorder {
    writer: Writer,
    maps: Vec<ExtentMap>,
    most_extents: usize,
    replies: Option<Arc<Replies>>,
    /// Replies taken from `replies`; empty between requests.
    sent: Vec<Reply>,
    clock: Clock,
}

impl Recorder {
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
}

impl Backend for Recorder {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn space(&mut self) -> &mut [u8] {
        &mut self.writer.space()[..MAX_REQUEST_BYTES]
    }

    fn request(&mut self, request: Request) -> Result<()> {
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

    fn read(&mut self, request: Request, into: &mut [u8]) -> Result<()> {
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

    fn log_read(&mut self, request: Request) -> Result<()> {
        self.log(request).map(drop)
    }

    fn unwritten(&self, request: &Request) -> Vec<Range<usize>> {
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

    fn fail(&mut self, what: &str) {
        self.writer.fail(ErrorKind::Io, what);
    }

    fn mark(&mut self, mark: &Mark) -> Result<u64> {
        let at_ns = self.clock.now_ns();
        self.writer.mark(mark, at_ns)?;
        Ok(at_ns)
    }

    fn check(&self) -> Result<()> {
        self.writer.check()
    }

    fn idle(&mut self) -> Result<()> {
        self.log_replies()?;
        self.writer.seal()
    }

    fn requests(&self) -> u64 {
        self.writer.requests()
    }

    fn disks(&self) -> &[fscost_recording::DiskInfo] {
        self.writer.disks()
    }

    fn totals(&self) -> BTreeMap<String, Totals> {
        named(self.disks(), self.writer.totals())
    }

    fn finish(mut self: Box<Self>) -> Result<(BTreeMap<String, Totals>, Summary)> {
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

    fn recorder(path: &Path, map_bytes: usize) -> Recorder {
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
        Recorder::new(writer, Clock::start(), map_bytes)
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
        let mut recorder = recorder(&path, 1 << 20).with(Arc::clone(&replies));
        for number in 0..3 {
            let part = Part {
                number,
                at_ns: number,
            };
            replies.note(&[part; 5000], number);
            recorder.space()[..512].fill(number as u8 + 1);
            recorder.request(write(number * 512)).unwrap();
        }
        let mut read = [0; 3 * 512];
        let all = Request {
            op: Op::Read,
            length: read.len() as u64,
            ..write(0)
        };
        recorder.read(all, &mut read).unwrap();
        assert_eq!(read, *[[1; 512], [2; 512], [3; 512]].as_flattened());
        Box::new(recorder).finish().unwrap();
        let recording = Recording::open(&path).unwrap();
        let counts = recording.frames().iter().map(|f| f.reply_count);
        assert_eq!(counts.sum::<u32>(), 15_000);
    }

    #[test]
    fn a_map_that_takes_too_much_memory_ends_the_recording() {
        let dir = tempfile::tempdir().unwrap();
        let map_bytes = 2 * ExtentMap::EXTENT_BYTES;
        let mut recorder = recorder(&dir.path().join("recording"), map_bytes);
        // Writing the same place again adds no extent.
        for offset in [0, 0, 0, 4096, 4096, 8192] {
            recorder.request(write(offset)).unwrap();
        }
        let error = recorder.request(write(0)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::HostMemory);
    }
}
