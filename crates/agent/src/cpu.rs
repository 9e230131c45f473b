//! CPU time of kernel threads and of the disk server, read from the host's `/proc`.
//!
//! The cell has its own PID namespace, in which neither is visible. `supervisor` runs outside it
//! and reads for `init`. If `init` held a descriptor of the host's `/proc`, a workload could reach
//! it. `schedstat` holds the run time in nanoseconds (Documentation/scheduler/sched-stats.rst) where
//! the kernel provides it; `stat` holds clock ticks.

use crate::error::{Context, Result};
use rustix::fs::{Dir, Mode, OFlags};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

/// Flag of a kernel thread in `/proc/PID/stat` (include/linux/sched.h).
const PF_KTHREAD: u64 = 0x0020_0000;

/// Run time so far of each thread, by process id.
type RunTimes = HashMap<u32, u64>;

/// CPU times of all threads at one reading.
#[derive(Debug, Default)]
struct CpuTimes {
    kernel_threads: RunTimes,
    disk_server: RunTimes,
}

/// CPU time between two readings, in nanoseconds; null if it cannot be read.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuUsed {
    /// CPU time of all kernel threads.
    pub kernel_threads: Option<u64>,
    /// CPU time of all threads of the disk server.
    pub disk_server: Option<u64>,
}

/// Asks `supervisor` over a SOCK_SEQPACKET socket. send(2) and recv(2) do not add to any `rchar` or
/// `wchar` (see `usage`).
#[derive(Debug)]
pub struct CpuMeter {
    socket: OwnedFd,
}

const BEGIN: &[u8] = b"begin";
const END: &[u8] = b"end";

impl CpuMeter {
    /// Creates a meter that asks over `socket`.
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Starts an interval.
    pub fn begin(&self) -> Result<()> {
        self.ask(BEGIN).map(drop)
    }

    /// Returns the CPU time since the last [`begin`](Self::begin).
    pub fn end(&self) -> Result<CpuUsed> {
        self.ask(END)
    }

    fn ask(&self, what: &[u8]) -> Result<CpuUsed> {
        let mut answer = [0; 256];
        let (_, length) = send(&self.socket, what, SendFlags::NOSIGNAL)
            .and_then(|_| {
                rustix::io::retry_on_intr(|| {
                    recv(&self.socket, &mut answer[..], RecvFlags::empty())
                })
            })
            .internal(|| "ask the agent for CPU times")?;
        serde_json::from_slice(&answer[..length]).internal(|| "read the agent's CPU times")
    }
}

/// Reads the host's `/proc`, and answers over the socket.
#[derive(Debug)]
pub struct CpuServer {
    proc: OwnedFd,
    server_pid: Option<u32>,
    tick_ns: u64,
    began: CpuTimes,
    /// Readable when a question is pending.
    pub socket: OwnedFd,
}

impl CpuServer {
    /// Creates a server that reads the `/proc` that is open as `proc`.
    pub fn new(proc: OwnedFd, server_pid: Option<u32>, socket: OwnedFd) -> Self {
        Self {
            proc,
            server_pid,
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            began: CpuTimes::default(),
            socket,
        }
    }

    /// Answers a pending question; returns false if `init` has gone.
    pub fn answer(&mut self) -> bool {
        let mut question = [0; 16];
        let length = match recv(&self.socket, &mut question[..], RecvFlags::DONTWAIT) {
            Ok((_, length)) => length,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return true,
            Err(_) => return false,
        };
        let used = match &question[..length] {
            BEGIN => {
                self.began = self.read();
                CpuUsed::default()
            }
            END => self.read().since(&self.began),
            _ => return false,
        };
        let answer = serde_json::to_vec(&used).unwrap_or_default();
        send(&self.socket, &answer, SendFlags::NOSIGNAL).is_ok()
    }

