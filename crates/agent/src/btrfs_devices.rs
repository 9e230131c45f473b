//! The kernel's list of the devices of btrfs file systems.
//!
//! The list keeps the devices of a file system of several disks by their numbers after they were
//! unmounted and detached (fs/btrfs/volumes.c, `fs_uuids`). A later mount of that file system, or
//! of a copy, opens them all exclusively to see what they hold now: meanwhile, mkfs of another cell
//! with the same number fails with EBUSY.

use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Opcode, Setter, ioctl};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `BTRFS_IOC_FORGET_DEV` (include/uapi/linux/btrfs.h), since Linux 5.1.
const FORGET: Opcode = 0x5000_9405;
const CONTROL: &str = "/dev/btrfs-control";

/// `struct btrfs_ioctl_vol_args`.
#[repr(C)]
struct VolArgs {
    fd: i64,
    name: [u8; 4088],
}

/// Lets btrfs forget what it knows of a device that is to be formatted. An error (no
/// btrfs in this kernel) changes nothing for the cell.
pub fn forget(device: &Path) -> rustix::io::Result<()> {
    // Opening the control device would load the module, which remembers nothing then.
    if !Path::new("/sys/fs/btrfs").exists() {
        return Ok(());
    }
    let mut args = VolArgs {
        fd: 0,
        name: [0; 4088],
    };
    // The last byte stays zero.
    for (to, from) in args.name[..4087]
        .iter_mut()
        .zip(device.as_os_str().as_bytes())
    {
        *to = *from;
    }
    let control = rustix::fs::open(CONTROL, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    // SAFETY: BTRFS_IOC_FORGET_DEV reads a `struct btrfs_ioctl_vol_args`, which `VolArgs` mirrors,
    // and keeps no pointer to it.
    unsafe { ioctl(&control, Setter::<FORGET, VolArgs>::new(args)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_kernel_s_size() {
        assert_eq!(size_of::<VolArgs>(), 4096);
    }
}
