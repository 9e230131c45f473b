//! md arrays as pure arithmetic: what a member's superblock says, which byte of the array lies
//! where on which member,
//! and which requests the members receive for those of the array.
//!
//! Nothing here reads a disk or knows a recording. Numbers come from superblocks, which are hostile
//! input: [`Map::new`] refuses those that the arithmetic could not carry.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod map;
mod member;
mod mirrored;
mod parity;
mod striped;
mod superblock;
mod write_path;

pub use map::{Geometry, Level, Map, Piece, Place, Role};
pub use member::{Area, Member};
pub use superblock::{PLACES, Superblock};
pub use write_path::{
    Array, Error, Load, MemberRequest, Method, Operation, Queues, Rmw, Row, RowCounts, WritePath,
};
