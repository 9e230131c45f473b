//! Processors that do not sleep while a model sets the time of disks.
//!
//! An idle processor takes tens of microseconds to wake, and a program that waits for a disk wakes
//! up to three of them in turn: for the reply, for the loop device, for itself. A run on memory,
//! whose processors do not fall asleep between two requests, has none of that time.

use std::{
    fs::{File, OpenOptions},
    io::Write,
};

/// The kernel's latency limit for idle processors, which holds while the file is open
/// (Documentation/power/pm_qos_interface.rst). A limit of zero lets them poll.
const LIMIT: &str = "/dev/cpu_dma_latency";

/// Keeps idle processors awake until it is dropped.
pub struct Awake {
    _limit: File,
}

impl Awake {
    /// Begin, if the kernel has such a limit and this process may set it. Otherwise, replies are
    /// late by the time of the wake-ups.
    pub fn begin() -> Option<Self> {
        let mut limit = OpenOptions::new().write(true).open(LIMIT).ok()?;
        limit.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(Self { _limit: limit })
    }
}
