//! Replies that came later than the log, and their bytes (`docs/recording-format.md`).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, little_endian::U64};

/// The reply to a request of a disk with a device model, or of a real disk. Other disks reply as
/// soon as a request is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Number of the request in the recording, marks not counted.
    pub request: u64,
    /// Time at which the model or the device had completed the request.
    pub complete_ns: u64,
    /// Time at which the reply had been sent.
    pub sent_ns: u64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct RawReply {
    request: U64,
    complete_ns: U64,
    sent_ns: U64,
}

impl RawReply {
    pub(crate) fn new(reply: &Reply) -> Self {
        Self {
            request: reply.request.into(),
            complete_ns: reply.complete_ns.into(),
            sent_ns: reply.sent_ns.into(),
        }
    }

    /// Parses a reply; `None` if it was sent before its request was completed.
    pub(crate) fn parse(&self) -> Option<Reply> {
        let reply = Reply {
            request: self.request.get(),
            complete_ns: self.complete_ns.get(),
            sent_ns: self.sent_ns.get(),
        };
        (reply.complete_ns <= reply.sent_ns).then_some(reply)
    }
}
