//! Replies of modelled disks that are due: the driver takes them from the server's thread only.

use crate::timing::lock;
use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
    io::Errno,
};
use std::sync::Mutex;

/// A reply: the result of the request `tag` of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub disk: u16,
    pub tag: u16,
    pub result: i32,
}

/// Replies on their way from the thread that waits for models.
pub struct Replies {
    waiting: Mutex<Vec<Due>>,
    event: OwnedFd,
}

impl Replies {
    pub fn new() -> Result<Self, Errno> {
        Ok(Self {
            waiting: Mutex::default(),
            event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// Readable while replies wait.
    pub fn event(&self) -> &OwnedFd {
        &self.event
    }

    /// Hand a reply over.
    pub fn put(&self, due: Due) {
        lock(&self.waiting).push(due);
        // It fails only where 2^64 replies wait.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Those that wait.
    pub fn take(&self) -> Vec<Due> {
        // Nothing to read: they were taken with earlier ones.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
        std::mem::take(&mut lock(&self.waiting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_taken_once() {
        let replies = Replies::new().unwrap();
        let due = |tag| Due {
            disk: 0,
            tag,
            result: 0,
        };
        replies.put(due(1));
        replies.put(due(2));
        assert_eq!(replies.take(), [due(1), due(2)]);
        assert_eq!(replies.take(), []);
    }
}
