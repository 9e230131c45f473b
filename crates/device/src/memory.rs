//! Disks in memory, of which nothing is recorded: for tests, and as the floor of a recorded disk
//! (`examples/reply_only.rs`).

use crate::backend::{Backend, Clock, Request};
use fscost_recording::{DiskInfo, Error, MAX_REQUEST_BYTES, Mark, Op, Result, Summary, Totals};
use std::{collections::BTreeMap, ops::Range};

/// The disks.
pub struct Memory {
    disks: Vec<DiskInfo>,
    contents: Vec<Vec<u8>>,
    space: Vec<u8>,
    requests: u64,
    clock: Clock,
}

impl Memory {
    /// Create disks of zeros. Pages that are never written take no memory.
    pub fn new(disks: Vec<DiskInfo>) -> Self {
        let zeros = |disk: &DiskInfo| vec![0; disk.size_bytes as usize];
        Self {
            contents: disks.iter().map(zeros).collect(),
            disks,
            space: vec![0; MAX_REQUEST_BYTES],
            requests: 0,
            clock: Clock::start(),
        }
    }

    fn place(&mut self, request: &Request) -> Result<(&mut [u8], &[u8])> {
        self.requests += 1;
        let range = request.offset as usize..(request.offset + request.length) as usize;
        let disk = self.contents.get_mut(usize::from(request.disk));
        let place = disk.and_then(|disk| disk.get_mut(range));
        let place = place.ok_or_else(|| Error::invalid("a request does not fit its disk"))?;
        Ok((place, &self.space))
    }
}

impl Backend for Memory {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn disks(&self) -> &[DiskInfo] {
        &self.disks
    }

    fn requests(&self) -> u64 {
        self.requests
    }

    fn space(&mut self) -> &mut [u8] {
        &mut self.space
    }

    fn request(&mut self, request: Request) -> Result<()> {
        let (place, content) = self.place(&request)?;
        if request.op == Op::Write {
            place.copy_from_slice(&content[..request.length as usize]);
        } else if request.op.clears() {
            place.fill(0);
        }
        Ok(())
    }

    fn read(&mut self, request: Request, into: &mut [u8]) -> Result<()> {
        into.copy_from_slice(self.place(&request)?.0);
        Ok(())
    }

    fn log_read(&mut self, _: Request) -> Result<()> {
        self.requests += 1;
        Ok(())
    }

    fn unwritten(&self, _: &Request) -> Vec<Range<usize>> {
        Vec::new()
    }

    fn mark(&mut self, _: &Mark) -> Result<u64> {
        Ok(self.clock.now_ns())
    }

    fn totals(&self) -> BTreeMap<String, Totals> {
        let names = self.disks.iter().map(|disk| disk.name.clone());
        names.map(|name| (name, Totals::default())).collect()
    }

    fn idle(&mut self) -> Result<()> {
        Ok(())
    }

    /// Does nothing: no disk is real.
    fn fail(&mut self, _: &str) {}

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(BTreeMap<String, Totals>, Summary)> {
        let summary = Summary {
            totals: Vec::new(),
            requests: self.requests,
            file_bytes: 0,
        };
        Ok((self.totals(), summary))
    }
}
