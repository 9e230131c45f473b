//! Loop devices that detach themselves.
//!
//! A loop device is configured with `LO_FLAGS_AUTOCLEAR`: the kernel detaches it when its last user
//! closes it, however that process ends. Only `init` and the mounted file system hold it open.

use crate::btrfs_devices;
use crate::counters::{BlockStat, Counters};
use crate::error::{CellError, Context, Kind, Result};
use nix::libc;
use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{IntegerSetter, Opcode, Setter, ioctl};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

/// Numbers from include/uapi/linux/loop.h.
const LOOP_CONFIGURE: Opcode = 0x4C0A;
const LOOP_CTL_REMOVE: Opcode = 0x4C81;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// Attempts to get a free device before another process takes it.
const ATTEMPTS: usize = 100;

/// `struct loop_info64` (include/uapi/linux/loop.h).
#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

/// Returns the number of a free loop device, which the kernel creates if necessary.
fn get_free(control: &File) -> io::Result<i32> {
    // SAFETY: LOOP_CTL_GET_FREE takes no argument and accesses no memory.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(number)
}

/// Removes the loop device with this number, unless it is in use.
fn remove(control: &File, number: i32) -> io::Result<()> {
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    // SAFETY: LOOP_CTL_REMOVE takes the number itself as its argument and accesses no memory.
    Ok(unsafe { ioctl(control, IntegerSetter::<LOOP_CTL_REMOVE>::new_usize(number)) }?)
}

/// An attached loop device, which is detached once this and all other users have closed it.
#[derive(Debug)]
pub struct LoopDevice {
    /// Name in the kernel, such as `loop3`.
    pub kernel_name: String,
    /// Device, open for reading and writing.
    pub fd: OwnedFd,
    /// Counters of the device before it was attached. They survive detaching, so they include
    /// former users.
    pub base_line: Counters,
}

/// Attaches a free loop device to `backing`, with direct I/O if the backing file supports it.
pub fn attach(backing: impl AsFd, name: &str, logical_block_bytes: u32) -> Result<LoopDevice> {
    let control = File::options()
        .read(true)
        .write(true)
        .open("/dev/loop-control")
        .context(
            Kind::Attach,
            || "open /dev/loop-control (is the kernel's loop driver there? `modprobe loop`)",
        )?;
    for _ in 0..ATTEMPTS {
        let number = get_free(&control).context(Kind::Attach, || {
            "no free loop device, and the kernel makes no more (`losetup -a` lists those in use)"
        })?;
        let kernel_name = format!("loop{number}");
        let path = format!("/dev/{kernel_name}");
        let fd = match rustix::fs::open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => fd,
            // The device was just created: udev, or devtmpfs in another namespace, may need a
            // moment.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NXIO) => {
                std::thread::sleep(std::time::Duration::from_millis(20));
                continue;
            }
            Err(error) => return Err(error).context(Kind::Attach, || format!("open {path}")),
        };
        let base_line = BlockStat::of(&kernel_name)?.counters;
        match configure(&fd, backing.as_fd(), name, logical_block_bytes) {
            Ok(()) => {
                if restore_settings(&kernel_name)? {
                    let _ = btrfs_devices::forget(Path::new(&path));
                    return Ok(LoopDevice {
                        kernel_name,
                        fd,
                        base_line,
                    });
                }
                drop(fd);
                // The kernel then creates a new one. EBUSY: another process has taken this one.
                let _ = remove(&control, number);
            }
            Err(rustix::io::Errno::BUSY) => {}
            Err(error) => {
                return Err(error).context(Kind::Attach, || format!("attach {path} to {name}"));
            }
        }
    }
    Err(CellError::new(
        Kind::Attach,
        format!("{ATTEMPTS} free loop devices in a row were taken by others"),
    ))
}

