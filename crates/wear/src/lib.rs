//! A recorded disk as a workload for a model of an SSD: the requests of `fscost-recording`, tagged with the rows of
//! `fscost-analysis` that explain them, in the form that `fscost-ssd` replays.

#![forbid(unsafe_code)]
// Libraries report errors; they never print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod groups;
mod join;

pub use groups::{By, DISCARDS, Group, Groups, OTHERS};
pub use join::{Wanted, of_recording};
