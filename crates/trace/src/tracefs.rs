//! Identifiers and fields of tracepoints.

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
    let text = read(tracefs, &format!("events/{name}/id"))?;
    text.trim().parse().map_err(io::Error::other)
}

/// Returns the offset and the size of a field of the tracepoint `name`; None if it has no such
/// field.
pub fn field(tracefs: &OwnedFd, name: &str, field: &str) -> io::Result<Option<(u64, u64)>> {
    let text = read(tracefs, &format!("events/{name}/format"))?;
    Ok(text.lines().find_map(|line| placed(line, field)))
}

/// Parses a line such as `field:ino_t ino; offset:16; size:8; signed:0;`.
fn placed(line: &str, field: &str) -> Option<(u64, u64)> {
    let mut parts = line.split(';').map(str::trim);
    let declared = parts.next()?.strip_prefix("field:")?;
    if declared.rsplit(' ').next() != Some(field) {
        return None;
    }
    let mut number = |name| parts.next()?.strip_prefix(name)?.parse().ok();
    Some((number("offset:")?, number("size:")?))
}

fn read(tracefs: &OwnedFd, path: &str) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(tracefs, path, flags, Mode::empty())?;
    let mut text = String::new();
    File::from(file).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_a_place() {
        let line = "\tfield:ino_t ino;\toffset:16;\tsize:8;\tsigned:0;";
        assert_eq!(placed(line, "ino"), Some((16, 8)));
        assert_eq!(placed(line, "no"), None);
        assert_eq!(placed("print fmt: \"ino %lu\"", "ino"), None);
    }
}
