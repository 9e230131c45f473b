//! The socket, its clients, and messages of the control channel.

use super::{handshake, protocol::Error, transmission};
use crate::{
    control::{Control, Next},
    server::{IDLE, Outcome},
    store::Store,
};
use fscost_recording::DiskInfo;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};
use std::{
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    path::PathBuf,
    str::FromStr,
    sync::{
        Arc, Mutex, PoisonError,
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
    served: AtomicU64,
    clients: AtomicUsize,
}

impl Shared {
    /// Do something with the store, alone; an error once the recording is finished.
    pub fn with_store<T>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.served.fetch_add(1, Ordering::Relaxed);
        // A thread that panicked left a log whose frames are whole: the store is as good as before.
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        work(store.as_mut().ok_or(Error::Shutdown)?)
    }
}

/// Serve until the end.
pub fn serve(
    store: Store,
    listener: &UnixListener,
    mut control: Control,
) -> Result<Outcome, Errno> {
    let disks: Arc<[DiskInfo]> = store.disks().into();
    control.ready(&store, None)?;
    listener.set_nonblocking(true).map_err(errno_of)?;
    let shared = Arc::new(Shared {
        store: Mutex::new(Some(store)),
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
                if served == served_before {
                    let mut store = lock(&shared);
                    // A failure is told with the next mark; until then requests fail.
                    let _ = store.as_mut().map(Store::idle);
                }
                served_before = served;
            }
            Ok(_) if !waiting[0].revents().is_empty() => {
                let mut store = lock(&shared);
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
                        let finished = store.finish();
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

fn lock(shared: &Shared) -> std::sync::MutexGuard<'_, Option<Store>> {
    shared.store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An abstract socket has no permissions: only our own user (and root) is served.
fn admit(stream: UnixStream, shared: &Arc<Shared>, disks: &Arc<[DiskInfo]>) {
    let own = rustix::process::geteuid();
    let is_ours = rustix::net::sockopt::socket_peercred(&stream)
        .is_ok_and(|peer| peer.uid == own || peer.uid.is_root());
    if !is_ours || shared.clients.load(Ordering::Relaxed) >= MOST_CLIENTS {
        return;
    }
    let (shared, disks) = (Arc::clone(shared), Arc::clone(disks));
    shared.clients.fetch_add(1, Ordering::Relaxed);
    let serve = {
        let shared = Arc::clone(&shared);
        move || {
            if let Err(error) = converse(stream, &disks, &shared) {
                eprintln!("fscost-disk: an NBD client: {error}");
            }
            shared.clients.fetch_sub(1, Ordering::Relaxed);
        }
    };
    if std::thread::Builder::new()
        .name("nbd".into())
        .spawn(serve)
        .is_err()
    {
        shared.clients.fetch_sub(1, Ordering::Relaxed);
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
