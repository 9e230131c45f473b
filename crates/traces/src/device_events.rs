//! Selection of the blktrace events to count, so that a request that is queued, issued and
//! completed counts once.

use crate::{
    error::Problem,
    request::{Kind, Output, Request},
};
use std::collections::HashMap;

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
    pub(crate) operation: Operation,
    pub(crate) time_ns: u64,
    pub(crate) disk: u32,
    pub(crate) sector: u64,
    pub(crate) length_bytes: u64,
}

/// Maximum number of requeued requests, far above the queue of any device (NVMe has up to 64 Ki
/// commands in a queue).
const MAX_REQUEUED: usize = 1 << 16;

/// Converts the events of one action into requests.
#[derive(Debug)]
pub(crate) struct Counter {
    action: Action,
    /// Requests that were issued and requeued: the next issue of each is not a new request.
    requeued: HashMap<(u32, u64, u64), u32>,
}

impl Counter {
    pub(crate) fn new(action: Action) -> Counter {
        Counter {
            action,
            requeued: HashMap::new(),
        }
    }

    pub(crate) fn counts(&self, action: Action) -> bool {
        action == self.action || (action == Action::Requeue && self.action == Action::Issue)
    }

    /// Adds the requests of an event: none, one, or two. A bio with `REQ_PREFLUSH` and data is a
    /// flush followed by a write.
    pub(crate) fn take(&mut self, event: &Event, out: &mut Output) -> Result<(), Problem> {
        if !self.counts(event.action) {
            return Ok(());
        }
        let key = (event.disk, event.sector, event.length_bytes);
        if event.action == Action::Requeue {
            if self.requeued.len() == MAX_REQUEUED {
                return Err("more than 65536 requests wait to be issued again".into());
            }
            *self.requeued.entry(key).or_insert(0) += 1;
            return Ok(());
        }
        if !self.requeued.is_empty() && self.is_issued_again(key) {
            return Ok(());
        }
        add(event, out)
    }

    fn is_issued_again(&mut self, key: (u32, u64, u64)) -> bool {
        let Some(count) = self.requeued.get_mut(&key) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            self.requeued.remove(&key);
        }
        true
    }
}

fn add(event: &Event, out: &mut Output) -> Result<(), Problem> {
    if event.operation.has_preflush {
        out.add(Request::flush(event.time_ns, event.disk));
    }
    if let Some(kind) = event.operation.kind {
        out.add(Request {
            time_ns: event.time_ns,
            disk: event.disk,
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
