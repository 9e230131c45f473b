//! A FUSE mount that is attached to no mount namespace. It lives as long as its descriptor and the
//! files opened through it.

use fscost_recording::MAX_REQUEST_BYTES;
use rustix::{
    fd::{AsRawFd as _, OwnedFd},
    fs::{Mode, OFlags},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
        fsopen,
    },
};

/// A connection to the kernel's FUSE, and its mount.
pub struct Mount {
    /// `/dev/fuse`, the source of requests. Non-blocking.
    pub connection: OwnedFd,
    /// Root directory, relative to which the disks' files are opened.
    pub root: OwnedFd,
}

impl Mount {
    /// Mount (Linux 5.2 or later: `fsopen(2)`). The kernel's first request then waits for an
    /// answer.
    pub fn new() -> Result<Mount, String> {
        let failed = |doing| move |errno: Errno| format!("{doing}: {errno}");
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let connection = rustix::fs::open("/dev/fuse", flags, Mode::empty())
            .map_err(failed("opening /dev/fuse"))?;
        let context =
            fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC).map_err(failed("fsopen of fuse"))?;
        let number = connection.as_raw_fd().to_string();
        // `max_pages` of the session counts pages, which may be of 64 KiB; a longer read is
        // refused.
        let most_bytes = MAX_REQUEST_BYTES.to_string();
        let options = [
            ("source", "fscost"),
            ("fd", number.as_str()),
            ("rootmode", "40000"),
            ("user_id", "0"),
            ("group_id", "0"),
            ("max_read", most_bytes.as_str()),
        ];
        for (key, value) in options {
            fsconfig_set_string(&context, key, value)
                .map_err(failed("configuring the FUSE mount"))?;
        }
        fsconfig_create(&context).map_err(failed("creating the FUSE mount"))?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
            .map_err(failed("fsmount of fuse"))?;
        Ok(Mount { connection, root })
    }
}
