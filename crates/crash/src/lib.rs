//! States of disks that a power cut at an instant of a recording could have left behind.
//!
//! A disk with a volatile write cache promises three things
//! (Documentation/block/writeback_cache_control.rst): a flush makes durable all writes that had
//! completed before it was issued, a FUA write is durable when it completes, and nothing else is
//! durable. Everything else that was submitted may be on the medium or not, in any order, one
//! atomic unit at a time. [`Requests`] reads a recording once, [`Requests::cut`] says what was
//! pending at an instant, [`choices`] enumerates subsets of it ([`Enumeration`] those of many
//! cuts), and [`image`] is the disk that a subset leaves.

#![forbid(unsafe_code)]
// Libraries report errors; they never print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod base;
mod choose;
mod contents;
mod cut;
mod digest;
mod enumerate;
mod identity;
mod image;
mod requests;

pub use choose::{Choice, Model, choices};
pub use contents::Contents;
pub use cut::{Cut, Pending};
pub use enumerate::{Enumeration, TooMany};
pub use identity::Identities;
pub use image::{Memory, image};
pub use requests::Requests;
