//! md arrays as pure arithmetic: contents of a member's superblock, location of each byte of the
//! array on the members, and requests to the members that result from requests to the array.
//!
//! This crate reads no disks and no recordings. Numbers come from superblocks, which are untrusted
//! input: [`Map::new`] rejects values that would overflow the arithmetic.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod geometry;
mod map;
mod member;
mod mirrored;
mod parity;
mod striped;
mod superblock;
mod write_path;

pub use geometry::{Geometry, Level, Piece, Place, Role};
pub use map::Map;
pub use member::{Area, Member};
pub use superblock::{PLACES, Superblock};
pub use write_path::{
    Array, Error, Load, MemberRequest, Method, Operation, Queues, Rmw, Row, RowCounts, WritePath,
};
