//! The control channel of the disk server: one JSON object per message, over SOCK_SEQPACKET.

use crate::counters::Counters;
use crate::error::{CellError, Context, Kind, Result};
use crate::sync_calls::Calls;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, recvmsg, send,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

/// Time without an answer after which a running server is considered dead.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// Shorter limit once the cell has failed and only the cause is missing.
const REASON_LIMIT: Duration = Duration::from_secs(3);
const LONGEST_MESSAGE: usize = 64 * 1024;

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum ToServer<'a> {
    Mark { name: &'a str, detail: Value },
    MarkIf { mark: Value, received: Value },
    Finish {},
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FromServer {
    Ready {
        disks: Vec<String>,
        nodes: Option<Vec<PathBuf>>,
    },
    // Carries totals too; these are in the recording and are not used here.
    Marked {
        monotonic_ns: Option<u64>,
    },
    /// A request has arrived that the kernel had not counted yet.
    Early {},
    Finished(Value),
    Error {
        kind: String,
        message: String,
    },
}

/// Locations of the server's disks.
#[derive(Debug)]
pub enum Served {
    /// Files in this mount, named after the disks.
    Files(OwnedFd),
    /// Block devices, by disk name.
    Devices(BTreeMap<String, PathBuf>),
}

/// What a mark says about the interval that it ends, and the one that it begins.
#[derive(Debug, Default)]
pub struct Facts<'a> {
    /// Whether the interval that begins here counts towards totals. The mark that ends the last
    /// interval begins none.
    pub measured: Option<bool>,
    /// The kernel's counters so far.
    pub kernel: BTreeMap<String, Counters>,
    /// The calls for durability since the last mark.
    pub sync_calls: Option<&'a Calls>,
    /// The journal's commit interval, if a mount option sets it.
    pub commit_s: Option<u64>,
    /// The time by a clock that counts instructions: the server stamps requests by the host's
    /// clock, which says nothing about the guest.
    pub virtual_ns: Option<u64>,
}

impl Facts<'_> {
    fn detail(&self) -> Value {
        let mut detail = json!({ "kernel": self.kernel });
        if let Some(measured) = self.measured {
            detail["measured"] = json!(measured);
        }
        if let Some(commit_s) = self.commit_s {
            detail["commit_s"] = json!(commit_s);
        }
        if let Some(calls) = self.sync_calls {
            detail["sync_calls"] = json!(calls);
        }
        if let Some(virtual_ns) = self.virtual_ns {
            detail["virtual_ns"] = json!(virtual_ns);
        }
        detail
    }

    /// Bytes that each disk has received, as the server compares them.
    fn received(&self) -> Value {
        let of = |(disk, counters): (&String, &Counters)| {
            let changed_bytes = counters.write_bytes.saturating_add(counters.discard_bytes);
            let received =
                json!({ "read_bytes": counters.read_bytes, "changed_bytes": changed_bytes });
            (disk.clone(), received)
        };
        Value::Object(self.kernel.iter().map(of).collect())
    }
}

/// Answer to a mark.
#[derive(Debug, PartialEq, Eq)]
pub enum Marked {
    /// The mark is set; its time by CLOCK_MONOTONIC, unless the server leaves out times.
    At(Option<u64>),
    /// The mark is not set.
    Early,
}

/// The agent's end of the channel.
#[derive(Debug)]
pub struct Control {
    socket: OwnedFd,
}

impl Control {
    /// Creates a channel over `socket`.
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Returns a second descriptor of the socket, to notice the server's end while this thread is
    /// busy.
    pub fn try_clone(&self) -> Result<OwnedFd> {
        self.socket
            .try_clone()
            .internal(|| "duplicate the control socket")
    }

    /// Waits until the server serves `disks`; returns their locations, if there are any disks.
    pub fn ready(&self, disks: &[&str]) -> Result<Option<Served>> {
        let (message, mount) = self.receive(ANSWER_LIMIT)?;
        let FromServer::Ready {
            disks: served,
            nodes,
        } = message
        else {
            return Err(unexpected(message));
        };
        if let Some(missing) = disks
            .iter()
            .find(|disk| !served.iter().any(|name| name == *disk))
        {
            return Err(dead(format!(
                "the disk server serves {served:?}, not {missing}"
            )));
        }
        match (mount, nodes) {
            (Some(mount), _) => Ok(Some(Served::Files(mount))),
            (None, Some(nodes)) => Ok(Some(Served::Devices(
                served.into_iter().zip(nodes).collect(),
            ))),
            (None, None) if disks.is_empty() => Ok(None),
            (None, None) => Err(dead("the disk server is ready, but sent no mount")),
        }
    }

