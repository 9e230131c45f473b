//! Resources that the commands of an interval used: CPU time, and bytes of read and write calls.
//!
//! `init` is pid 1 of its PID namespace, so it waits for every descendant of a command, and the
//! kernel adds their usage to its own. CPU time is in `RUSAGE_CHILDREN`. Bytes are in
//! `/proc/self/io`, whose `rchar` and `wchar` include those of reaped children (kernel/exit.c,
//! `wait_task_zombie`). If the parent of a descendant ignores SIGCHLD, the kernel reaps the
//! descendant without adding to either: such programs are under-counted.

use crate::error::{Context, Result};
use crate::event::Interval;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::Read;

/// A reading before or after an interval.
#[derive(Debug)]
pub struct Usage {
    user_ns: u64,
    system_ns: u64,
    bytes: IoBytes,
}

/// Values of `rchar` and `wchar`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoBytes {
    read: u64,
    written: u64,
}

impl Usage {
    /// Takes a reading.
    pub fn read() -> Result<Self> {
        let children = getrusage(UsageWho::RUSAGE_CHILDREN).internal(|| "getrusage")?;
        let bytes = IoBytes::of_children().internal(|| "read /proc/self/io")?;
        Ok(Self {
            user_ns: nanoseconds(children.user_time()),
            system_ns: nanoseconds(children.system_time()),
            bytes,
        })
    }

    /// Stores the usage since `begin` in `interval`. `own_ns` is the CPU time of `init` itself for
    /// the kernel's work on the interval's behalf (mount, syncfs, umount).
    pub fn record(&self, begin: &Self, own_ns: u64, interval: &mut Interval) {
        interval.cpu_user_ns = self.user_ns.saturating_sub(begin.user_ns);
        interval.cpu_system_ns = self.system_ns.saturating_sub(begin.system_ns) + own_ns;
        interval.program_read_bytes = self.bytes.read.saturating_sub(begin.bytes.read);
        interval.program_write_bytes = self.bytes.written.saturating_sub(begin.bytes.written);
    }
}

/// Returns the CPU time of the calling thread so far.
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

fn nanoseconds(time: TimeVal) -> u64 {
    let microseconds = time.tv_sec() * 1_000_000 + time.tv_usec();
    u64::try_from(microseconds).unwrap_or(0) * 1000
}

impl IoBytes {
    /// Returns the bytes of reaped children so far: the process's numbers minus those of its living
    /// threads.
    ///
    /// Threads of the agent that end in between must not have used read or write calls. They use
    /// send and recv, which these counters do not include.
    fn of_children() -> std::io::Result<Self> {
        let (process, own_read) = read_io("/proc/self/io")?;
        let mut threads = Self::default();
        for entry in std::fs::read_dir("/proc/self/task")? {
            let path = entry?.path().join("io");
            let Ok((thread, _)) = read_io(&path.to_string_lossy()) else {
                continue;
            };
            threads.read += thread.read;
            threads.written += thread.written;
        }
        // The bytes of the first reading count for the thread, but not yet in the process's total.
        threads.read = threads.read.saturating_sub(own_read);
        Ok(Self {
            read: process.read.saturating_sub(threads.read),
            written: process.written.saturating_sub(threads.written),
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name))?;
            value.trim().parse::<u64>().ok()
        };
        Some(Self {
            read: field("rchar: ")?,
            written: field("wchar: ")?,
        })
    }
}

/// Returns the numbers, and the bytes that reading them added to `rchar`.
fn read_io(path: &str) -> std::io::Result<(IoBytes, u64)> {
    let mut buffer = [0_u8; 1024];
    let length = File::open(path)?.read(&mut buffer)?;
    let text = String::from_utf8_lossy(&buffer[..length]);
    let bytes = IoBytes::parse(&text)
        .ok_or_else(|| std::io::Error::other(format!("{path} has no rchar and wchar")))?;
    Ok((bytes, length as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_proc_io() {
        let text = "rchar: 6976\nwchar: 12\nsyscr: 10\nsyscw: 0\nread_bytes: 0\nwrite_bytes: \
            4096\ncancelled_write_bytes: 0\n";
        assert_eq!(
            IoBytes::parse(text),
            Some(IoBytes {
                read: 6976,
                written: 12
            })
        );
        assert_eq!(IoBytes::parse("rchar: 1\n"), None);
    }
}
