//! Replay of recordings on the device models of `fscost-latency`: the time that the disks would
//! have taken.
//!
//! [`Requests`] are the requests of a recording, or of a trace of another tool ([`of_trace`]).
//! [`Requests::replay`] submits them to a model of each disk. The replay preserves the program's
//! behaviour as far as the recording shows it: the time between requests, and the requests that the
//! program waited for ([`Waits`]).

#![forbid(unsafe_code)]
// Libraries report errors; they never print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod disk;
mod histogram;
mod replay;
mod requests;
mod traces;

pub use disk::DiskTimes;
pub use histogram::Histogram;
pub use replay::{IntervalTimes, Waits};
pub use requests::Requests;
pub use traces::{Traced, of_trace};