    /// Adds a mark to the recording, unless a request has arrived that the kernel's counters do not
    /// include; with `is_last_try`, even then. A request that comes between the reading of the
    /// counters and the mark would be charged to one interval in the recording, and to the next by
    /// the kernel.
    pub fn mark(&self, name: &str, facts: &Facts<'_>, is_last_try: bool) -> Result<Marked> {
        let detail = facts.detail();
        self.tell(&if is_last_try {
            ToServer::Mark { name, detail }
        } else {
            ToServer::MarkIf {
                mark: json!({ "name": name, "detail": detail }),
                received: facts.received(),
            }
        })?;
        match self.receive(ANSWER_LIMIT)?.0 {
            FromServer::Marked { monotonic_ns } => Ok(Marked::At(monotonic_ns)),
            FromServer::Early {} => Ok(Marked::Early),
            other => Err(unexpected(other)),
        }
    }

    /// Ends the recording; returns the server's final totals.
    pub fn finish(&self) -> Result<Value> {
        self.tell(&ToServer::Finish {})?;
        match self.receive(ANSWER_LIMIT)?.0 {
            FromServer::Finished(totals) => Ok(totals),
            other => Err(unexpected(other)),
        }
    }

    /// Returns the server's account of a failure elsewhere: an error in the server, or its death,
    /// is the root cause.
    ///
    /// The server only answers questions, so this sends it a mark, which also shows in the
    /// recording where the cell failed.
    pub fn trouble(&self) -> Option<CellError> {
        if let Err(error) = self.tell(&ToServer::Mark {
            name: "failed",
            detail: json!({}),
        }) {
            return Some(error);
        }
        // An earlier mark that timed out may be answered now, before this one.
        let mut limit = REASON_LIMIT;
        while self.is_readable(limit).unwrap_or(true) {
            match self.receive(Duration::ZERO) {
                Ok((FromServer::Marked { .. } | FromServer::Ready { .. }, _)) => {
                    limit = Duration::ZERO
                }
                Ok((message, _)) => return Some(unexpected(message)),
                Err(error) => return Some(error),
            }
        }
        // A missing answer proves nothing: a server may be slow because the disk below it is.
        None
    }

    fn tell(&self, message: &ToServer<'_>) -> Result<()> {
        let text =
            serde_json::to_vec(message).internal(|| "encode a message to the disk server")?;
        match send(&self.socket, &text, SendFlags::NOSIGNAL) {
            Ok(_) => Ok(()),
            // The socket may still hold the reason why the server has gone.
            Err(_) => match self.receive(Duration::ZERO)?.0 {
                FromServer::Marked { .. } => Err(dead("the disk server has ended")),
                other => Err(unexpected(other)),
            },
        }
    }

    fn is_readable(&self, limit: Duration) -> rustix::io::Result<bool> {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        let limit = Timespec::try_from(limit).unwrap_or_default();
        Ok(rustix::io::retry_on_intr(|| poll(&mut fds, Some(&limit)))? > 0)
    }

    fn receive(&self, limit: Duration) -> Result<(FromServer, Option<OwnedFd>)> {
        if !self
            .is_readable(limit)
            .context(Kind::DiskServer, || "wait for the disk server")?
        {
            return Err(dead(format!(
                "the disk server did not answer for {} s",
                limit.as_secs_f32()
            )));
        }
        let mut text = vec![0; LONGEST_MESSAGE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(&mut text)];
        let received = rustix::io::retry_on_intr(|| {
            recvmsg(
                &self.socket,
                &mut slices,
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            )
        })
        .context(Kind::DiskServer, || "the disk server has ended")?;
        let fd = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        if received.bytes == 0 {
            return Err(dead("the disk server has ended"));
        }
        if received.flags.contains(ReturnFlags::TRUNC) {
            return Err(dead("a message of the disk server is too long"));
        }
        let bytes = &text[..received.bytes];
        let message = serde_json::from_slice(bytes).context(Kind::DiskServer, || {
            format!(
                "not a message from a disk server: {}",
                String::from_utf8_lossy(bytes)
            )
        })?;
        Ok((message, fd))
    }
}

fn dead(message: impl Into<String>) -> CellError {
    CellError::new(Kind::DiskServer, message)
}

