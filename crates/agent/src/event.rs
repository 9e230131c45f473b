//! Events that the agent writes to standard output, one JSON object per line.

use crate::counters::Counters;
use crate::error::{CellError, Context, Kind, Result};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;

/// One event (`docs/cell-protocol.md`).
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A disk was attached to its block device.
    Attached {
        /// Name in the plan.
        disk: String,
        /// Device path, such as `/dev/loop3`.
        device: String,
        /// Values in the device's `/sys/block/…/queue`.
        queue: BTreeMap<String, Value>,
    },
    /// The file system is mounted.
    Mounted(crate::mount::MountInfo),
    /// Output of an `inspect` command.
    Inspected {
        /// Name in the plan.
        name: String,
        /// Standard output of the command.
        output: String,
        /// Exit status; null if the command could not be started or was killed.
        status: Option<i32>,
    },
    /// An interval has ended.
    Interval(Box<Interval>),
    /// The cell failed; the last event.
    Failed(Failed),
    /// The cell is complete; the last event.
    Done {
        /// Totals that the disk server reports; null without one.
        recording: Value,
    },
}

/// Everything measured in one interval.
#[derive(Debug, Default, Serialize)]
pub struct Interval {
    /// `mkfs`, `mount` or the name of the step.
    pub name: String,
    /// True for a phase, false for a prepare step.
    pub measured: bool,
    /// Wall time of command and settle.
    pub wall_ns: u64,
    /// Time from the start of the command until its last descendant has ended.
    pub command_ns: u64,
    /// Time from the end of the command until the file system has settled.
    pub settle_ns: u64,
    /// User time of commands and their descendants.
    pub cpu_user_ns: u64,
    /// System time of commands and their descendants, and of mount, syncfs and umount, which run in
    /// `init`.
    pub cpu_system_ns: u64,
    /// CPU time of all kernel threads of the machine; null if none is visible.
    pub cpu_kernel_threads_ns: Option<u64>,
    /// CPU time of the disk server; null without one.
    pub cpu_disk_server_ns: Option<u64>,
    /// Bytes passed to write calls.
    pub program_write_bytes: u64,
    /// Bytes returned by read calls.
    pub program_read_bytes: u64,
    /// Space in use: (f_blocks − f_bfree) × f_frsize.
    pub space_used_bytes: Option<u64>,
    /// Size of the disks without the space that is available to unprivileged users: overhead,
    /// reserve and space in use.
    pub space_taken_bytes: Option<u64>,
    /// Part of `space_taken_bytes` that the file system does not count as its own: size of the
    /// disks − f_blocks × f_frsize.
    pub space_overhead_bytes: Option<u64>,
    /// Part of `space_taken_bytes` that is free for root only: (f_bfree − f_bavail) × f_frsize.
    pub space_reserved_bytes: Option<u64>,
    /// Metadata in use; btrfs only.
    pub metadata_used_bytes: Option<u64>,
    /// Calls for durability; null if they could not be counted.
    pub sync_calls: Option<u64>,
    /// Calls of sync by programs outside the cell; null if they could not be counted.
    pub outside_sync_calls: Option<u64>,
    /// Durations of fsync and fdatasync in nanoseconds, each with its number of calls; null if the
    /// calls could not be timed.
    pub sync_times_ns: Option<Vec<(u64, u64)>>,
    /// Pauses that the probe measured, if requested.
    pub probe: Option<ProbeResult>,
    /// The kernel's block statistics of this interval, by disk.
    pub counters: BTreeMap<String, Counters>,
    /// Bytes written after the command, by disk; empty if no command ran.
    pub settle_write_bytes: BTreeMap<String, u64>,
    /// Bytes written from the unmount on, by disk; empty if the file system stayed mounted.
    pub unmount_write_bytes: BTreeMap<String, u64>,
}

/// Pauses of small directory changes.
#[derive(Debug, Serialize)]
pub struct ProbeResult {
    /// Requested interval between probes.
    pub interval_ms: u64,
    /// One pause for each directory made and removed.
    pub pauses_ns: Vec<u64>,
    /// Directories that could not be made or removed.
    pub failures: u64,
}

/// The failure of the cell.
#[derive(Debug, Serialize)]
pub struct Failed {
    /// The interval in which it failed; empty before the first.
    pub step: String,
    /// Kind of failure, on which the runner acts.
    pub kind: Kind,
    /// Message for people.
    pub message: String,
    /// Exit status of the command.
    pub status: Option<i32>,
    /// Signal that ended the command.
    pub signal: Option<i32>,
    /// Messages from the kernel log.
    pub kernel: Vec<String>,
}

impl Failed {
    /// Creates the event of an error.
    pub fn new(step: &str, error: &CellError, kernel: Vec<String>) -> Self {
        Self {
            step: step.into(),
            kind: error.kind,
            message: error.paragraph(),
            status: error.status,
            signal: error.signal,
            kernel,
        }
    }
}

/// Writes one event as one line, with a single write call.
pub fn emit(event: &Event) -> Result<()> {
    let mut line = serde_json::to_vec(event).internal(|| "serialize an event")?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line)
        .and_then(|()| out.flush())
        .internal(|| "write an event")
}
