//! Events: what the agent writes to standard output, one JSON object a line.

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
    /// A disk has its device.
    Attached {
        /// Name in the plan.
        disk: String,
        /// `/dev/loop3`.
        device: String,
        /// The device's `/sys/block/…/queue` values.
        queue: BTreeMap<String, Value>,
    },
    /// The file system is mounted.
    Mounted(crate::mount::MountInfo),
    /// Output of an `inspect` command.
    Inspected {
        /// Name in the plan.
        name: String,
        /// Its standard output.
        output: String,
        /// Exit status; null when it could not be started or was killed.
        status: Option<i32>,
    },
    /// An interval is over.
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
    /// `mkfs`, `mount` or the step's name.
    pub name: String,
    /// A phase, or not.
    pub measured: bool,
    /// Command and settle.
    pub wall_ns: u64,
    /// From the start of the command until its last descendant is gone.
    pub command_ns: u64,
    /// From then until settled.
    pub settle_ns: u64,
    /// User time of commands and descendants.
    pub cpu_user_ns: u64,
    /// System time of the same, and of mount, syncfs and umount, which run in `init`.
    pub cpu_system_ns: u64,
    /// All kernel threads of the machine; null when none is visible.
    pub cpu_kernel_threads_ns: Option<u64>,
    /// The disk server; null without one.
    pub cpu_disk_server_ns: Option<u64>,
    /// Bytes given to write calls.
    pub program_write_bytes: u64,
    /// Bytes returned by read calls.
    pub program_read_bytes: u64,
    /// (f_blocks − f_bfree) × f_frsize.
    pub space_used_bytes: Option<u64>,
    /// btrfs only.
    pub metadata_used_bytes: Option<u64>,
    /// Calls for durability; null when they could not be counted.
    pub sync_calls: Option<u64>,
    /// How long fsync and fdatasync took in nanoseconds, each with how many calls took so long;
    /// null when they could not be timed.
    pub sync_times_ns: Option<Vec<(u64, u64)>>,
    /// Pauses, if asked for.
    pub probe: Option<ProbeResult>,
    /// The kernel's block statistics of this interval, by disk.
    pub counters: BTreeMap<String, Counters>,
    /// Bytes written after the command, by disk; empty where none ran.
    pub settle_write_bytes: BTreeMap<String, u64>,
    /// Bytes written from the unmount on, by disk; empty where the file system stayed mounted.
    pub unmount_write_bytes: BTreeMap<String, u64>,
}

/// Pauses of small directory changes.
#[derive(Debug, Serialize)]
pub struct ProbeResult {
    /// As asked.
    pub interval_ms: u64,
    /// One for each directory made and removed.
    pub pauses_ns: Vec<u64>,
    /// Directories that could not be made or removed.
    pub failures: u64,
}

/// Why the cell failed.
#[derive(Debug, Serialize)]
pub struct Failed {
    /// The interval in which it failed; empty before the first.
    pub step: String,
    /// What the runner decides by.
    pub kind: Kind,
    /// For a person.
    pub message: String,
    /// Exit status of the command.
    pub status: Option<i32>,
    /// Signal that ended the command.
    pub signal: Option<i32>,
    /// What the kernel logged.
    pub kernel: Vec<String>,
}

impl Failed {
    /// The event of an error.
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

/// Writes one event as one line, in one write call.
pub fn emit(event: &Event) -> Result<()> {
    let mut line = serde_json::to_vec(event).context(Kind::Internal, || "spell an event")?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line)
        .and_then(|()| out.flush())
        .context(Kind::Internal, || "write an event")
}
