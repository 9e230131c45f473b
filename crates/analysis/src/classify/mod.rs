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

mod array;
pub mod btrfs;
mod cause;
mod disks;
mod engine;
mod escape;
pub mod ext;
mod f2fs;
mod fat;
mod files;
mod fingerprints;
mod follower;
mod formatted;
mod inodes;
mod jfs;
mod names;
mod nearby;
mod newer;
mod nilfs2;
mod ntfs;
mod paths;
mod reiserfs;
mod reused;
mod row;
mod rows;
mod runs;
mod structure;
mod waiting;
pub mod xfs;
mod zeroes;

pub use cause::{Cause, Causes};
pub use disks::Disks;
pub use engine::{Explained, Family, Now, Write, explain, explain_streamed};
pub use formatted::FormattedDisks;
pub use paths::{PathId, Paths};
pub use row::{NO_INODE, Row};
pub use rows::{RowIter, Rows, SortedRows};
pub use structure::Structure;
