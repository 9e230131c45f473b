//! The modules of `fscost-disk`, the disk server, as a library: its program has only the command
//! line, and `fuzz` reaches the parsers of its protocols.
//!
//! Three front ends ([`fuse`], [`ublk`], [`nbd`]) pass requests to a [`backend::Backend`].

#![expect(
    missing_docs,
    reason = "not published: only its program and `fuzz` use it"
)]

pub mod backend;
mod carry_out;
pub mod confine;
pub mod control;
mod errno;
pub mod fuse;
pub mod memory;
pub mod nbd;
pub mod pressure;
pub mod real;
pub mod recorder;
pub mod server;
mod syscalls;
pub mod timing;
pub mod ublk;
