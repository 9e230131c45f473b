//! Selection of the blktrace events to count, so that a request that is queued, issued and
//! completed counts once.

use crate::{
    error::Problem,
    request::{Kind, Output, Request},
};
use std::collections::{HashMap, hash_map::Entry};

/// Step of a request through the block layer (`Documentation/block/blktrace`, blkparse(1)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Q: a bio arrived.
    Queue,
    /// D: the request was issued to the driver.
    Issue,
    /// C: the device completed the request.
    Complete,
    /// R: the driver was busy; the request will be issued again.
    Requeue,
}

/// Operation and flags of an event: `fill_rwbs` in blkparse's `blkparse_fmt.c`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    /// Kind of the request; `None` for events that carry no data (the `N` of blkparse).
    pub(crate) kind: Option<Kind>,
    pub(crate) has_preflush: bool,
    pub(crate) is_fua: bool,
}

/// The relevant fields of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) action: Action,
    /// True for a completion with an error.
    pub(crate) is_failed: bool,
    pub(crate) operation: Operation,
    pub(crate) time_ns: u64,
    pub(crate) sector: u64,
    pub(crate) length_bytes: u64,
}

/// Maximum number of requests that are followed, far above the queue of any device (NVMe has up to
/// 64 Ki commands in a queue).
const MAX_FOLLOWED: usize = 1 << 16;

/// Disk and end of a request. A request that completes in part and is issued again keeps its end.
type Key = (u32, u64);

/// Converts the events of one action into requests.
#[derive(Debug)]
pub(crate) struct Counter {
    action: Action,
    /// Requests that were issued and not yet completed. Drivers also requeue requests that they
    /// never issued (`scsi_queue_rq`, if the device is busy): the next issue of these is the first.
    issued: HashMap<Key, u32>,
    /// Requests that were issued and requeued: the next issue of each is not a new request.
    requeued: HashMap<Key, u32>,
}

impl Counter {
    pub(crate) fn new(action: Action) -> Counter {
        Counter {
            action,
            issued: HashMap::new(),
            requeued: HashMap::new(),
        }
    }

    /// True for events that add requests or tell the fate of one that was added.
    pub(crate) fn needs(&self, action: Action) -> bool {
        action == self.action
            || (self.action == Action::Issue
                && matches!(action, Action::Requeue | Action::Complete))
    }

    /// Adds the requests of an event on the disk `name`: none, one, or two. A bio with
    /// `REQ_PREFLUSH` and data is a flush followed by a write.
    pub(crate) fn take(
        &mut self,
        name: &[u8],
        event: &Event,
        out: &mut Output,
    ) -> Result<(), Problem> {
        let may_count = event.action == self.action && !event.is_failed;
        let disk = if may_count {
            out.disks.number(name)?
        } else if let Some(disk) = out.disks.known(name) {
            disk
        } else {
            // A disk without requests is not listed.
            return Ok(());
        };
        let is_new = self.action != Action::Issue || self.is_first_issue(disk, event)?;
        if may_count && is_new {
            return add(disk, event, out);
        }
        Ok(())
    }

    /// Follows a request from issue to completion. True if the event issues it for the first time.
    fn is_first_issue(&mut self, disk: u32, event: &Event) -> Result<bool, Problem> {
        let sectors = event.length_bytes / 512;
        let key = (disk, event.sector.saturating_add(sectors));
        match event.action {
            Action::Queue => Ok(false),
            Action::Issue => {
                if self.issued.len() == MAX_FOLLOWED {
                    // The trace lacks completions.
                    self.issued.clear();
                }
                *self.issued.entry(key).or_insert(0) += 1;
                Ok(!removed(&mut self.requeued, key))
            }
            Action::Requeue => {
                if removed(&mut self.issued, key) {
                    if self.requeued.len() == MAX_FOLLOWED {
                        return Err("more than 65536 requests wait to be issued again".into());
                    }
                    *self.requeued.entry(key).or_insert(0) += 1;
                }
                Ok(false)
            }
            Action::Complete => {
                // A requeued request may fail without being issued again.
                let _ = removed(&mut self.issued, key) || removed(&mut self.requeued, key);
                Ok(false)
            }
        }
    }
}

/// Removes one request. False if there is none.
fn removed(requests: &mut HashMap<Key, u32>, key: Key) -> bool {
    let Entry::Occupied(mut found) = requests.entry(key) else {
        return false;
    };
    *found.get_mut() -= 1;
    if *found.get() == 0 {
        found.remove();
    }
    true
}

fn add(disk: u32, event: &Event, out: &mut Output) -> Result<(), Problem> {
    if event.operation.has_preflush {
        out.add(Request::flush(event.time_ns, disk));
    }
    if let Some(kind) = event.operation.kind {
        out.add(Request {
            time_ns: event.time_ns,
            disk,
            kind,
            fua: event.operation.is_fua && kind == Kind::Write,
            ..range(event.sector, 512, event.length_bytes)?
        });
    }
    Ok(())
}

/// Returns a read of this range of disk 0 at time 0; fails if it ends beyond 64 bits.
pub(crate) fn range(offset: u64, unit_bytes: u64, length_bytes: u64) -> Result<Request, Problem> {
    let offset_bytes = offset.checked_mul(unit_bytes);
    let Some(offset_bytes) = offset_bytes.filter(|at| at.checked_add(length_bytes).is_some())
    else {
        return Err("the request ends beyond 2^64 bytes".into());
    };
    Ok(Request {
        time_ns: 0,
        disk: 0,
        kind: Kind::Read,
        fua: false,
        offset_bytes,
        length_bytes,
    })
}
