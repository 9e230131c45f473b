//! The disks of a cell: served, a plain file, or a real device; each with the counters it started
//! from.

use crate::btrfs_devices;
use crate::control::Served;
use crate::counters::{BlockStat, Counters};
use crate::error::{CellError, Context, Kind, Result};
use crate::loopdev;
use crate::plan::{DeviceIdentity, DiskPlan, Plan};
use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Getter, Opcode, ioctl, opcode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Queue attributes of a device that events report.
const QUEUE_VALUES: [&str; 6] = [
    "logical_block_size",
    "physical_block_size",
    "max_sectors_kb",
    "write_cache",
    "discard_max_bytes",
    "rotational",
];

/// Longest wait for all requests to complete.
pub const QUIET_LIMIT: Duration = Duration::from_secs(2);
/// Time without requests that ends a step. Members of an array need a longer one: md writes their
/// superblocks after the array has been idle (`safe_mode_delay`, 0.2 s).
pub const QUIET_PAUSE: Duration = Duration::from_millis(1);
pub const ARRAY_QUIET_PAUSE: Duration = Duration::from_millis(300);

/// A disk with its device.
#[derive(Debug)]
pub struct Disk {
    /// Name of the disk in the plan.
    pub name: String,
    /// Path of the device: `/dev/loop3`, `/dev/ublkb0`.
    pub path: PathBuf,
    /// Name in the kernel: `loop3`, `ublkb0`.
    pub kernel_name: String,
    fd: OwnedFd,
    base_line: Counters,
}

/// Returns the size of a block device (Documentation/ABI/stable/sysfs-block: in sectors of 512
/// bytes).
pub fn size_bytes(kernel_name: &str) -> Result<u64> {
    let path = format!("/sys/class/block/{kernel_name}/size");
    let text = std::fs::read_to_string(&path).context(Kind::Attach, || format!("read {path}"))?;
    let sectors = text.trim().parse::<u64>().context(Kind::Attach, || {
        format!("unexpected content in {path}: {text}")
    })?;
    Ok(sectors * 512)
}

/// Opens the files and devices of the plan, while the host's directories are still visible. Disks of
/// the disk server have neither.
pub fn open_backings(plan: &Plan) -> Result<Vec<Option<OwnedFd>>> {
    plan.disks.iter().map(open_backing).collect()
}

fn open_backing(disk: &DiskPlan) -> Result<Option<OwnedFd>> {
    let Some(path) = disk.file.as_ref().or(disk.device.as_ref()) else {
        return Ok(None);
    };
    let fd = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .context(Kind::Attach, || {
            format!("open {} for disk {}", path.display(), disk.name)
        })?;
    if let (Some(device), Some(expected)) = (&disk.device, &disk.identity) {
        refuse_another(&fd, expected, device)?;
    }
    Ok(Some(fd))
}

/// Fails unless `fd` is the expected disk. Checks the descriptor that is used from now on, because
/// the path could refer to another disk between a check and its use.
fn refuse_another(fd: &OwnedFd, expected: &DeviceIdentity, device: &Path) -> Result<()> {
    /// `_IOR(0x12, 128, __u64)` (include/uapi/linux/fs.h).
    const BLKGETDISKSEQ: Opcode = opcode::read::<u64>(0x12, 128);
    let stat = rustix::fs::fstat(fd).context(Kind::Attach, || "stat the device")?;
    // SAFETY: BLKGETDISKSEQ writes a u64.
    let diskseq = unsafe { ioctl(fd, Getter::<BLKGETDISKSEQ, u64>::new()) }
        .context(Kind::Attach, || {
            format!("read the sequence number of {}", device.display())
        })?;
    let found = DeviceIdentity {
        major: rustix::fs::major(stat.st_rdev),
        minor: rustix::fs::minor(stat.st_rdev),
        diskseq,
    };
    if found == *expected {
        return Ok(());
    }
    let message = format!(
        "{} is not the disk that was confirmed: it is {found:?} and was {expected:?}; it was not \
        touched",
        device.display()
    );
    Err(CellError::new(Kind::Attach, message))
}

/// Gives every disk its device. `served` locates the disks of the disk server.
pub fn attach(
    plan: &Plan,
    backings: Vec<Option<OwnedFd>>,
    served: Option<Served>,
) -> Result<Vec<Disk>> {
    let attach_one = |(disk, backing)| attach_one(disk, backing, served.as_ref());
    plan.disks.iter().zip(backings).map(attach_one).collect()
}

fn attach_one(plan: &DiskPlan, backing: Option<OwnedFd>, served: Option<&Served>) -> Result<Disk> {
    let (file, name) = match (backing, &plan.file) {
        (Some(fd), Some(file)) => (fd, file.to_string_lossy().into_owned()),
        (Some(fd), None) => return real(plan, fd),
        (None, _) => {
            let none = || CellError::new(Kind::Attach, "the disk server serves no disk");
            let mount = match served.ok_or_else(none)? {
                Served::Files(mount) => mount,
                Served::Devices(nodes) => {
                    return block_device(plan, nodes.get(&plan.name).ok_or_else(none)?);
                }
            };
            let flags = OFlags::RDWR | OFlags::CLOEXEC;
            let fd = rustix::fs::openat(mount, &plan.name, flags, Mode::empty())
                .context(Kind::Attach, || {
                    format!("open disk {} of the disk server", plan.name)
                })?;
            (fd, format!("fscost:{}", plan.name))
        }
    };
    let device = loopdev::attach(&file, &name, plan.logical_block_bytes)?;
    let disk = Disk {
        name: plan.name.clone(),
        path: Path::new("/dev").join(&device.kernel_name),
        kernel_name: device.kernel_name,
        fd: device.fd,
        base_line: device.base_line,
    };
    // Through the page cache, requests would reach the recording late and merged, and not all of
    // them before the mark.
    if plan.is_served() && !loopdev::is_direct(&disk.kernel_name) {
        let message = format!(
            "{} refuses direct I/O on disk {}: the recording would not show its requests as \
            issued",
            disk.path.display(),
            disk.name
        );
        return Err(CellError::new(Kind::Attach, message));
    }
    Ok(disk)
}

