//! The private mount namespace of a cell: nothing mounted in it is seen outside, and all of it ends with `init`.

use crate::error::{Context, Kind, Result};
use rustix::fs::{CWD, Mode};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change,
    mount_remount, move_mount, open_tree,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The directories of a cell.
#[derive(Debug, Clone)]
pub struct Directories {
    /// Mount point of the file system under test.
    pub fs: PathBuf,
    /// Private memory file system.
    pub scratch: PathBuf,
}

/// Leaves the host's mount namespace; nothing mounted from now on spreads back to it.
pub fn leave_host() -> Result<()> {
    // SAFETY: NEWNS does not touch file descriptors, and this process has one thread.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
        .context(Kind::Internal, || "unshare the mount namespace")?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .context(Kind::Internal, || "make every mount private")
}

/// A detached copy of the mount of `input`, taken before `base` hides what is under it.
pub fn open_input(input: &Path) -> Result<OwnedFd> {
    open_tree(
        CWD,
        input,
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC,
    )
    .context(Kind::Internal, || {
        format!("open the input {}", input.display())
    })
}

/// Mounts the cell's own directories over `base`, and the `/proc` of its PID namespace.
pub fn build(base: &Path, input: Option<OwnedFd>) -> Result<Directories> {
    const EMPTY: &CStr = c"";
    mount(
        "fscost",
        base,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        Some(c"mode=0755"),
    )
    .context(Kind::Internal, || {
        format!("mount a tmpfs on {}", base.display())
    })?;
    let make = |name: &str, mode: u32| {
        let path = base.join(name);
        // mkdir(2) takes the umask away; chmod(2) does not.
        rustix::fs::mkdir(&path, Mode::RWXU)
            .and_then(|()| rustix::fs::chmod(&path, Mode::from_raw_mode(mode)))
            .context(Kind::Internal, || format!("make {}", path.display()))?;
        Ok(path)
    };
    let fs = make("fs", 0o755)?;
    // As /tmp: a workload may give up being root.
    let scratch = make("scratch", 0o1777)?;
    if let Some(tree) = input {
        let target = make("input", 0o755)?;
        move_mount(
            &tree,
            EMPTY,
            CWD,
            &target,
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )
        .context(Kind::Internal, || "bind the input")?;
        mount_remount(
            &target,
            MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOATIME,
            EMPTY,
        )
        .context(Kind::Internal, || "make the input read-only")?;
    }
    mount(
        "proc",
        "/proc",
        "proc",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        None,
    )
    .context(Kind::Internal, || "mount /proc")?;
    Ok(Directories { fs, scratch })
}
