//! Calls that Ctrl-C ends.

use crate::RecordingError;
use pyo3::prelude::*;
use std::{
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{RecvTimeoutError, channel},
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
/// owns everything that it uses.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_stopped);
    let (ended, mut end) = channel::<()>();
    let thread = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let _ended = ended; // dropped at the end, also by a panic
            work(&asked)
        })
        .map_err(|error| RecordingError::new_err((error.to_string(), "host-memory")))?;
    loop {
        let (state, same) = py.detach(move || (end.recv_timeout(LOOK), end));
        if state != Err(RecvTimeoutError::Timeout) {
            break;
        }
        end = same;
        if let Err(error) = py.check_signals() {
            is_stopped.store(true, Ordering::Relaxed);
            return Err(error);
        }
    }
    let joined = py.detach(|| thread.join());
    Ok(joined.unwrap_or_else(|panic| resume_unwind(panic)))
}