fn configure(
    fd: &OwnedFd,
    backing: impl AsFd,
    name: &str,
    block_size: u32,
) -> rustix::io::Result<()> {
    let mut file_name = [0; 64];
    // Shown by losetup -a; the last byte stays zero.
    for (to, from) in file_name[..63].iter_mut().zip(name.bytes()) {
        *to = from;
    }
    let info = LoopInfo64 {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
        file_name,
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    let backing =
        u32::try_from(backing.as_fd().as_raw_fd()).map_err(|_| rustix::io::Errno::BADF)?;
    let config = LoopConfig {
        fd: backing,
        block_size,
        info,
        reserved: [0; 8],
    };
    // SAFETY: LOOP_CONFIGURE reads a `struct loop_config`, which `LoopConfig` mirrors, and keeps no
    // pointer to it.
    unsafe { ioctl(fd, Setter::<LOOP_CONFIGURE, LoopConfig>::new(config)) }
}

/// Restores queue settings that former users have changed, because they outlive detaching. Returns
/// false if a former user disabled discards, which cannot be undone: the discard granularity stays
/// 0, and the kernel accepts only multiples of it (block/blk-sysfs.c,
/// `queue_max_discard_sectors_store`). Such a device fails `BLKZEROOUT` after the kernel has
/// counted it (drivers/block/loop.c, `lo_fallocate`).
fn restore_settings(kernel_name: &str) -> Result<bool> {
    let queue = Path::new("/sys/block").join(kernel_name).join("queue");
    let read = |setting: &str| {
        let path = queue.join(setting);
        std::fs::read_to_string(&path)
            .map(|text| text.trim().to_owned())
            .context(Kind::Attach, || format!("read {}", path.display()))
    };
    let defaults = [
        ("iostats", "1"),
        ("nomerges", "0"),
        ("write_cache", "write back"),
    ];
    for (setting, default) in defaults {
        if read(setting)? != default {
            std::fs::write(queue.join(setting), default).context(Kind::Attach, || {
                format!("set {setting} of {kernel_name} back to {default}")
            })?;
        }
    }
    Ok(read("discard_max_bytes")? != "0" || read("discard_max_hw_bytes")? == "0")
}

/// True if the loop device bypasses the page cache of its file.
pub fn is_direct(kernel_name: &str) -> bool {
    std::fs::read_to_string(format!("/sys/block/{kernel_name}/loop/dio"))
        .is_ok_and(|text| text.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_former_users_are_undone() {
        let is_root = rustix::process::geteuid().is_root();
        if !(is_root && Path::new("/dev/loop-control").exists()) {
            eprintln!("SKIPPED: loop devices need root and the loop driver");
            return;
        }
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let device = attach(&file, "settings", 512).unwrap();
        let set = |setting: &str, value: &str| {
            let queue = Path::new("/sys/block").join(&device.kernel_name);
            std::fs::write(queue.join("queue").join(setting), value).unwrap();
        };
        set("iostats", "0");
        set("nomerges", "2");
        set("write_cache", "write through");
        assert!(restore_settings(&device.kernel_name).unwrap());
        for (setting, default) in [
            ("iostats", "1\n"),
            ("nomerges", "0\n"),
            ("write_cache", "write back\n"),
        ] {
            let path = format!("/sys/block/{}/queue/{setting}", device.kernel_name);
            assert_eq!(std::fs::read_to_string(path).unwrap(), default);
        }
        set("discard_max_bytes", "0");
        assert!(!restore_settings(&device.kernel_name).unwrap());
        drop(device);
        // The same number as before, unless another test was faster.
        let again = attach(&file, "settings", 512).unwrap();
        let path = format!("/sys/block/{}/queue/discard_max_bytes", again.kernel_name);
        assert_ne!(std::fs::read_to_string(path).unwrap(), "0\n");
    }

    #[test]
    fn btrfs_forgets_what_a_former_user_of_the_device_held() {
        let is_root = rustix::process::geteuid().is_root();
        let has = |path: &str| Path::new(path).exists();
        if !(is_root && has("/dev/loop-control") && has("/dev/btrfs-control")) {
            eprintln!("SKIPPED: the list of btrfs devices needs root, loop devices and btrfs");
            return;
        }
        let disk = || {
            let file = tempfile::tempfile().unwrap();
            file.set_len(128 << 20).unwrap();
            file
        };
        let (first, second) = (disk(), disk());
        let [first, second] = [&first, &second].map(|file| attach(file, "btrfs", 512).unwrap());
        let path = |device: &LoopDevice| format!("/dev/{}", device.kernel_name);
        // mkfs tells the kernel of each device.
        let made = std::process::Command::new("mkfs.btrfs")
            .args(["--quiet", "--data", "raid1", "--metadata", "raid1"])
            .args([path(&first), path(&second)])
            .status();
        let Ok(made) = made else {
            eprintln!("SKIPPED: no mkfs.btrfs (`apt install btrfs-progs`)");
            return;
        };
        assert!(made.success());
        let all_are_known = || {
            let ready = std::process::Command::new("btrfs")
                .args(["device", "ready", &path(&second)])
                .status();
            ready.unwrap().success()
        };
        let number = path(&first);
        drop(first);
        // The kernel gives the lowest free number, unless another test was faster.
        let empty = disk();
        let mut others = Vec::new();
        while others.last().map(path).as_deref() != Some(number.as_str()) {
            assert!(others.len() < ATTEMPTS, "{number} did not come back");
            others.push(attach(&empty, "empty", 512).unwrap());
        }
        assert!(!all_are_known());
        btrfs_devices::forget(Path::new(&path(&second))).unwrap();
    }

    #[test]
    fn structures_have_the_kernel_s_sizes() {
        assert_eq!(size_of::<LoopInfo64>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
    }
}