    /// Returns the CPU time of every thread so far. Processes that end during the reading are left
    /// out.
    fn read(&self) -> CpuTimes {
        let mut times = CpuTimes::default();
        for pid in numbers_in(&self.proc, ".") {
            let dir = pid.to_string();
            let stat = self.stat(&dir);
            if let Some(stat) = stat.filter(|stat| stat.flags & PF_KTHREAD != 0) {
                times.kernel_threads.insert(pid, self.run_time(&dir, &stat));
            }
        }
        if let Some(server) = self.server_pid {
            for thread in numbers_in(&self.proc, &format!("{server}/task")) {
                let dir = format!("{server}/task/{thread}");
                if let Some(stat) = self.stat(&dir) {
                    times.disk_server.insert(thread, self.run_time(&dir, &stat));
                }
            }
        }
        times
    }

    fn stat(&self, dir: &str) -> Option<Stat> {
        Stat::parse(&self.text(&format!("{dir}/stat"))?)
    }

    fn run_time(&self, dir: &str, stat: &Stat) -> u64 {
        let nanoseconds = self
            .text(&format!("{dir}/schedstat"))
            .and_then(|text| text.split(' ').next()?.parse().ok());
        nanoseconds.unwrap_or(stat.ticks * self.tick_ns)
    }

    fn text(&self, path: &str) -> Option<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.proc, path, flags, Mode::empty()).ok()?;
        let mut buffer = [0_u8; 1024];
        let length = rustix::io::read(fd, &mut buffer).ok()?;
        // Names of threads may contain any bytes.
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }
}

impl CpuTimes {
    /// Returns the CPU time since `earlier`.
    fn since(&self, earlier: &Self) -> CpuUsed {
        CpuUsed {
            kernel_threads: added(&self.kernel_threads, &earlier.kernel_threads),
            disk_server: added(&self.disk_server, &earlier.disk_server),
        }
    }
}

/// Returns the run time added in threads that are still alive. Threads that have ended cannot be
/// read any more.
fn added(now: &RunTimes, earlier: &RunTimes) -> Option<u64> {
    if now.is_empty() {
        return None;
    }
    let of = |(pid, time): (&u32, &u64)| match earlier.get(pid) {
        Some(before) if before <= time => time - before,
        // A new thread, or a new thread with a reused number.
        _ => *time,
    };
    Some(now.iter().map(of).sum())
}

fn numbers_in(root: impl AsFd, path: &str) -> Vec<u32> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::openat(root, path, flags, Mode::empty()).and_then(Dir::new);
    dir.into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok())
        .collect()
}

/// Fields of `/proc/PID/stat` that are used here (proc_pid_stat(5)).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    flags: u64,
    ticks: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name is in parentheses and may itself contain spaces and parentheses, so the fields
        // count from the last closing one.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            flags: number(9)?,
            ticks: number(14)? + number(15)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_of_a_thread_with_an_odd_name() {
        let text = "2 (kworker/0:1) (x) S 0 0 0 0 -1 2129984 0 0 0 0 7 5 0 0 20 0 1 0 9 0 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(
            stat,
            Stat {
                flags: 2_129_984,
                ticks: 12
            }
        );
        assert_ne!(stat.flags & PF_KTHREAD, 0);
        assert_eq!(Stat::parse("nothing"), None);
    }

    #[test]
    fn only_threads_alive_at_the_end_count() {
        let early = RunTimes::from([(1, 100), (2, 50), (3, 1000)]);
        let late = RunTimes::from([(1, 150), (3, 10), (4, 7)]);
        assert_eq!(added(&late, &early), Some(50 + 10 + 7));
        assert_eq!(added(&RunTimes::new(), &early), None);
    }

    #[test]
    fn own_process_has_run() {
        let proc =
            rustix::fs::open("/proc", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let (socket, _) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let server = CpuServer::new(proc, Some(std::process::id()), socket.into());
        let begin = server.read();
        // By this thread's own clock: the thread may not be scheduled for a long time. The kernel
        // brings the times in /proc up to date with each tick, of 10 ms at most.
        let start = own_time_ns();
        while own_time_ns() < start + 50_000_000 {
            std::hint::spin_loop();
        }
        let used = server.read().since(&begin).disk_server.unwrap();
        assert!((20_000_000..5_000_000_000).contains(&used), "{used}");
    }

    fn own_time_ns() -> i64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
