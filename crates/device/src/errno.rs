//! Error numbers with which front ends answer failed requests.

use fscost_recording::{Error, ErrorKind};
use rustix::io::Errno;
use std::io;

/// Returns the error number for a request that the recording refused.
pub fn of_recording(error: Error) -> Errno {
    match error.kind {
        ErrorKind::Invalid => Errno::INVAL,
        _ => Errno::IO,
    }
}

/// Returns the error number of a failed system call.
pub fn of_io(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
