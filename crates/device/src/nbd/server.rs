//! The socket, its clients, and the messages of the control channel.

use super::{
    handshake,
    shared::{Admitted, Shared},
    transmission,
};
use crate::{
    backend::Backend,
    control::{Control, Finished, Next, Ready},
    errno,
    server::{IDLE, Outcome},
    timing::Timing,
};
use fscost_recording::DiskInfo;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};
use std::{
    io::{self, Write as _},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    path::PathBuf,
    str::FromStr,
    sync::Arc,
};

/// The address of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// File, which must not exist, and which remains.
    Path(PathBuf),
    /// Abstract socket `@NAME` (unix(7)), which disappears with its process and leaves no file
    /// behind.
    Abstract(String),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('@') {
            Some("") => Err("the name of an abstract socket is empty".into()),
            Some(name) => Ok(Self::Abstract(name.into())),
            None if text.is_empty() => Err("the path of the socket is empty".into()),
            None => Ok(Self::Path(text.into())),
        }
    }
}

impl Address {
    /// Listen at this address.
    pub fn listen(&self) -> io::Result<UnixListener> {
        match self {
            Self::Path(path) => UnixListener::bind(path),
            Self::Abstract(name) => {
                UnixListener::bind_addr(&SocketAddr::from_abstract_name(name.as_bytes())?)
            }
        }
    }
}

/// Serve until the end of the recording.
pub fn serve(
    backend: Box<dyn Backend>,
    listener: &UnixListener,
    mut control: Control,
    timing: Option<Arc<Timing>>,
) -> Result<Outcome, Errno> {
    let disks: Arc<[DiskInfo]> = backend.disks().into();
    control.ready(&*backend, Ready::Socket)?;
    listener.set_nonblocking(true).map_err(errno::of_io)?;
    let shared = Arc::new(Shared::new(backend, timing));
    let mut served_before = 0;
    loop {
        let mut waiting = [
            PollFd::new(&control.socket, PollFlags::IN),
            PollFd::new(listener, PollFlags::IN),
        ];
        match poll(&mut waiting, Some(&IDLE)) {
            Ok(0) => {
                let served = shared.served();
                if let Some(backend) = shared.lock().as_mut() {
                    if served == served_before {
                        // A failure is reported below.
                        let _ = backend.idle();
                    }
                    control.tell_failure(&**backend);
                }
                served_before = served;
            }
            Ok(_) if !waiting[0].revents().is_empty() => {
                if let Some(outcome) = obey(&mut control, &shared)? {
                    return Ok(outcome);
                }
            }
            // A connection that cannot be accepted has already been closed.
            Ok(_) => {
                if let Ok((stream, _)) = listener.accept() {
                    admit(stream, &shared, &disks);
                }
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Handle a message of the control channel. Returns the outcome if the message, or the loss of the
/// agent, ends the recording.
fn obey(control: &mut Control, shared: &Shared) -> Result<Option<Outcome>, Errno> {
    let mut backend = shared.lock();
    let next = match backend.as_mut() {
        Some(backend) => control.step(&mut **backend)?,
        None => Next::Gone,
    };
    if next == Next::Serve {
        return Ok(None);
    }
    let Some(backend) = backend.take() else {
        return Ok(Some(Outcome::AgentGone));
    };
    shared.timing.as_deref().inspect(|timing| timing.finish());
    let finished = Finished::new(backend, None);
    if next == Next::Gone {
        return Ok(Some(Outcome::AgentGone));
    }
    control.finished(finished)?;
    Ok(Some(Outcome::Finished))
}

/// Serve a client of the same user or of root only, because an abstract socket has no permissions.
fn admit(stream: UnixStream, shared: &Arc<Shared>, disks: &Arc<[DiskInfo]>) {
    let own = rustix::process::geteuid();
    let is_ours = rustix::net::sockopt::socket_peercred(&stream)
        .is_ok_and(|peer| peer.uid == own || peer.uid.is_root());
    if !is_ours {
        return;
    }
    let Some(admitted) = Admitted::new(shared) else {
        return;
    };
    let disks = Arc::clone(disks);
    let serve = move || {
        if let Err(error) = converse(stream, &disks, &admitted.0) {
            // `eprintln!` panics if standard error is full.
            let _ = writeln!(io::stderr(), "fscost-disk: an NBD client: {error}");
        }
    };
    // If no thread can be started, the connection is closed.
    let _ = std::thread::Builder::new().name("nbd".into()).spawn(serve);
}

fn converse(mut stream: UnixStream, disks: &[DiskInfo], shared: &Shared) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    match handshake::negotiate(&mut stream, disks) {
        Ok(Some(agreed)) => transmission::serve(&mut stream, agreed, &disks[agreed.disk], shared),
        Ok(None) => Ok(()),
        // A client that only checks for a listener is not an error.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        Err(error) => Err(error),
    }
}
