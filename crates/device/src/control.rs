//! The control channel (`docs/cell-protocol.md`): marks, totals, and the end of the recording.

use crate::{backend::Backend, real::Account};
use fscost_recording::{Error, ErrorKind, Mark, Totals};
use rustix::{
    fd::{BorrowedFd, OwnedFd},
    io::Errno,
    net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, io::IoSlice, mem::MaybeUninit, path::PathBuf};

/// Longest message that is accepted: a mark of maximum length and its envelope, with the bytes of
/// each disk.
const MESSAGE_BYTES: usize = Mark::MAX_BYTES + 64 * 1024;

/// Request from the agent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Question {
    Mark(Mark),
    /// Set the mark only if the disks have received exactly these bytes so far.
    MarkIf {
        mark: Mark,
        received: BTreeMap<String, Received>,
    },
    Finish {},
}

/// Bytes that a disk has received, by the kernel's counters.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Received {
    read_bytes: u64,
    /// Bytes written, zeroed, punched and discarded. A loop device sends some of them as others.
    changed_bytes: u64,
}

impl Received {
    fn of(totals: &Totals) -> Self {
        let changed = [
            totals.write_bytes,
            totals.zero_bytes,
            totals.punch_bytes,
            totals.discard_bytes,
        ];
        Self {
            read_bytes: totals.read_bytes,
            changed_bytes: changed
                .iter()
                .fold(0, |sum, &bytes| sum.saturating_add(bytes)),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer<'a> {
    Ready {
        disks: Vec<&'a str>,
        /// Device nodes of the disks, if there is no mount to open them from.
        #[serde(skip_serializing_if = "Option::is_none")]
        nodes: Option<&'a [PathBuf]>,
    },
    Marked {
        #[serde(flatten)]
        at: Option<At>,
        totals: BTreeMap<String, Totals>,
    },
    /// The mark was not set, because a request has arrived that the kernel had not counted yet.
    Early {},
    Finished(Finished),
    Error {
        kind: &'static str,
        message: String,
    },
}

/// A finished recording.
#[derive(Debug, Serialize)]
pub struct Finished {
    /// Totals by disk name.
    totals: BTreeMap<String, Totals>,
    requests: u64,
    file_bytes: u64,
    /// Real disks, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<BTreeMap<String, Account>>,
}

impl Finished {
    /// Finish the recording of `backend`.
    pub fn new(
        backend: Box<dyn Backend>,
        devices: Option<BTreeMap<String, Account>>,
    ) -> fscost_recording::Result<Self> {
        let (totals, summary) = backend.finish()?;
        Ok(Self {
            totals,
            requests: summary.requests,
            file_bytes: summary.file_bytes,
            devices,
        })
    }
}

/// Time of a mark.
#[derive(Debug, Serialize)]
struct At {
    at_ns: u64,
    /// The same instant by CLOCK_MONOTONIC, for an agent under the same kernel.
    monotonic_ns: u64,
}

/// Locations of the disks.
pub enum Ready<'a> {
    /// Files of a mount.
    Mount(BorrowedFd<'a>),
    /// Block devices, in the order of the disks.
    Devices(&'a [PathBuf]),
    /// Exports on the socket that the command line names.
    Socket,
}

/// The next action after a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Continue serving.
    Serve,
    /// Finish the recording, then answer.
    Finish,
    /// The agent is gone.
    Gone,
}

/// The server's end of the channel.
pub struct Control {
    /// Socket to wait on.
    pub socket: OwnedFd,
    is_timed: bool,
    has_told_failure: bool,
    buffer: Vec<u8>,
}

impl Control {
    /// Communicate over `socket` (`SOCK_SEQPACKET`). Unless `is_timed`, answers contain no times,
    /// because an emulated guest spends instructions on reading their digits.
    pub fn new(socket: OwnedFd, is_timed: bool) -> Self {
        Self {
            socket,
            is_timed,
            has_told_failure: false,
            buffer: vec![0; MESSAGE_BYTES],
        }
    }

    /// Report that the disks are served, and where.
    pub fn ready(&self, backend: &dyn Backend, ready: Ready<'_>) -> Result<(), Errno> {
        let disks = backend.disks().iter().map(|d| d.name.as_str()).collect();
        let (mount, nodes) = match ready {
            Ready::Mount(mount) => (Some(mount), None),
            Ready::Devices(nodes) => (None, Some(nodes)),
            Ready::Socket => (None, None),
        };
        let message = encode(&Answer::Ready { disks, nodes });
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<_> = mount.into_iter().collect();
        if !descriptors.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        }
        rustix::net::sendmsg(
            &self.socket,
            &[IoSlice::new(&message)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )?;
        Ok(())
    }

    /// Answer one pending message.
    pub fn step(&mut self, backend: &mut dyn Backend) -> Result<Next, Errno> {
        let (_, count) =
            match rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN | Errno::INTR) => return Ok(Next::Serve),
                Err(Errno::CONNRESET) | Ok((_, 0)) => return Ok(Next::Gone),
                other => other?,
            };
        match serde_json::from_slice(self.buffer.get(..count).unwrap_or_default()) {
            Ok(Question::Mark(mark)) => {
                self.mark(backend, &mark)?;
                Ok(Next::Serve)
            }
            Ok(Question::MarkIf { mark, received }) => {
                if have_received(&backend.totals(), &received) {
                    self.mark(backend, &mark)?;
                } else {
                    self.send(&Answer::Early {})?;
                }
                Ok(Next::Serve)
            }
            Ok(Question::Finish {}) => Ok(Next::Finish),
            Err(error) => {
                self.send(&Answer::Error {
                    kind: "invalid",
                    message: format!("not a message of the control channel: {error}"),
                })?;
                Ok(Next::Serve)
            }
        }
    }

