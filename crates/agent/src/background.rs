//! Programs that run as long as the file system is mounted: nilfs2's cleaner.

use crate::child::Launcher;
use crate::error::{CellError, Context, Kind, Result};
use crate::reap;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};
use std::time::{Duration, Instant};

/// How long they may take to end when asked.
const END_LIMIT: Duration = Duration::from_secs(10);
const END_PAUSE: Duration = Duration::from_millis(5);

/// The programs that are running; each leads a session of its own.
#[derive(Debug, Default)]
pub struct Background {
    running: Vec<(Pid, String)>,
}

impl Background {
    /// Starts the commands, which must not put themselves into the background.
    pub fn start(launcher: &Launcher, commands: &[Vec<String>]) -> Result<Self> {
        let mut background = Self::default();
        for argv in commands {
            let program = argv.first().map(String::as_str).unwrap_or_default();
            launcher.log.announce(program);
            let child = launcher
                .command(argv)?
                .spawn()
                .context(Kind::Mount, || format!("{program} could not be started"))?;
            background
                .running
                .push((Pid::from_child(&child), program.to_owned()));
        }
        Ok(background)
    }

    /// The sessions whose processes are not waited for at the end of a command.
    pub fn sessions(&self) -> Vec<Pid> {
        self.running.iter().map(|(pid, _)| *pid).collect()
    }

    /// Ends them, with all that they have started. One that has ended by itself did not do what the profile says.
    pub fn end(&mut self) -> Result<()> {
        for (pid, program) in std::mem::take(&mut self.running) {
            if !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None)) {
                return Err(CellError::new(
                    Kind::Mount,
                    format!(
                        "{program} was to run until the unmount, but ended before; the log has its words"
                    ),
                ));
            }
            // Not there any more: it ends just now.
            let _ = kill_process(pid, Signal::TERM);
            let deadline = Instant::now() + END_LIMIT;
            while matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None))
                && Instant::now() < deadline
            {
                std::thread::sleep(END_PAUSE);
            }
            let _ = kill_process_group(pid, Signal::KILL);
        }
        reap::until_alone(&[])
    }
}
