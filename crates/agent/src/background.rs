//! Programs that run as long as the file system is mounted: nilfs2's cleaner.

use crate::child::Launcher;
use crate::error::{CellError, Context, Kind, Result};
use crate::reap;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Environment variable that distinguishes background programs from processes that a step leaves
/// running. Parent and session do not identify daemons, which may change both.
const MARKER: &str = "FSCOST_BACKGROUND";
/// Time limit for the programs to exit after SIGTERM.
const END_LIMIT: Duration = Duration::from_secs(10);
const END_PAUSE: Duration = Duration::from_millis(5);

/// Background programs that are running.
#[derive(Debug, Default)]
pub struct Background {
    programs: Vec<String>,
}

impl Background {
    /// Starts the commands.
    pub fn start(launcher: &Launcher, commands: &[Vec<String>]) -> Result<Self> {
        let mut background = Self::default();
        for argv in commands {
            let program = argv.first().cloned().unwrap_or_default();
            launcher.log.announce(&program);
            launcher
                .command(argv)?
                .env(MARKER, background.programs.len().to_string())
                .spawn()
                .context(Kind::Mount, || format!("{program} could not be started"))?;
            background.programs.push(program);
        }
        Ok(background)
    }

    /// True if no program was started.
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// True if every other process is a background program. Briefly false while a background
    /// program is in execve(2): its environment is empty until the new stack is set up
    /// (fs/proc/base.c, `environ_read`).
    pub fn is_all(&self) -> bool {
        processes().iter().all(|(_, number)| number.is_some())
    }

    /// Ends the programs. Fails if one has exited by itself, because then the cell did not run as
    /// the profile says.
    pub fn end(&mut self) -> Result<()> {
        let programs = std::mem::take(&mut self.programs);
        let found = processes();
        let running: BTreeSet<usize> = found.iter().filter_map(|(_, number)| *number).collect();
        for (number, program) in programs.iter().enumerate() {
            if !running.contains(&number) {
                let message =
                    format!("{program} exited before the unmount; its output is in the log");
                return Err(CellError::new(Kind::Mount, message));
            }
        }
        for (pid, _) in found {
            // An error means that the process has just exited.
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + END_LIMIT;
        while !programs.is_empty() && !reap::is_alone() {
            if Instant::now() >= deadline {
                reap::kill_all()?;
            }
            std::thread::sleep(END_PAUSE);
        }
        Ok(())
    }
}

/// Returns every other process, with the number of the background program it belongs to.
fn processes() -> Vec<(Pid, Option<usize>)> {
    reap::processes()
        .into_iter()
        .filter_map(|(pid, _)| {
            // An exiting process has no environment any more, but may not be reaped yet.
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            Some((
                Pid::from_raw(i32::try_from(pid).ok()?)?,
                number_in(&environment),
            ))
        })
        .collect()
}

fn number_in(environment: &[u8]) -> Option<usize> {
    environment
        .split(|byte| *byte == 0)
        .filter_map(|entry| entry.strip_prefix(MARKER.as_bytes())?.strip_prefix(b"="))
        .find_map(|value| std::str::from_utf8(value).ok()?.parse().ok())
}
