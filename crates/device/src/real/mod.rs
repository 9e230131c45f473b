//! Real disks behind the recorder. A request is passed to the device, recorded, and answered when
//! the device has completed it.
//!
//! Threads carry out requests in parallel, so that the device sees the queue that the file system
//! builds. Ranges that were not written since the recording began read as zeros, as on every
//! recorded disk, so the previous contents of the device have no effect.

mod disk;
mod pool;

pub use disk::{Account, Named, RealDisk};
pub use pool::{Job, Outcome, Pool};

use crate::{
    backend::{Backend, Clock, Request},
    timing::Replies,
};
use fscost_recording::{DiskInfo, Op};
use std::{collections::BTreeMap, io, ops::Range, sync::Arc};

/// The real disks of a cell.
pub struct Real {
    disks: Vec<Option<Arc<RealDisk>>>,
    pool: Pool,
    clock: Clock,
}

impl Real {
    /// Open the device of each disk that `named` assigns one to; `None` if it assigns none.
    pub fn open(
        disks: &[DiskInfo],
        named: &[Named],
        clock: Clock,
        replies: Arc<Replies>,
    ) -> Result<Option<Self>, Box<dyn std::error::Error>> {
        if named.is_empty() {
            return Ok(None);
        }
        let mut found: Vec<_> = disks.iter().map(|_| None).collect();
        for each in named {
            let index = disks.iter().position(|disk| disk.name == each.disk);
            let index =
                index.ok_or_else(|| format!("--device: no disk is called {}", each.disk))?;
            found[index] = Some(Arc::new(RealDisk::open(each, disks[index].size_bytes)?));
        }
        Ok(Some(Self {
            disks: found,
            pool: Pool::start(clock, replies)?,
            clock,
        }))
    }

    /// Device of a disk, if it has one.
    pub fn of(&self, disk: u16) -> Option<&Arc<RealDisk>> {
        self.disks.get(usize::from(disk))?.as_ref()
    }

    /// Pass a request to the device, and record it; `reply` receives the device's answer. The
    /// content of a write is at the beginning of the backend's space.
    ///
    /// The request is recorded after it was passed on, so that the time that the device takes does
    /// not include the recording.
    pub fn carry_out(
        &self,
        disk: &Arc<RealDisk>,
        mut request: Request,
        backend: &mut dyn Backend,
        reply: impl FnOnce(Outcome<'_>) + Send + 'static,
    ) {
        let length = request.length as usize;
        let mut buffer = None;
        let mut unwritten: Vec<Range<usize>> = Vec::new();
        match request.op {
            Op::Write => {
                let mut content = self.pool.buffer(length);
                content.bytes().copy_from_slice(&backend.space()[..length]);
                buffer = Some(content);
            }
            Op::Read => {
                buffer = Some(self.pool.buffer(length));
                unwritten = backend.unwritten(&request);
            }
            _ => {}
        }
        request.submit_ns = self.clock.now_ns();
        self.pool.submit(Job {
            number: backend.requests(),
            disk: Arc::clone(disk),
            request,
            buffer,
            unwritten,
            reply: Box::new(reply),
        });
        // A failure makes the backend refuse every further request, which ends the cell.
        let _ = match request.op {
            Op::Read => backend.log_read(request),
            _ => backend.request(request),
        };
    }

    /// Returns the failure of a device, if any.
    pub fn failure(&self) -> Option<String> {
        self.pool.failure()
    }

    /// Wait for the requests under way, and end the threads.
    pub fn finish(&self) {
        self.pool.finish();
    }

    /// Report each real disk by its name.
    pub fn accounts(&self, disks: &[DiskInfo]) -> io::Result<BTreeMap<String, Account>> {
        let named = disks.iter().zip(&self.disks);
        named
            .filter_map(|(info, disk)| Some((info, disk.as_ref()?)))
            .map(|(info, disk)| Ok((info.name.clone(), disk.account()?)))
            .collect()
    }
}
