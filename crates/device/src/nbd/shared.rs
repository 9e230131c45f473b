//! State that all connections share, and the count of connections.

use super::protocol::Error;
use crate::{backend::Backend, timing::Timing};
use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// Limit of clients. A VM has one connection for each disk; copying tools have up to 16 for one
/// disk.
const MOST_CLIENTS: usize = 64;

/// State shared by all connections.
pub struct Shared {
    backend: Mutex<Option<Box<dyn Backend>>>,
    /// Models of the disks, if any disk has one.
    pub timing: Option<Arc<Timing>>,
    served: AtomicU64,
    clients: AtomicUsize,
}

impl Shared {
    /// Create the state without clients.
    pub fn new(backend: Box<dyn Backend>, timing: Option<Arc<Timing>>) -> Self {
        Self {
            backend: Mutex::new(Some(backend)),
            timing,
            served: AtomicU64::new(0),
            clients: AtomicUsize::new(0),
        }
    }

    /// Number of requests so far.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Run a function with exclusive access to the backend; fails once it is finished.
    pub fn with_backend<T>(
        &self,
        work: impl FnOnce(&mut dyn Backend) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.served.fetch_add(1, Ordering::Relaxed);
        work(&mut **self.lock().as_mut().ok_or(Error::Shutdown)?)
    }

    /// Lock the backend. `None` means that it is finished.
    pub fn lock(&self) -> MutexGuard<'_, Option<Box<dyn Backend>>> {
        self.backend.lock().unwrap_or_else(|poisoned| {
            let mut backend = poisoned.into_inner();
            if let Some(backend) = backend.as_mut() {
                // A logged request may be missing in the map.
                backend.fail("a request panicked: a bug in fscost");
            }
            backend
        })
    }
}

/// A counted client. Dropping it, also in a panic, removes it from the count.
pub struct Admitted(pub Arc<Shared>);

impl Admitted {
    /// Count one more client; `None` at the limit.
    pub fn new(shared: &Arc<Shared>) -> Option<Self> {
        if shared.clients.load(Ordering::Relaxed) >= MOST_CLIENTS {
            return None;
        }
        shared.clients.fetch_add(1, Ordering::Relaxed);
        Some(Self(Arc::clone(shared)))
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}
