//! Explanation of each written byte: structure, cause and file.
//!
//! A recording is read once, in the order of completion. A [`Family`] follows one file system
//! through it: it parses metadata as it is written, and identifies each written block. Some answers
//! come late, because a data block reaches the disk before the inode that owns it. A family may
//! therefore hold rows back, within bounds, until it knows the answer. The [`Table`] restores their
//! order.
//!
//! Content is untrusted. A family never panics, never loops forever, and never allocates an
//! amount read from a disk without bounding it. Blocks that it does not understand become
//! [`Structure::Unknown`] rows like any other: the lengths of all rows of a request add up to the
//! length of the request.
//!
//! All functions depend on the recording alone: no root, no mount, no clock. The same recording
//! always gives the same table.

#![forbid(unsafe_code)]
// Libraries report errors; they never print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod array;
mod catalogue;
mod cause;
mod directories;
mod disks;
mod engine;
mod escape;
pub mod families;
mod family;
mod formatted;
mod hash;
mod nearby;
mod paths;
mod recovery;
mod row;
mod rows;
mod structure;
mod sums;
mod table;
mod track;
mod zeroes;

use fscost_ondisk::bytes;

pub use cause::{Cause, Causes};
pub use disks::Disks;
pub use engine::{Explained, explain, explain_streamed};
pub use family::{Family, Now, Write};
pub use formatted::FormattedDisks;
pub use paths::{PathId, Paths};
pub use recovery::{Recovery, recovery};
pub use row::{NO_INODE, Row, Shift};
pub use rows::{RowIter, Rows, SortedRows};
pub use structure::Structure;
pub use sums::{Chosen, Copied, Key, Logged, Share, Shared, Sums, logged, sums};
pub use table::{Table, Timeline};
