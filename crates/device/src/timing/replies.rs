//! Replies that were sent, until the recorder logs them: other threads than the recorder's send
//! them.

use super::{lock, queue::Part};
use fscost_recording::Reply;
use std::sync::Mutex;

/// Replies that models and real disks share.
#[derive(Default)]
pub struct Replies {
    sent: Mutex<Vec<Reply>>,
}

impl Replies {
    /// Note a reply that was sent to all parts of a request.
    pub fn note(&self, parts: &[Part], sent_ns: u64) {
        lock(&self.sent).extend(parts.iter().map(|part| Reply {
            request: part.number,
            complete_ns: part.at_ns,
            sent_ns,
        }));
    }

    /// Exchange the noted replies for an empty list.
    pub fn take(&self, empty: &mut Vec<Reply>) {
        std::mem::swap(&mut *lock(&self.sent), empty);
    }
}
