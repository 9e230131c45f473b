//! Requests that models have not completed, and those whose replies are not known yet.

use crate::backend::Request;
use fscost_latency::{Completion, Device, Op, Request as Asked};
use fscost_recording::Op as Recorded;
use std::collections::HashMap;

/// Sends a reply.
pub type Reply = Box<dyn FnOnce() + Send>;

/// Handle of a submitted request; to be returned with its reply.
#[derive(Debug)]
pub struct Ticket {
    first: u64,
}

/// A part of a request: its number in the recording, and the time at which the model completed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub number: u64,
    pub at_ns: u64,
}

/// A reply to be sent now.
pub struct Due {
    pub reply: Reply,
    pub parts: Vec<Part>,
}

/// Requests by the number of their first part.
pub struct Queue {
    devices: Vec<Option<Device>>,
    waiting: HashMap<u64, Waiting>,
    /// Number of the first part, for each other part.
    firsts: HashMap<u64, u64>,
    completed: Vec<Completion>,
}

struct Waiting {
    parts_left: usize,
    parts: Vec<Part>,
    reply: Option<Reply>,
}

impl Queue {
    pub fn new(devices: Vec<Option<Device>>) -> Self {
        Self {
            devices,
            waiting: HashMap::new(),
            firsts: HashMap::new(),
            completed: Vec::new(),
        }
    }

    pub fn submit(&mut self, now_ns: u64, first: u64, parts: &mut [Request]) -> Option<Ticket> {
        let disk = usize::from(parts.first()?.disk);
        let device = self.devices.get_mut(disk)?.as_mut()?;
        for (number, part) in (first..).zip(parts.iter_mut()) {
            part.submit_ns = now_ns;
            device.submit(now_ns, asked(number, part));
            if number != first {
                self.firsts.insert(number, first);
            }
        }
        let waiting = Waiting {
            parts_left: parts.len(),
            parts: Vec::with_capacity(parts.len()),
            reply: None,
        };
        self.waiting.insert(first, waiting);
        Some(Ticket { first })
    }

    /// Accept a reply; returns it if it is due already, because the model was faster than the
    /// server.
    pub fn reply(&mut self, ticket: Ticket, reply: Reply) -> Option<Due> {
        self.waiting.get_mut(&ticket.first)?.reply = Some(reply);
        self.due(ticket.first)
    }

    /// Returns the replies that are due at `now_ns`, in order of completion.
    pub fn advance(&mut self, now_ns: u64) -> Vec<Due> {
        for device in self.devices.iter_mut().flatten() {
            device.advance(now_ns, &mut self.completed);
        }
        let mut completed = std::mem::take(&mut self.completed);
        completed.sort_by_key(|each| each.at_ns);
        let mut due = Vec::new();
        for Completion { id, at_ns } in completed.drain(..) {
            let first = self.firsts.remove(&id).unwrap_or(id);
            if let Some(waiting) = self.waiting.get_mut(&first) {
                waiting.parts_left -= 1;
                waiting.parts.push(Part { number: id, at_ns });
                due.extend(self.due(first));
            }
        }
        self.completed = completed;
        due
    }

    /// Time of the models' next event.
    pub fn next_ns(&self) -> Option<u64> {
        let devices = self.devices.iter().flatten();
        devices.filter_map(Device::next_ns).min()
    }

    /// Returns every waiting reply, whether completed by its model or not.
    pub fn drain(&mut self) -> Vec<Due> {
        let waiting = self.waiting.drain().map(|(_, waiting)| waiting);
        waiting
            .filter_map(|each| {
                Some(Due {
                    reply: each.reply?,
                    parts: each.parts,
                })
            })
            .collect()
    }

    fn due(&mut self, first: u64) -> Option<Due> {
        let waiting = self.waiting.get(&first)?;
        if waiting.parts_left > 0 || waiting.reply.is_none() {
            return None;
        }
        let Waiting { parts, reply, .. } = self.waiting.remove(&first)?;
        Some(Due {
            reply: reply?,
            parts,
        })
    }
}

fn asked(number: u64, part: &Request) -> Asked {
    let op = match part.op {
        Recorded::Write => Op::Write,
        Recorded::WriteZeroes => Op::WriteZeroes,
        Recorded::Flush => Op::Flush,
        // A loop device sends the same request for a discard and for zeroing that may unmap.
        Recorded::Discard | Recorded::Punch => Op::Discard,
        Recorded::Read | Recorded::Mark => Op::Read,
    };
    Asked {
        id: number,
        op,
        offset_bytes: part.offset,
        length_bytes: part.length,
        fua: part.fua,
    }
}
