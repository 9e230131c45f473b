//! Pure functions of a recording: no root, no mount, no clock. The same recording always gives the
//! same table.

#![forbid(unsafe_code)]
// A library's words are its errors.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod bytes;
pub mod classify;
mod recovery;
mod strip;
mod table;

pub use recovery::{Recovery, recovery};
pub use strip::{Names, strip};
pub use table::{Table, Timeline};
