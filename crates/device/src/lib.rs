//! The modules of `fscost-disk`, the disk server, as a library: its program has only the command
//! line, and `fuzz` reaches the parsers of its protocols.

#![expect(
    missing_docs,
    reason = "not published: only its program and `fuzz` use it"
)]

pub mod confine;
pub mod control;
mod errno;
pub mod fuse;
pub mod nbd;
pub mod pressure;
pub mod real;
pub mod server;
pub mod store;
mod syscalls;
pub mod timing;
pub mod ublk;
