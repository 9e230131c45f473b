//! Real disks behind the recorder: a request is recorded, carried out by the device, and answered
//! when the device has completed it.
//!
//! Threads carry out requests side by side, so that the device sees the queue that the file system
//! makes. Where nothing was written since the recording began, the disk reads as zeros, as every
//! recorded disk does: whatever the device held before decides nothing.

mod disk;
mod pool;

pub use disk::{Named, RealDisk};
pub use pool::{Job, Outcome, Pool};

use crate::{
    store::{Clock, Request, Store},
    timing::SharedCompletions,
};
use fscost_recording::{DiskInfo, Op};
use serde::Serialize;
use std::{collections::BTreeMap, io, ops::Range, sync::Arc};

/// The real disks of a cell.
pub struct Real {
    disks: Vec<Option<Arc<RealDisk>>>,
    pool: Pool,
    clock: Clock,
}

/// A real disk for the manifest: where it is, and the kernel's counters of it since the recording
/// began.
#[derive(Debug, Serialize)]
pub struct Account {
    device: String,
    accepts_discards: bool,
    kernel: disk::Counters,
}

impl Real {
    /// Open the devices that disks have been given by name; none for none.
    pub fn open(
        disks: &[DiskInfo],
        named: &[Named],
        clock: Clock,
        completions: Option<SharedCompletions>,
    ) -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let Some(completions) = completions.filter(|_| !named.is_empty()) else {
            return Ok(None);
        };
        let mut found: Vec<_> = disks.iter().map(|_| None).collect();
        for each in named {
            let index = disks.iter().position(|disk| disk.name == each.disk);
            let index =
                index.ok_or_else(|| format!("--device: no disk is called {}", each.disk))?;
            found[index] = Some(Arc::new(RealDisk::open(each, disks[index].size_bytes)?));
        }
        Ok(Some(Self {
            disks: found,
            pool: Pool::start(clock, completions)?,
            clock,
        }))
    }

    /// The device of a disk, if it has one.
    pub fn of(&self, disk: u16) -> Option<&Arc<RealDisk>> {
        self.disks.get(usize::from(disk))?.as_ref()
    }

    /// Record a request and hand it to the device; `reply` gets the device's answer. The content of
    /// a write is at the beginning of the store's space.
    ///
    /// The device has it first: the time that recording takes is not the device's.
    pub fn carry_out(
        &self,
        disk: &Arc<RealDisk>,
        mut request: Request,
        store: &mut Store,
        reply: impl FnOnce(Outcome<'_>) + Send + 'static,
    ) {
        let length = request.length as usize;
        let mut buffer = None;
        let mut unwritten: Vec<Range<usize>> = Vec::new();
        match request.op {
            Op::Write => {
                let mut content = self.pool.buffer(length);
                content.bytes().copy_from_slice(&store.space()[..length]);
                buffer = Some(content);
            }
            Op::Read => {
                buffer = Some(self.pool.buffer(length));
                unwritten = store.unwritten(&request);
            }
            _ => {}
        }
        request.submit_ns = self.clock.now_ns();
        self.pool.submit(Job {
            number: store.requests(),
            disk: Arc::clone(disk),
            request,
            buffer,
            unwritten,
            reply: Box::new(reply),
        });
        // A failure refuses every further request, and ends the cell.
        let _ = match request.op {
            Op::Read => store.log_read(request),
            _ => store.request(request),
        };
    }

    /// Why a device failed, if one did.
    pub fn failure(&self) -> Option<String> {
        self.pool.failure()
    }

    /// Wait for the requests under way, and end the threads.
    pub fn finish(&self) -> fscost_recording::Result<()> {
        self.pool.finish()
    }

    /// Each real disk by its name.
    pub fn accounts(&self, disks: &[DiskInfo]) -> io::Result<BTreeMap<String, Account>> {
        let named = disks.iter().zip(&self.disks);
        named
            .filter_map(|(info, disk)| Some((info.name.clone(), disk.as_ref()?)))
            .map(|(name, disk)| {
                let account = Account {
                    device: disk.path().to_owned(),
                    accepts_discards: disk.accepts_discards(),
                    kernel: disk.counted()?,
                };
                Ok((name, account))
            })
            .collect()
    }
}
