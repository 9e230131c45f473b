//! A child of `supervisor` and its exit status.

use crate::error::{Context, Result};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

/// A child process and its exit status.
#[derive(Debug)]
pub struct Process {
    /// The child.
    pub child: Child,
    /// Descriptor that becomes readable when the child has ended.
    pub pidfd: OwnedFd,
    /// Exit status, once reaped.
    pub status: Option<ExitStatus>,
}

impl Process {
    /// Watches `child`.
    pub fn new(child: Child) -> Result<Self> {
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).internal(|| "pidfd_open")?;
        Ok(Self {
            child,
            pidfd,
            status: None,
        })
    }

    /// Reaps the child if it has ended; returns whether it has.
    pub fn reap(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// Kills the child, unless it has ended.
    pub fn kill(&mut self) {
        if self.status.is_none() {
            // Fails only if the process has already ended.
            let _ = self.child.kill();
        }
    }
}

/// Describes the end of a process.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
