//! `fscost._native`: recordings and their explanation for Python. Only conversions, no logic.

#![forbid(unsafe_code)]

mod array;
mod arrow;
mod columns;
mod crash;
mod explanation;
mod interruptible;
mod intervals;
mod latency;
mod names;
mod recording;
mod recovery;
mod replay;
mod requests;
mod sums;
mod traces;
mod wear;

use crate::interruptible::interruptible;
use fscost_recording::{Error, ErrorKind, Output, Result, dm_log_writes};
use pyo3::{
    create_exception,
    exceptions::{PyException, PyValueError},
    prelude::*,
};
use std::path::PathBuf;

create_exception!(
    _native,
    RecordingError,
    PyException,
    "A recording that cannot be read, or a request that it cannot satisfy."
);

/// The native half of fscost.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{
        RecordingError,
        array::Array,
        arrow::Batch,
        crash::Crash,
        crash::States,
        explanation::{Batches, Explanation},
        import_dm_log_writes,
        latency::{latency_check, latency_parameters},
        names::{causes, structures},
        recording::Recording,
        replay::TracedRequests,
        requests::Requests,
        traces::trace_summaries,
        wear::{Workload, trace_workloads},
    };
    use pyo3::{panic::PanicException, prelude::*};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Exception class of Rust panics. It derives from BaseException, so only code that names it
        // can catch it.
        module.add("PanicException", module.py().get_type::<PanicException>())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Converts an error to an exception with two arguments: the message, and the kind in one word.
fn error(error: Error) -> PyErr {
    let kind = match error.kind {
        ErrorKind::Io => "io",
        ErrorKind::HostDiskFull => "host-disk-full",
        ErrorKind::TooLarge => "too-large",
        ErrorKind::HostMemory => "host-memory",
        ErrorKind::Format => "format",
        ErrorKind::Corrupt => "corrupt",
        ErrorKind::Invalid => "invalid",
    };
    RecordingError::new_err((error.to_string(), kind))
}

/// Converts an error about an argument.
fn refused(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Works on a recording until a signal comes.
fn working<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    interruptible(py, |_| work())?.map_err(error)
}

/// Does a short part of such work while other Python threads run.
fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(work).map_err(error)
}

/// Convert a dm-log-writes log to a recording in the empty file behind a descriptor; return the
/// number of entries.
#[pyfunction]
fn import_dm_log_writes(
    py: Python<'_>,
    log: PathBuf,
    descriptor: i32,
    path: PathBuf,
) -> PyResult<u64> {
    let out = Output::of_descriptor(descriptor, &path).map_err(error)?;
    working(py, move || dm_log_writes::import(&log, out))
}
