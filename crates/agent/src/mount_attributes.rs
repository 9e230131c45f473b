//! mount_setattr(2), which rustix does not have.

use nix::libc;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// For every file of the mount, but not for devices.
pub const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;

/// Sets attributes of the mount on `path` and of every mount below it.
pub fn set_recursively(path: &Path, attributes: u64) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let change = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the kernel reads `path` up to its zero byte and `change` by its size; both outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const change,
            size_of_val(&change),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
