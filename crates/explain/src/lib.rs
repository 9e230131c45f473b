//! Why each byte was written: structure, cause, file.
//!
//! A recording is read once, in the order of completion. A [`Family`] follows one file system
//! through it: it parses metadata as it is
//! written, and says of each written block what it is. Some answers come late (a data block reaches
//! the disk before the inode that
//! owns it), so a family may keep rows back until it knows, within bounds; the [`Table`] puts them
//! in order again.
//!
//! Content is hostile: a family never panics, never loops without end and never allocates by a
//! number that it read from a disk without
//! bounding it. What it does not understand is [`Structure::Unknown`], a row like any other: the
//! lengths of all rows of a request add up to the request.
//!
//! Functions of a recording alone: no root, no mount, no clock. The same recording always gives the
//! same table.

#![forbid(unsafe_code)]
// A library's words are its errors.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod array;
mod bytes;
mod cause;
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
mod strip;
mod structure;
mod table;
mod track;
mod zeroes;

pub use cause::{Cause, Causes};
pub use disks::Disks;
pub use engine::{Explained, explain, explain_streamed};
pub use family::{Family, Now, Write};
pub use formatted::FormattedDisks;
pub use paths::{PathId, Paths};
pub use recovery::{Recovery, recovery};
pub use row::{NO_INODE, Row};
pub use rows::{RowIter, Rows, SortedRows};
pub use strip::{Names, strip};
pub use structure::Structure;
pub use table::{Table, Timeline};
