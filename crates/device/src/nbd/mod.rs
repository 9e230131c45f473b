//! The front end of virtual machines and of any other NBD client: every disk is an export of one
//! Unix socket, under its name.
//!
//! The protocol is the one of <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>:
//! fixed newstyle negotiation, simple and structured
//! replies, WRITE, TRIM, WRITE_ZEROES, FLUSH and FUA. A connection has a thread; the store is
//! behind one lock, so that the log has one order.

mod handshake;
mod protocol;
mod server;
mod transmission;

pub use server::{Address, serve};
