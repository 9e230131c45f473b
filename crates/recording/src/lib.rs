//! The recording: a self-contained, versioned, checksummed log of every request that the disks of
//! one cell received.
//!
//! The format is described byte by byte in `docs/recording-format.md`. [`Writer`] creates a
//! recording while disks are served, and [`Recording`] reads it. [`Image`] is the content of a disk
//! at any past instant (a view of the log, not a copy). [`verify`] checks a whole recording and
//! describes errors. [`dm_log_writes`] exchanges logs with external replay tools.

#![forbid(unsafe_code)]
// Libraries report errors; they never print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod ahead;
pub mod dm_log_writes;
mod encoding;
mod error;
mod event;
mod extent_map;
mod fail_point;
mod file;
mod first_writes;
mod format;
mod frame;
mod image;
mod intervals;
mod pack;
mod packed;
mod piece_cache;
mod raw_frame;
mod reader;
mod reply;
mod room;
mod totals;
mod unpacked;
mod verify;
mod writer;

pub use error::{Error, ErrorKind, Result};
pub use event::{Event, Mark, Op};
pub use extent_map::{ExtentMap, Location, Segment};
pub use fail_point::fail_point;
pub use file::{Output, open_regular};
pub use format::{DiskInfo, Header, MAX_DISKS, MAX_REQUEST_BYTES, SECTOR_BYTES, Stripped};
pub use image::{Image, Instant, clear, overwrite_sparse, set_size, write_sparse};
pub use intervals::{Interval, Survey, intervals};
pub use pack::Packer;
pub use reader::{End, FrameInfo, Recording};
pub use reply::Reply;
pub use room::Room;
pub use totals::Totals;
pub use unpacked::{Contents, Expected, Frame, MarkReader};
pub use verify::{Report, verify};
pub use writer::{Summary, Writer};
