//! Identifiers of tracepoints.

use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

/// Mounts tracefs for this process alone. The mount ends with the descriptor, and
/// `/sys/kernel/tracing` is not needed.
pub fn mount() -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(rustix::mount::fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?)
}

/// Returns the identifier of the tracepoint `name`, which has the form `GROUP/NAME`.
pub fn id(tracefs: &OwnedFd, name: &str) -> io::Result<u64> {
    let path = format!("events/{name}/id");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(tracefs, &path, flags, Mode::empty())?;
    let mut text = String::new();
    File::from(file).read_to_string(&mut text)?;
    text.trim().parse().map_err(io::Error::other)
}