    fn mark(&self, backend: &mut dyn Backend, mark: &Mark) -> Result<(), Errno> {
        self.send(&match backend.mark(mark) {
            Ok(at_ns) => Answer::Marked {
                at: self.is_timed.then(|| At {
                    at_ns,
                    monotonic_ns: backend.clock().monotonic_ns(at_ns),
                }),
                totals: backend.totals(),
            },
            Err(error) => error_answer(&error),
        })
    }

    /// Report once, unasked, that every request is refused. A workload that ignores errors would
    /// otherwise run until its time limit.
    pub fn tell_failure(&mut self, backend: &dyn Backend) {
        if !self.has_told_failure
            && let Err(error) = backend.check()
        {
            self.has_told_failure = true;
            // A dead agent is noticed at its next message.
            let _ = self.send(&error_answer(&error));
        }
    }

    /// Report how the recording ended.
    pub fn finished(&self, result: fscost_recording::Result<Finished>) -> Result<(), Errno> {
        self.send(&match result {
            Ok(finished) => Answer::Finished(finished),
            Err(error) => error_answer(&error),
        })
    }

    fn send(&self, answer: &Answer) -> Result<(), Errno> {
        rustix::net::send(&self.socket, &encode(answer), SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// Returns true if each of these disks has received these bytes.
fn have_received(totals: &BTreeMap<String, Totals>, received: &BTreeMap<String, Received>) -> bool {
    received
        .iter()
        .all(|(disk, bytes)| totals.get(disk).map(Received::of).as_ref() == Some(bytes))
}

fn error_answer(error: &Error) -> Answer<'static> {
    let kind = match error.kind {
        ErrorKind::HostDiskFull => "host-disk-full",
        ErrorKind::TooLarge => "recording-too-large",
        ErrorKind::HostMemory => "host-memory",
        ErrorKind::Invalid => "invalid",
        _ => "io",
    };
    Answer::Error {
        kind,
        message: error.to_string(),
    }
}

fn encode(answer: &Answer) -> Vec<u8> {
    // Serialization cannot fail: there are only strings, numbers and maps with string keys.
    serde_json::to_vec(answer).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_the_kernel_has_not_counted_is_seen() {
        let totals = |read_bytes, punch_bytes| {
            let totals = Totals {
                read_bytes,
                write_bytes: 512,
                punch_bytes,
                ..Totals::default()
            };
            BTreeMap::from([("main".to_owned(), totals)])
        };
        let counted = r#"{"main": {"read_bytes": 4096, "changed_bytes": 1024}}"#;
        let counted = serde_json::from_str(counted).unwrap();
        assert!(have_received(&totals(4096, 512), &counted));
        assert!(!have_received(&totals(8192, 512), &counted));
        assert!(!have_received(&totals(4096, 1024), &counted));
        assert!(!have_received(&BTreeMap::new(), &counted));
        assert!(have_received(&totals(1, 1), &BTreeMap::new()));
    }

    #[test]
    fn a_conditional_mark_is_read() {
        let text = r#"{"mark_if": {"mark": {"name": "a"}, "received": {}}}"#;
        let Question::MarkIf { mark, received } = serde_json::from_str(text).unwrap() else {
            panic!("another question");
        };
        assert_eq!((mark.name.as_str(), received.len()), ("a", 0));
    }
}
