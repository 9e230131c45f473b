//! Waiting as pid 1: for commands, and for every process that they leave behind.

use crate::error::{CellError, Context, Kind, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid as NixPid;
use rustix::process::{WaitOptions, wait};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(1);

/// Waits until the process `pid` has ended; reaps orphans meanwhile. Calls `on_stop` with true when
/// the process is stopped, and with false when it continues.
pub fn until_ended(pid: u32, on_stop: impl Fn(bool)) -> Result<ExitStatus> {
    loop {
        match wait(WaitOptions::UNTRACED | WaitOptions::CONTINUED) {
            Ok(Some((changed, status)))
                if u32::try_from(changed.as_raw_nonzero().get()) == Ok(pid) =>
            {
                if !status.stopped() && !status.continued() {
                    return Ok(ExitStatus::from_raw(status.as_raw()));
                }
                on_stop(status.stopped());
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                return Err(error).internal(|| format!("wait for process {pid}"));
            }
        }
    }
}

/// Waits until no other process is left. Every orphan becomes a child of pid 1, so "no child" means
/// "no process".
pub fn until_alone() -> Result<()> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CHILD) => return Ok(()),
            Err(error) => return Err(error).internal(|| "wait for orphans"),
        }
    }
}

/// Waits until `is_enough` returns true, or no other process is left. Calls it repeatedly, because
/// the condition may become true without the end of a child of pid 1.
pub fn until(is_enough: impl Fn() -> bool) {
    loop {
        let is_enough = is_enough();
        // Evaluated last and always: an ended process is counted when it is reaped (getrusage(2),
        // RUSAGE_CHILDREN).
        if is_alone() || is_enough {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Reaps children that have ended; true if no child is left.
pub fn is_alone() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// Kills every process of the PID namespace except this one.
pub fn kill_all() -> Result<()> {
    // Outside pid 1 of a private namespace, -1 would mean every process of the machine.
    if std::process::id() != 1 {
        return Err(CellError::new(Kind::Internal, "kill_all outside of init"));
    }
    match kill(NixPid::from_raw(-1), Signal::SIGKILL) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
        Err(error) => Err(error).internal(|| "kill what is left"),
    }
}

/// Lists every process of the PID namespace that has not ended, except this one, with its command
/// line.
pub fn processes() -> Vec<(u32, String)> {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid| Some((pid, describe(pid)?)))
        .collect()
}

fn describe(pid: u32) -> Option<String> {
    let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).ok();
    // A zombie has no command line; its stat says Z. Kernel threads have none either, but are not
    // in this namespace.
    let line = String::from_utf8_lossy(&read("cmdline")?)
        .replace('\0', " ")
        .trim()
        .to_owned();
    if !line.is_empty() {
        return Some(line.chars().take(200).collect());
    }
    let stat = String::from_utf8_lossy(&read("stat")?).into_owned();
    let (_, state) = stat.rsplit_once(')')?;
    let ended = matches!(state.trim_start().chars().next(), Some('Z' | 'X') | None);
    (!ended).then(|| {
        String::from_utf8_lossy(&read("comm").unwrap_or_default())
            .trim()
            .to_owned()
    })
}
