//! Due replies of modelled disks: the driver accepts them from the server's thread only.

use crate::timing::lock;
use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
    io::Errno,
};
use std::sync::Mutex;

/// A reply: the result of request `tag` of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub disk: u16,
    pub tag: u16,
    pub result: i32,
}

/// Replies that pass from the models' thread to the server's thread.
pub struct Replies {
    waiting: Mutex<Vec<Due>>,
    /// Descriptor that is readable while replies are pending.
    pub event: OwnedFd,
}

impl Replies {
    pub fn new() -> Result<Self, Errno> {
        Ok(Self {
            waiting: Mutex::default(),
            event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// Pass on a reply.
    pub fn put(&self, due: Due) {
        lock(&self.waiting).push(due);
        // Fails only if 2^64 replies are pending.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Take the pending replies.
    pub fn take(&self) -> Vec<Due> {
        // An error means that there is nothing to read: earlier calls took these replies.
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
