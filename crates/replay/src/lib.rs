//! Recordings replayed on the device models of `fscost-latency`: how long the disks would have
//! taken.
//!
//! [`Requests`] are those of a recording. [`Requests::replay`] hands them to a model of each disk,
//! and keeps what the recording shows of the program: the time that it spent between requests, and
//! what it waited for ([`Waits`]).

#![forbid(unsafe_code)]
// Libraries report errors; they never print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod disk;
mod histogram;
mod replay;
mod requests;

pub use histogram::Histogram;
pub use replay::{DiskTimes, IntervalTimes, Waits};
pub use requests::Requests;
