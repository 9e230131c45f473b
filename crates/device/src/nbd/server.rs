//! The socket, its clients, and messages of the control channel.

use super::{handshake, protocol::Error, transmission};
use crate::{
    control::{Control, Finished, Next, Ready},
    server::{IDLE, Outcome},
    store::Store,
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
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

/// A VM has one connection for each disk; tools that copy have up to 16 for one.
const MOST_CLIENTS: usize = 64;

/// Where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A file; must not exist.
    Path(PathBuf),
    /// `@NAME`: an abstract socket (unix(7)), which goes with its process and leaves no file
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
    /// Listen there.
    pub fn listen(&self) -> io::Result<UnixListener> {
        match self {
            Self::Path(path) => UnixListener::bind(path),
            Self::Abstract(name) => {
                UnixListener::bind_addr(&SocketAddr::from_abstract_name(name.as_bytes())?)
            }
        }
    }

    /// Remove the file that [`listen`](Self::listen) made.
    pub fn leave(&self) {
        if let Self::Path(path) = self {
            // Whoever removed it before had a reason.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What all connections share.
pub struct Shared {
    store: Mutex<Option<Store>>,
    timing: Option<Arc<Timing>>,
    served: AtomicU64,
    clients: AtomicUsize,
}

impl Shared {
    /// The models of the disks, if any has one.
    pub fn timing(&self) -> Option<&Timing> {
        self.timing.as_deref()
    }

    /// Do something with the store, alone; an error once the recording is finished.
    pub fn with_store<T>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.served.fetch_add(1, Ordering::Relaxed);
        work(self.lock().as_mut().ok_or(Error::Shutdown)?)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Store>> {
        self.store.lock().unwrap_or_else(|poisoned| {
            let mut store = poisoned.into_inner();
            if let Some(store) = store.as_mut() {
                store.fail_after_panic();
            }
            store
        })
    }
}

/// Serve until the end.
pub fn serve(
    store: Store,
    listener: &UnixListener,
    mut control: Control,
    timing: Option<Arc<Timing>>,
) -> Result<Outcome, Errno> {
    let disks: Arc<[DiskInfo]> = store.disks().into();
    control.ready(&store, Ready::Socket)?;
    listener.set_nonblocking(true).map_err(errno_of)?;
    let shared = Arc::new(Shared {
        store: Mutex::new(Some(store)),
        timing,
        served: AtomicU64::new(0),
        clients: AtomicUsize::new(0),
    });
    let mut served_before = 0;
    loop {
        let mut waiting = [
            PollFd::new(control.socket(), PollFlags::IN),
            PollFd::new(listener, PollFlags::IN),
        ];
        match poll(&mut waiting, Some(&IDLE)) {
            Ok(0) => {
                let served = shared.served.load(Ordering::Relaxed);
                if let Some(store) = shared.lock().as_mut() {
                    if served == served_before {
                        // A failure is told below.
                        let _ = store.idle();
                    }
                    control.tell_failure(store);
                }
                served_before = served;
            }
            Ok(_) if !waiting[0].revents().is_empty() => {
                let mut store = shared.lock();
                let next = match store.as_mut() {
                    Some(store) => control.step(store)?,
                    None => Next::Gone,
                };
                match next {
                    Next::Serve => {}
                    Next::Finish | Next::Gone => {
                        let Some(store) = store.take() else {
                            return Ok(Outcome::AgentGone);
                        };
                        let timed = shared.timing().map_or(Ok(()), Timing::finish);
                        let finished = timed.and_then(|()| store.finish());
                        let finished = finished.map(|(totals, summary)| Finished {
                            totals,
                            summary,
                            devices: None,
                        });
                        if next == Next::Gone {
                            return Ok(Outcome::AgentGone);
                        }
                        control.finished(finished)?;
                        return Ok(Outcome::Finished);
                    }
                }
            }
            // Whoever cannot be accepted has gone again.
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

/// An abstract socket has no permissions: only our own user (and root) is served.
fn admit(stream: UnixStream, shared: &Arc<Shared>, disks: &Arc<[DiskInfo]>) {
    let own = rustix::process::geteuid();
    let is_ours = rustix::net::sockopt::socket_peercred(&stream)
        .is_ok_and(|peer| peer.uid == own || peer.uid.is_root());
    if !is_ours || shared.clients.load(Ordering::Relaxed) >= MOST_CLIENTS {
        return;
    }
    let disks = Arc::clone(disks);
    let admitted = Admitted::new(shared);
    let serve = move || {
        if let Err(error) = converse(stream, &disks, &admitted.0) {
            // `eprintln!` panics where standard error is full.
            let _ = writeln!(io::stderr(), "fscost-disk: an NBD client: {error}");
        }
    };
    // Without a thread the client is hung up on.
    let _ = std::thread::Builder::new().name("nbd".into()).spawn(serve);
}

/// One of the clients, until it is dropped: also by a panic.
struct Admitted(Arc<Shared>);

impl Admitted {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.clients.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(shared))
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

fn converse(mut stream: UnixStream, disks: &[DiskInfo], shared: &Shared) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    match handshake::negotiate(&mut stream, disks) {
        Ok(Some(agreed)) => transmission::serve(&mut stream, agreed, &disks[agreed.disk], shared),
        Ok(None) => Ok(()),
        // Looking whether somebody listens is no error.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        Err(error) => Err(error),
    }
}

fn errno_of(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
