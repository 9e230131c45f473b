//! When the workload asked for durability: each fsync, fdatasync and O_SYNC write that a file system got from the cell's processes.
//!
//! The kernel's tracepoints are read through perf_event_open(2): unlike an instance of tracefs, an event ends with its descriptor, so
//! a killed cell leaves nothing behind. The events are inherited by what this thread starts, and by nothing else on the machine.

use crate::error::{CellError, Context, Kind, Result};
use perf_event::events::Tracepoint;
use perf_event::{Builder, Clock, ReadFormat, SampleFlag, Sampler};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

/// Room for 16,384 calls on each CPU between two marks (a header and a time are 16 bytes); what comes on top is only counted.
const RING_BYTES: usize = 256 * 1024;

/// A mark may have 256 KiB, a message on a socket no more than its send buffer, which is 208 KiB by default (socket(7)).
const LONGEST_TEXT_BYTES: usize = 128 * 1024;

/// Counts and times calls.
pub struct SyncCalls {
    samplers: Vec<Sampler>,
    /// Cumulative, as of the last look.
    counted: u64,
    /// When the last mark was made, CLOCK_MONOTONIC.
    marked_ns: u64,
}

/// The calls of one interval.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// All of them.
    pub count: u64,
    /// When they were made: microseconds after the interval's mark, then each after the one before. Fewer than `count` if they were too many to keep.
    pub after_us: Vec<u64>,
}

impl SyncCalls {
    /// Listens to the tracepoints (`ext4/ext4_sync_file_enter`). Processes that this thread starts from now on are heard.
    pub fn listen(tracepoints: &[String]) -> Result<Self> {
        let tracefs = tracefs()?;
        let cpus = std::fs::read_to_string("/sys/devices/system/cpu/online")
            .context(Kind::Internal, || "read which CPUs are online")?;
        let mut samplers = Vec::new();
        for name in tracepoints {
            let tracepoint = Tracepoint::with_id(id(&tracefs, name)?);
            for cpu in cpu_list(&cpus) {
                let sampler = sampler(tracepoint, cpu);
                samplers.push(sampler.context(Kind::Internal, || format!("listen to {name}"))?);
            }
        }
        Ok(Self {
            samplers,
            counted: 0,
            marked_ns: monotonic_ns(),
        })
    }

    /// What was called since the last mark. The next one is being made.
    pub fn take(&mut self) -> Result<Calls> {
        let mut times_ns = Vec::new();
        let mut counted = 0;
        for sampler in &mut self.samplers {
            counted += sampler
                .read()
                .context(Kind::Internal, || "read a tracepoint's counter")?;
            while let Some(record) = sampler.next_record() {
                // What else may be in the ring says that it was full.
                if let Ok(perf_event::data::Record::Sample(sample)) = record.parse_record() {
                    times_ns.extend(sample.time());
                }
            }
        }
        times_ns.sort_unstable();
        let calls = Calls {
            count: counted - self.counted,
            after_us: differences_us(self.marked_ns, &times_ns),
        };
        self.counted = counted;
        Ok(calls)
    }

    /// A mark that was asked for at `asked_ns` was made at `marked_ns`, as its maker says: what follows belongs to the next interval.
    pub fn marked(&mut self, asked_ns: u64, marked_ns: Option<u64>) {
        self.marked_ns = instant_of_mark(asked_ns, marked_ns, monotonic_ns());
    }
}

impl std::fmt::Debug for SyncCalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SyncCalls")
            .field("counted", &self.counted)
            .finish_non_exhaustive()
    }
}

fn sampler(tracepoint: Tracepoint, cpu: usize) -> std::io::Result<Sampler> {
    Builder::new(tracepoint)
        .observe_self()
        .one_cpu(cpu)
        .inherit(true)
        .include_kernel()
        .enabled(true)
        .sample_period(1)
        .sample(SampleFlag::TIME)
        .clockid(Clock::MONOTONIC)
        .read_format(ReadFormat::empty())
        .build()?
        .sampled(RING_BYTES)
}

/// Mounted for this process alone, and gone with the descriptor: `/sys/kernel/tracing` need not be there.
fn tracefs() -> Result<OwnedFd> {
    let mount = || {
        let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    mount().context(Kind::Internal, || "mount tracefs")
}

fn id(tracefs: &OwnedFd, name: &str) -> Result<u64> {
    let path = format!("events/{name}/id");
    let file = rustix::fs::openat(
        tracefs,
        &path,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .context(Kind::Internal, || format!("open tracefs: {path}"))?;
    let mut text = String::new();
    File::from(file)
        .read_to_string(&mut text)
        .context(Kind::Internal, || format!("read tracefs: {path}"))?;
    let number = text.trim().parse();
    number.map_err(|_| CellError::new(Kind::Internal, format!("tracefs: {path} is no number")))
}

/// `0-3,8` (Documentation/admin-guide/cputopology.rst).
fn cpu_list(text: &str) -> impl Iterator<Item = usize> {
    text.trim().split(',').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) => first..last + 1,
            _ => 0..0,
        }
    })
}

/// As many as have room in a mark.
fn differences_us(begin_ns: u64, times_ns: &[u64]) -> Vec<u64> {
    let mut before_us = 0;
    let mut text_bytes = 0;
    let mut differences = Vec::new();
    for time_ns in times_ns {
        let after_us = time_ns.saturating_sub(begin_ns) / 1000;
        let difference_us = after_us - before_us;
        text_bytes += 2 + difference_us.checked_ilog10().unwrap_or(0) as usize;
        if text_bytes > LONGEST_TEXT_BYTES {
            break;
        }
        differences.push(difference_us);
        before_us = after_us;
    }
    differences
}

/// As its maker says, unless that cannot be: then it has another clock (it may be under another kernel), and the middle is the best guess.
fn instant_of_mark(asked_ns: u64, marked_ns: Option<u64>, answered_ns: u64) -> u64 {
    marked_ns
        .filter(|at| (asked_ns..=answered_ns).contains(at))
        .unwrap_or_else(|| asked_ns.midpoint(answered_ns))
}

/// What the kernel's samples are timed by.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("0-2,5\n").collect::<Vec<_>>(), [0, 1, 2, 5]);
        assert_eq!(cpu_list("7").collect::<Vec<_>>(), [7]);
        assert_eq!(cpu_list("").count(), 0);
    }

    #[test]
    fn differences_add_up_to_the_times() {
        let times_ns = [5_000, 1_005_999, 1_006_000, 9_000_000];
        let found = differences_us(1_000, &times_ns);
        assert_eq!(found, [4, 1000, 1, 7994]);
        // A call that was made while the mark was: as if it came right after it.
        assert_eq!(differences_us(6_000, &times_ns)[0], 0);
    }

    #[test]
    fn a_mark_was_made_between_question_and_answer() {
        assert_eq!(instant_of_mark(100, Some(110), 180), 110);
        assert_eq!(instant_of_mark(100, Some(99), 180), 140);
        assert_eq!(instant_of_mark(100, Some(181), 180), 140);
        assert_eq!(instant_of_mark(100, None, 180), 140);
    }

    #[test]
    fn no_more_than_a_mark_can_hold() {
        let times_ns: Vec<u64> = (0..1_000_000).map(|n| n * 1_000_000).collect();
        let kept = Calls {
            count: 1_000_000,
            after_us: differences_us(0, &times_ns),
        };
        let text = serde_json::to_vec(&kept).unwrap();
        assert!(kept.after_us.len() > 20_000);
        assert!((LONGEST_TEXT_BYTES - 8..LONGEST_TEXT_BYTES + 64).contains(&text.len()));
    }
}
