//! A recorded disk as a workload for a model of an SSD. The requests of a recording
//! (`fscost-recording`) are tagged with the rows that explain them (`fscost-explain`), and compiled
//! to a workload that `fscost-ssd` replays. Traces of other tools (`fscost-traces`) have no such
//! tags. A recorded disk can also stand for an array of `fscost-raid`, whose members are the
//! devices.

#![forbid(unsafe_code)]
// Libraries report errors; they never print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod array;
mod groups;
mod join;
mod members;
mod times;
mod traces;

pub use array::of_array;
pub use groups::{By, DISCARDS, Group, Groups, OTHERS};
pub use join::{Wanted, of_recording};
pub use members::OnArray;
pub use times::{IntervalTimes, MemberTimes, times};
pub use traces::{TracedDisk, of_trace};
