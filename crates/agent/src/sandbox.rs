//! Restrictions of a workload, besides those on the host's files (`namespace`).
//!
//! This is a guard rail, not a jail. A step keeps CAP_SYS_ADMIN, because half of the features of
//! file systems (mounts, quotas, trim, freezing, trusted attributes) cannot be measured without it.
//! With it, a program that wants to can undo most of these restrictions. docs/measuring.md has the
//! list.

use crate::error::{Context, Result};
use nix::libc;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount_bind, mount_remount};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Capabilities that no measurement needs, and that reach beyond the cell.
const DROPPED: [CapabilitySet; 14] = [
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_BOOT,
    CapabilitySet::SYS_TIME,
    // A process that may trace `init` may also open its descriptors.
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::SYSLOG,
    CapabilitySet::MAC_ADMIN,
    CapabilitySet::MAC_OVERRIDE,
    CapabilitySet::AUDIT_CONTROL,
    CapabilitySet::AUDIT_READ,
    CapabilitySet::AUDIT_WRITE,
    CapabilitySet::BPF,
    CapabilitySet::PERFMON,
    CapabilitySet::WAKE_ALARM,
];
/// Classes of disks, and of the character devices that send commands to disks.
const CLASSES: [&str; 5] = ["block", "scsi_generic", "nvme", "nvme-generic", "ublk-char"];
/// Character devices that reach beyond the cell.
const MASKED: [&str; 5] = ["kmsg", "mem", "port", "kvm", "ublk-control"];
/// Limit of processes and threads of a cell. Since Linux 6.14 a PID namespace has its own limit.
const MOST_PROCESSES: u32 = 8192;
const PID_MAX: &str = "/proc/sys/kernel/pid_max";
const OWN_PID_MAX_SINCE: (u32, u32) = (6, 14);
/// OOM score of init and all its descendants: when memory is short, the kernel kills a cell before
/// anything else.
const OOM_SCORE: &str = "500";

/// Raises the OOM score of `init`. Called first, because every later process inherits it.
pub fn offer_to_oom_killer() {
    // On error, the kernel's choice is unchanged.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
}

/// Limits the number of processes in the cell. Needs the `/proc` of the cell's own PID namespace.
pub fn limit_processes() -> Result<()> {
    if kernel_version() < OWN_PID_MAX_SINCE {
        // On this kernel the setting is machine-wide.
        return Ok(());
    }
    std::fs::write(PID_MAX, MOST_PROCESSES.to_string()).internal(|| format!("write {PID_MAX}"))
}

/// Brings `lo` up: it is the only interface of a new network namespace, and it is down.
pub fn bring_loopback_up() -> Result<()> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .internal(|| "make a socket")?;
    // SAFETY: all zeroes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads an `ifreq`, which lives until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error()).internal(|| "bring lo up")
    }
}

/// Makes the device nodes of block devices that are not in `own` (`loop3`), and those of the memory
/// and the kernel log, unusable by their paths.
pub fn mask_devices(own: &BTreeSet<String>) -> Result<()> {
    // Some kernels lack some of the classes.
    let entries = CLASSES
        .into_iter()
        .flat_map(|class| std::fs::read_dir(Path::new("/sys/class").join(class)))
        .flatten()
        .flatten();
    let devices = entries.map(|entry| entry.file_name().to_string_lossy().replace('!', "/"));
    let names = devices.chain(MASKED.map(str::to_owned));
    for name in names.filter(|name| !own.contains(name)) {
        let node = Path::new("/dev").join(&name);
        let masked = mount_bind(&node, &node).and_then(|()| {
            let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NODEV;
            mount_remount(&node, flags, c"")
        });
        match masked {
            // The node does not exist, or the device is just being removed.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => {
                return Err(error).internal(|| format!("mask {}", node.display()));
            }
        }
    }
    Ok(())
}

/// Drops capabilities of a step, between fork and exec. The next program of root has no more than
/// the bounding set leaves (capabilities(7)), and inherits nothing.
///
/// If the cell owns its kernel, a step may query the blocks of a file (FIBMAP, fs/ioctl.c:
/// CAP_SYS_RAWIO). vfat, jfs and reiserfs have no other call for that.
pub fn drop_capabilities(owns_kernel: bool) -> std::io::Result<()> {
    let is_kept = |capability| owns_kernel && capability == CapabilitySet::SYS_RAWIO;
    for capability in DROPPED
        .into_iter()
        .filter(|&capability| !is_kept(capability))
    {
        match remove_capability_from_bounding_set(capability) {
            // The kernel is older than the capability.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut sets = rustix::thread::capabilities(None)?;
    sets.inheritable = CapabilitySet::empty();
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

fn kernel_version() -> (u32, u32) {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mut words = release.split(|letter: char| !letter.is_ascii_digit());
    let mut next = || words.next().and_then(|word| word.parse().ok());
    (next().unwrap_or(0), next().unwrap_or(0))
}
