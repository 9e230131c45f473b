//! The data that `supervisor` hands to `init`: the plan and the numbers of inherited descriptors, in
//! a memory file as standard input.

use crate::error::{Context, Result};
use crate::plan::Plan;
use rustix::fs::{MemfdFlags, SeekFrom};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Everything that `init` needs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Handoff {
    /// Plan, already checked.
    pub plan: Plan,
    /// Descriptor through which `supervisor` reports CPU times.
    pub cpu_fd: RawFd,
    /// Control socket of the disk server.
    pub control_fd: Option<RawFd>,
}

impl Handoff {
    /// Returns a memory file with the data, ready to be read from its start.
    pub fn to_file(&self) -> Result<File> {
        let fd = rustix::fs::memfd_create("fscost-handoff", MemfdFlags::CLOEXEC)
            .internal(|| "memfd_create")?;
        let mut file = File::from(fd);
        let text = serde_json::to_vec(self).internal(|| "serialize the handoff")?;
        file.write_all(&text).internal(|| "write the handoff")?;
        rustix::fs::seek(&file, SeekFrom::Start(0)).internal(|| "rewind the handoff")?;
        Ok(file)
    }

    /// Reads the data from standard input.
    pub fn from_stdin() -> Result<Self> {
        serde_json::from_reader(std::io::stdin().lock()).internal(|| "read the handoff")
    }
}

/// Takes over an inherited descriptor, and marks it close-on-exec so that children do not inherit
/// it.
pub fn adopt(fd: RawFd) -> Result<OwnedFd> {
    // SAFETY: `supervisor` opened it for this process and passed its number once; nothing else
    // here uses it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)
        .internal(|| "adopt an inherited descriptor")?;
    Ok(fd)
}

/// Lets the next program inherit the descriptor. Called in a child before exec.
pub fn bequeath(fd: RawFd) -> std::io::Result<()> {
    // SAFETY: the parent holds the descriptor open until the child is started.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?)
}