/// Returns a block device of the disk server, which is new and disappears when the server ends.
fn block_device(plan: &DiskPlan, path: &Path) -> Result<Disk> {
    let name = path.file_name().unwrap_or_default();
    let kernel_name = name.to_string_lossy().into_owned();
    let scheduler = format!("/sys/block/{kernel_name}/queue/scheduler");
    // Loop devices have no scheduler either.
    std::fs::write(&scheduler, "none").context(Kind::Attach, || format!("write {scheduler}"))?;
    let fd = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .context(Kind::Attach, || format!("open {}", path.display()))?;
    // The number may have been another disk's.
    let _ = btrfs_devices::forget(path);
    Ok(Disk {
        name: plan.name.clone(),
        path: path.to_owned(),
        kernel_name,
        fd,
        base_line: Counters::default(),
    })
}

fn real(plan: &DiskPlan, fd: OwnedFd) -> Result<Disk> {
    let path = plan.device.clone().unwrap_or_default();
    let real_path = path
        .canonicalize()
        .context(Kind::Attach, || format!("find {}", path.display()))?;
    let name = real_path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let kernel_name = name.ok_or_else(|| {
        CellError::new(Kind::Attach, format!("{} is not a device", path.display()))
    })?;
    let base_line = if plan.is_new {
        Counters::default()
    } else {
        BlockStat::of(&kernel_name)?.counters
    };
    Ok(Disk {
        name: plan.name.clone(),
        path,
        kernel_name,
        fd,
        base_line,
    })
}

impl Disk {
    /// Returns the attributes of the device's queue in sysfs.
    pub fn queue(&self) -> BTreeMap<String, Value> {
        let dir = Path::new("/sys/class/block").join(&self.kernel_name);
        // A partition has no queue of its own; its disk's is one level up.
        let queue = [dir.join("queue"), dir.join("../queue")]
            .into_iter()
            .find(|queue| queue.is_dir())
            .unwrap_or_default();
        let value = |name: &str| {
            let text = std::fs::read_to_string(queue.join(name)).ok()?;
            let text = text.trim();
            Some((
                name.to_owned(),
                text.parse::<u64>()
                    .map_or_else(|_| Value::from(text), Value::from),
            ))
        };
        QUEUE_VALUES.iter().filter_map(|name| value(name)).collect()
    }

    /// Writes the device's dirty buffers to it and flushes it.
    pub fn sync(&self) -> Result<()> {
        rustix::fs::fsync(&self.fd).internal(|| format!("fsync {}", self.path.display()))
    }
}

/// Bytes that each disk has received since it was attached.
pub type Written = BTreeMap<String, u64>;

/// Returns the current counters of the disks, without requests in flight.
pub fn written(disks: &[Disk]) -> Result<Written> {
    let of = |disk: &Disk| {
        let counters = BlockStat::of(&disk.kernel_name)?.counters;
        Ok((
            disk.name.clone(),
            counters.since(&disk.base_line).write_bytes,
        ))
    };
    disks.iter().map(of).collect()
}

/// Returns the bytes written from `begin` to `end`. Empty if `begin` is missing; zero for a disk
/// that is missing in `end`.
pub fn written_since(begin: Option<&Written>, end: &BTreeMap<String, Counters>) -> Written {
    let since = |(disk, begin): (&String, &u64)| {
        let end = end
            .get(disk)
            .map_or(*begin, |counters| counters.write_bytes);
        (disk.clone(), end.saturating_sub(*begin))
    };
    begin.into_iter().flatten().map(since).collect()
}

/// Returns the counters of every disk since it was attached, by name, once no request is in flight.
///
/// The kernel counts a request when it completes. A reading during a request would charge it to one
/// interval in the kernel's counters and to another in the recording. If a disk stays busy, its
/// counters are read anyway and its name is returned.
pub fn quiet_counters(
    disks: &[Disk],
    pause: Duration,
) -> Result<(BTreeMap<String, Counters>, Option<&str>)> {
    let deadline = Instant::now() + QUIET_LIMIT;
    let read = || {
        disks
            .iter()
            .map(|disk| BlockStat::of(&disk.kernel_name))
            .collect::<Result<Vec<_>>>()
    };
    let mut stats = read()?;
    let mut restless = None;
    while Instant::now() < deadline {
        std::thread::sleep(pause);
        let again = read()?;
        restless = (0..disks.len())
            .find(|&number| again[number] != stats[number] || again[number].in_flight != 0);
        stats = again;
        if restless.is_none() {
            break;
        }
    }
    let since = |(disk, stat): (&Disk, &BlockStat)| {
        (disk.name.clone(), stat.counters.since(&disk.base_line))
    };
    let counters = disks.iter().zip(&stats).map(since).collect();
    Ok((counters, restless.map(|number| disks[number].name.as_str())))
}