fn unexpected(message: FromServer) -> CellError {
    let FromServer::Error { kind, message } = message else {
        return dead(format!(
            "an unexpected reply from the disk server: {message:?}"
        ));
    };
    match kind.as_str() {
        "host-disk-full" => CellError::new(
            Kind::HostDiskFull,
            format!(
                "the disk that keeps the recording is full: {message}; free some space, or \
                choose another folder with --out"
            ),
        ),
        "recording-too-large" => CellError::new(
            Kind::RecordingTooLarge,
            format!("{message}; raise --max-recording, or give the workload less to write"),
        ),
        "host-memory" => CellError::new(
            Kind::HostMemory,
            format!("{message}; end other programs, or give the workload less to write"),
        ),
        "attach" => CellError::new(Kind::Attach, message),
        _ => dead(format!("the disk server failed ({kind}): {message}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (Control, OwnedFd) {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        (Control::new(ours), theirs)
    }

    fn answer(server: &OwnedFd, text: &str) {
        send(server, text.as_bytes(), SendFlags::empty()).unwrap();
    }

    #[test]
    fn a_mark_is_told_and_confirmed() {
        let (control, server) = pair();
        answer(
            &server,
            r#"{"marked": {"at_ns": 1, "totals": {"main": {"write_bytes": 2}}}}"#,
        );
        let counters = BTreeMap::from([("main".to_owned(), Counters::default())]);
        let calls = Calls {
            count: 3,
            after_us: vec![10, 20],
            ..Calls::default()
        };
        let facts = Facts {
            measured: Some(true),
            kernel: counters,
            sync_calls: Some(&calls),
            commit_s: Some(30),
            virtual_ns: Some(7),
        };
        assert_eq!(
            control.mark("clone", &facts, true).unwrap(),
            Marked::At(None)
        );
        let mut text = [0; 1000];
        let (_, length) = rustix::net::recv(&server, &mut text[..], RecvFlags::empty()).unwrap();
        let told: Value = serde_json::from_slice(&text[..length]).unwrap();
        assert_eq!(told["mark"]["name"], "clone");
        assert_eq!(told["mark"]["detail"]["kernel"]["main"]["write_bytes"], 0);
        assert_eq!(told["mark"]["detail"]["commit_s"], 30);
        assert_eq!(told["mark"]["detail"]["measured"], true);
        assert_eq!(told["mark"]["detail"]["virtual_ns"], 7);
    }

    #[test]
    fn a_mark_may_be_refused_while_a_request_is_not_counted_yet() {
        let (control, server) = pair();
        answer(&server, r#"{"early": {}}"#);
        let counters = Counters {
            read_bytes: 4096,
            write_bytes: 512,
            discard_bytes: 1024,
            ..Counters::default()
        };
        let facts = Facts {
            kernel: BTreeMap::from([("main".to_owned(), counters)]),
            ..Facts::default()
        };
        assert_eq!(control.mark("a", &facts, false).unwrap(), Marked::Early);
        let mut text = [0; 1000];
        let (_, length) = rustix::net::recv(&server, &mut text[..], RecvFlags::empty()).unwrap();
        let told: Value = serde_json::from_slice(&text[..length]).unwrap();
        assert_eq!(told["mark_if"]["mark"]["name"], "a");
        assert_eq!(
            told["mark_if"]["received"],
            json!({"main": {"read_bytes": 4096, "changed_bytes": 1536}})
        );
    }

    #[test]
    fn finished_keeps_the_server_s_totals() {
        let (control, server) = pair();
        answer(&server, r#"{"finished": {"totals": {}, "requests": 123}}"#);
        assert_eq!(control.finish().unwrap()["requests"], 123);
    }

    #[test]
    fn an_error_instead_of_an_answer() {
        let (control, server) = pair();
        answer(
            &server,
            r#"{"error": {"kind": "host-disk-full", "message": "no room"}}"#,
        );
        assert_eq!(
            control.mark("x", &Facts::default(), true).unwrap_err().kind,
            Kind::HostDiskFull
        );
        answer(&server, r#"{"error": {"kind": "io", "message": "broken"}}"#);
        assert_eq!(control.trouble().unwrap().kind, Kind::DiskServer);
        answer(&server, r#"{"marked": {"at_ns": 1, "totals": {}}}"#);
        assert!(control.trouble().is_none());
    }

    #[test]
    fn the_server_s_end_is_noticed() {
        let (control, server) = pair();
        drop(server);
        assert_eq!(control.trouble().unwrap().kind, Kind::DiskServer);
        assert_eq!(
            control.mark("x", &Facts::default(), true).unwrap_err().kind,
            Kind::DiskServer
        );
    }

    #[test]
    fn block_devices_are_named_in_the_order_of_the_disks() {
        let (control, server) = pair();
        let ready = r#"{"ready": {"disks": ["main", "log"], "nodes": ["/dev/a", "/dev/b"]}}"#;
        answer(&server, ready);
        let Some(Served::Devices(devices)) = control.ready(&["main", "log"]).unwrap() else {
            panic!("no block devices");
        };
        assert_eq!(devices["main"], PathBuf::from("/dev/a"));
        assert_eq!(devices["log"], PathBuf::from("/dev/b"));
    }

    #[test]
    fn ready_without_a_mount_is_refused() {
        let (control, server) = pair();
        answer(&server, r#"{"ready": {"disks": ["main"]}}"#);
        assert!(
            control
                .ready(&["main"])
                .unwrap_err()
                .message
                .contains("no mount")
        );
    }
}
