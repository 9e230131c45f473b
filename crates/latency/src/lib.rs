//! Device models without a clock or I/O: they compute when a hard disk, an SD card or an SSD
//! would have completed each request.
//!
//! A [`Device`] is a [`Model`], a capacity and a seed. It takes [`Request`]s at given times and
//! returns the completion time of each. The disk server runs it against a real clock to delay
//! completions, and the offline replay runs it against recorded times.
//!
//! Everything is deterministic: the same model, capacity, seed and request times give the same
//! completion times. All arithmetic on times is in whole nanoseconds.

#![forbid(unsafe_code)]
// Libraries report errors; they never print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod completions;
mod constant;
mod device;
mod divisor;
mod error;
mod fields;
mod flash;
mod hard_disk;
mod host;
mod model;
mod request;
mod transfer;

pub use device::Device;
pub use error::Error;
pub use fields::Parameter;
pub use model::Model;
pub use request::{Completion, Op, Request};

/// Returns a number that depends on the seed only (SplitMix64; Steele, Lea and Flood, OOPSLA'14).
fn seeded(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
