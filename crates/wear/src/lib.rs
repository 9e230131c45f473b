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
pub use groups::{By, DISCARDS, Group, OTHERS};
pub use join::{Wanted, of_recording};
pub use members::OnArray;
pub use times::{IntervalTimes, MemberTimes, times};
pub use traces::{TracedDisk, of_trace};

use fscost_recording::{Error, ErrorKind};
use fscost_ssd::Part;

/// Tag of all requests that are not explained: those to members of an array, those of traces, which
/// do not contain the owner of a page, and those of a recording without an explanation.
const UNEXPLAINED: u16 = 0;

/// Maximum steps that the workloads of a recording or trace hold in memory: 768 MiB. A few
/// kilobytes of a file can hold a hundred thousand requests.
const MOST_STEPS: usize = 1 << 26;

/// Returns the part of a workload to which an interval belongs. `measured` names those of the
/// workload itself.
fn part_of(interval: &str, measured: &[String]) -> Part {
    match measured.iter().any(|each| each == interval) {
        true => Part::Cycle,
        false => Part::Setup,
    }
}

/// Checks the number of steps of all workloads.
fn check(steps: usize) -> Result<(), Error> {
    match steps <= MOST_STEPS {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::TooLarge, too_many())),
    }
}

/// Describes a recording or trace with more than [`MOST_STEPS`].
fn too_many() -> String {
    format!("the model of an SSD can hold at most {MOST_STEPS} requests, and here are more")
}

/// Converts the error of a model that cannot run.
fn refused(error: impl ToString) -> Error {
    Error::invalid(error.to_string())
}
