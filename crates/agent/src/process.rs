//! A child of `outer`, and how it ended.

use crate::error::{CellError, Context, Kind, Result};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

/// A child, and how it ended.
#[derive(Debug)]
pub struct Process {
    /// The child.
    pub child: Child,
    /// Readable when it has ended.
    pub pidfd: OwnedFd,
    /// How it ended, once reaped.
    pub status: Option<ExitStatus>,
}

impl Process {
    /// Watches over `child`.
    pub fn new(child: Child) -> Result<Self> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| CellError::new(Kind::Internal, "a child without a number"))?;
        let pidfd =
            pidfd_open(pid, PidfdFlags::empty()).context(Kind::Internal, || "pidfd_open")?;
        Ok(Self {
            child,
            pidfd,
            status: None,
        })
    }

    /// Reaps it if it has ended; whether it has.
    pub fn reap(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// Kills it, unless it has ended.
    pub fn kill(&mut self) {
        if self.status.is_none() {
            // It can only fail because the process has ended.
            let _ = self.child.kill();
        }
    }
}

/// How a process ended, in words.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
