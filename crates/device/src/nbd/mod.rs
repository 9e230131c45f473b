//! The front end for virtual machines and other NBD clients. A single Unix socket serves all disks,
//! each as an export under its name.
//!
//! The protocol is <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>: fixed
//! newstyle negotiation, simple and structured replies, READ, WRITE, TRIM, WRITE_ZEROES, FLUSH and
//! FUA.
//! Each connection has a thread. The backend is behind one lock, so that the log has one order.

pub mod handshake;
mod protocol;
mod server;
pub mod shared;
pub mod transmission;

pub use server::{Address, serve};
