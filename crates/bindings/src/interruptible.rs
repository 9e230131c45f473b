//! Calls that Ctrl-C ends.

use crate::RecordingError;
use pyo3::prelude::*;
use std::{
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

/// Time between two looks for signals. Python handles a signal only when its main thread asks.
const LOOK: Duration = Duration::from_millis(50);
/// As large as the stack of a main thread (`ulimit -s`), where the same code would run otherwise.
const STACK_BYTES: usize = 8 << 20;

/// Does `work` on a thread of its own, while other Python threads run and this one looks for
/// signals. If a signal's handler raises, its exception is returned at once, and the work is
/// abandoned: work that asks the flag stops, and other work ends with the process. Therefore it
/// owns everything that it uses, and calls no Python, which may be ending.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    announcing(py, |_| Ok(()), |is_stopped, _| work(is_stopped))
}

/// Announces the size of what such work will write, before it writes.
pub struct Announcer {
    bytes: Sender<u64>,
    heard: Receiver<()>,
}

impl Announcer {
    /// Waits until the size was heard. Returns `false` if the work is abandoned.
    pub fn announce(&self, bytes: u64) -> bool {
        self.bytes.send(bytes).is_ok() && self.heard.recv().is_ok()
    }
}

/// Like [`interruptible`], for work that announces a size. `announce` runs on the calling thread.
/// If it raises, the work is abandoned too.
pub fn announcing<T: Send + 'static>(
    py: Python<'_>,
    announce: impl Fn(u64) -> PyResult<()>,
    work: impl FnOnce(&AtomicBool, &Announcer) -> T + Send + 'static,
) -> PyResult<T> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_stopped);
    let ((bytes, mut news), (go_on, heard)) = (channel(), channel());
    let announcer = Announcer { bytes, heard };
    let thread = thread::Builder::new()
        .stack_size(STACK_BYTES)
        // The announcer is dropped at the end, also by a panic.
        .spawn(move || work(&asked, &announcer))
        .map_err(|error| RecordingError::new_err((error.to_string(), "host-memory")))?;
    loop {
        let (state, same) = py.detach(move || (news.recv_timeout(LOOK), news));
        news = same;
        let result = match state {
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => py.check_signals(),
            Ok(bytes) => announce(bytes),
        };
        if let Err(error) = result {
            is_stopped.store(true, Ordering::Relaxed);
            return Err(error);
        }
        if state.is_ok() {
            // Fails if the work has ended by a panic.
            let _ = go_on.send(());
        }
    }
    let joined = py.detach(|| thread.join());
    Ok(joined.unwrap_or_else(|panic| resume_unwind(panic)))
}
