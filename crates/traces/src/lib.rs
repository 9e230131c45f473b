//! Readers of block I/O traces recorded with other tools.
//!
//! [`Trace::open`] recognises the [`Format`] by content and decompresses gzip, zstd, xz and bzip2.
//! It yields one [`Request`] for each request that reached the device, in the order of the file.
//! `docs/traces.md` lists the formats, their units, and the events that count.
//!
//! ```no_run
//! # fn main() -> Result<(), fscost_traces::Error> {
//! use fscost_traces::{Kind, Trace};
//! let mut trace = Trace::open("sda.blkparse.gz".as_ref(), None)?;
//! let mut device_write_bytes = 0;
//! while let Some(request) = trace.next_request()? {
//!     if request.kind == Kind::Write {
//!         device_write_bytes += request.length_bytes;
//!     }
//! }
//! println!("{:?}: {device_write_bytes} bytes", trace.disks());
//! # Ok(())
//! # }
//! ```
//!
//! Traces are untrusted: reading a damaged trace ends with an [`Error`] that gives the line or byte
//! offset. Memory is bounded, and nothing panics.

#![forbid(unsafe_code)]
// Libraries report errors; they never print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod device_events;
mod disks;
mod error;
mod formats;
mod input;
mod lines;
mod number;
mod request;
mod summary;
mod trace;

pub use error::{Error, ErrorKind, Place, Result};
pub use formats::Format;
pub use request::{Kind, Request};
pub use summary::{Summary, Total, summaries};
pub use trace::Trace;
