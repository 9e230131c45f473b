//! Disks in memory.

use fscost_recording::{DiskInfo, MAX_REQUEST_BYTES, Mark, Op, Result, Summary, Totals};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;

pub struct Store {
    disks: Vec<DiskInfo>,
    /// Contents in pages; pages that were never written are empty.
    contents: Vec<Vec<u8>>,
    space: Vec<u8>,
    pub clock: Clock,
}

#[derive(Clone, Copy)]
pub struct Clock;

impl Clock {
    pub fn now_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    pub fn monotonic_ns(&self, at_ns: u64) -> u64 {
        at_ns
    }
}

/// Request in the form that the session passes.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub struct Request {
    pub submit_ns: u64,
    pub disk: u16,
    pub op: Op,
    pub offset: u64,
    pub length: u64,
    pub fua: bool,
}

impl Store {
    pub fn new(disks: Vec<DiskInfo>) -> Self {
        let size = |disk: &DiskInfo| vec![0; disk.size_bytes as usize];
        Self {
            contents: disks.iter().map(size).collect(),
            disks,
            space: vec![0; MAX_REQUEST_BYTES],
            clock: Clock,
        }
    }

    pub fn requests(&self) -> u64 {
        0
    }

    pub fn space(&mut self) -> &mut [u8] {
        &mut self.space
    }

    pub fn request(&mut self, request: Request) -> Result<()> {
        let range = request.offset as usize..(request.offset + request.length) as usize;
        let Some(place) = self.contents[usize::from(request.disk)].get_mut(range) else {
            return Ok(());
        };
        if request.op == Op::Write {
            place.copy_from_slice(&self.space[..request.length as usize]);
        } else if request.op.clears() && place.len() <= 1 << 30 {
            place.fill(0);
        }
        Ok(())
    }

    pub fn read(&mut self, request: Request, into: &mut [u8]) -> Result<()> {
        let from = request.offset as usize;
        into.copy_from_slice(&self.contents[usize::from(request.disk)][from..from + into.len()]);
        Ok(())
    }

    pub fn mark(&mut self, _: &Mark) -> Result<u64> {
        Ok(self.clock.now_ns())
    }

    pub fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Does nothing, since no disk is real.
    pub fn fail(&mut self, _: &str) {}

    pub fn log_read(&mut self, _: Request) -> Result<()> {
        Ok(())
    }

    pub fn unwritten(&self, _: &Request) -> Vec<std::ops::Range<usize>> {
        Vec::new()
    }

    pub fn idle(&mut self) -> Result<()> {
        Ok(())
    }

    pub fn disks(&self) -> &[DiskInfo] {
        &self.disks
    }

    pub fn totals(&self) -> BTreeMap<String, Totals> {
        let names = self.disks.iter().map(|d| d.name.clone());
        names.map(|name| (name, Totals::default())).collect()
    }

    pub fn finish(self) -> Result<(BTreeMap<String, Totals>, Summary)> {
        let summary = Summary {
            totals: Vec::new(),
            requests: 0,
            file_bytes: 0,
        };
        Ok((self.totals(), summary))
    }
}
