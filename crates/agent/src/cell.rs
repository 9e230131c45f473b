//! One cell from the first mark to the last: its intervals, and the measurements of each.

use crate::background::Background;
use crate::child::Launcher;
use crate::control::{Control, Facts, Marked};
use crate::counters::Counters;
use crate::cpu::CpuMeter;
use crate::disks::{self, ARRAY_QUIET_PAUSE, Disk, QUIET_LIMIT, QUIET_PAUSE, quiet_counters};
use crate::error::{CellError, Context, Kind, Result};
use crate::event::{Event, Interval, emit};
use crate::klog::KernelLog;
use crate::mount::{self, MountInfo};
use crate::namespace;
use crate::plan::{MountPlan, Plan, Settle, StepPlan};
use crate::schedule::Schedule;
use crate::sync_calls::{OutsideSyncs, SyncCalls, SyncTimes, monotonic_ns};
use crate::usage::{Usage, thread_cpu_ns};
use crate::watchdog::Watchdog;
use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time limit of mkfs, of mounting, and of each inspection.
const LIMIT: Duration = Duration::from_secs(900);

/// A cell that is running.
#[derive(Debug)]
pub struct Cell {
    /// The plan of the cell.
    pub plan: Plan,
    /// Starts the cell's commands.
    pub launcher: Launcher,
    /// Disks of the cell.
    pub disks: Vec<Disk>,
    /// Control channel of the disk server, if there is one.
    pub control: Option<Control>,
    /// Reports CPU times.
    pub cpu: CpuMeter,
    /// `/proc/sys/vm/drop_caches`, which the workload cannot write.
    pub drop_caches: File,
    /// Counts the workload's fsync, fdatasync and O_SYNC calls, where tracepoints allow it.
    pub sync_calls: Option<SyncCalls>,
    /// Counts sync calls of programs outside the cell, where tracepoints allow it.
    pub outside_sync_calls: Option<OutsideSyncs>,
    /// Durations of fsync and fdatasync calls, if they can be measured.
    pub sync_times: Option<SyncTimes>,
    /// The kernel log.
    pub kernel_log: KernelLog,
    /// Name of the current interval; empty before the first.
    pub step: String,
    /// The file system as last mounted.
    pub mounted: Option<MountInfo>,
    /// True while the file system is mounted.
    pub is_mounted: bool,
    /// Programs that run while the file system is mounted.
    pub background: Background,
    /// Start times of intervals in an emulated machine.
    pub schedule: Option<Schedule>,
    /// A finished interval whose end counters are not read yet; they are read when the next begins.
    pub pending: Option<Work>,
}

/// Measurements of an interval's work.
#[derive(Debug, Default)]
pub struct Work {
    /// Time at which the command and all its descendants had ended.
    pub command_ended: Option<Instant>,
    /// CPU time of `init` itself that belongs to the interval.
    pub own_ns: u64,
    /// Space and pauses.
    pub interval: Interval,
    /// Counters of the disks at its start.
    pub begin: BTreeMap<String, Counters>,
    /// Counters of the disks at the end of the command.
    pub settle: Option<disks::Written>,
    /// Counters of the disks at the beginning of the unmount.
    pub unmount: Option<disks::Written>,
}

impl Work {
    /// Runs `work`, and charges this thread's CPU time to the interval.
    pub fn own<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begin = thread_cpu_ns();
        let result = work();
        self.own_ns += thread_cpu_ns().saturating_sub(begin);
        result
    }
}

impl Cell {
    /// Runs the cell; returns the disk server's totals.
    pub fn run(&mut self) -> Result<Value> {
        for disk in &self.disks {
            let device = disk.path.to_string_lossy().into_owned();
            emit(&Event::Attached {
                disk: disk.name.clone(),
                device,
                queue: disk.queue(),
            })?;
        }
        self.format()?;
        self.mount()?;
        self.inspect()?;
        namespace::protect_setup()?;
        let steps = self.plan.steps.clone();
        for (number, step) in steps.iter().enumerate() {
            self.run_step(step, number + 1 == steps.len())?;
        }
        self.boundary("end", None)?;
        // Detaches the loop devices while the server still runs: they must send it no request after
        // its end.
        self.disks.clear();
        match self.control.take() {
            Some(control) => control.finish(),
            None => Ok(Value::Null),
        }
    }

    fn format(&mut self) -> Result<()> {
        self.interval("mkfs", false, LIMIT, |cell, watchdog, work| {
            cell.run_commands(&cell.plan.mkfs, "mkfs", Kind::Mkfs, watchdog)?;
            work.command_ended = Some(Instant::now());
            work.own(|| cell.disks.iter().try_for_each(Disk::sync))
        })
    }

    fn mount(&mut self) -> Result<()> {
        self.interval("mount", false, LIMIT, |cell, watchdog, work| {
            work.own(|| cell.attach_file_system())?;
            if let Some(mounted) = &cell.mounted {
                emit(&Event::Mounted(mounted.clone()))?;
            }
            cell.run_commands(&cell.plan.after_mount, "mount", Kind::Mount, watchdog)?;
            cell.start_background()?;
            work.command_ended = Some(Instant::now());
            work.own(|| cell.sync_file_system())?;
            cell.measure_space(&mut work.interval)
        })
    }

    fn run_step(&mut self, step: &StepPlan, is_last: bool) -> Result<()> {
        let limit = Duration::from_secs(step.timeout_s);
        if step.drop_caches {
            // Before the step's mark, so that these writes are charged to earlier steps, which
            // dirtied the pages.
            let _watchdog = self.watchdog(&step.name, limit)?;
            self.drop_caches()?;
        }
        self.interval(&step.name, step.measured, limit, |cell, watchdog, work| {
            work.interval.probe = cell.run_workload(step, watchdog)?;
            work.interval.sync_times_ns =
                cell.sync_times.as_mut().map(SyncTimes::take).transpose()?;
            if let Some(failure) = watchdog.failure() {
                // The watchdog has killed the background programs too, so their exit explains
                // nothing.
                return Err(failure);
            }
            work.command_ended = Some(Instant::now());
            work.settle = Some(disks::written(&cell.disks)?);
            cell.check_mount()?;
            if is_last {
                // Unmounting starts with the same sync; done here so that the space in use is
                // exact.
                work.own(|| cell.sync_file_system())?;
                cell.measure_space(&mut work.interval)?;
                work.unmount = Some(disks::written(&cell.disks)?);
                work.own(|| cell.detach_file_system())?;
                cell.release_disks(watchdog)?;
                return work.own(|| cell.disks.iter().try_for_each(Disk::sync));
            }
            match step.settle {
                Settle::Sync => work.own(|| cell.sync_file_system())?,
                Settle::Remount => work.own(|| {
                    cell.detach_file_system()?;
                    cell.attach_file_system()?;
                    cell.start_background()
                })?,
                Settle::None => {}
            }
            cell.measure_space(&mut work.interval)
        })
    }

    /// Marks the start of `name` and so the end of the previous interval. Returns the counters at
    /// that instant.
    fn boundary(
        &mut self,
        name: &str,
        measured: Option<bool>,
    ) -> Result<BTreeMap<String, Counters>> {
        let pause = if self.plan.after_unmount.is_empty() {
            QUIET_PAUSE
        } else {
            ARRAY_QUIET_PAUSE
        };
        let mut counters = self.settled_counters(pause)?;
        let timed = self
            .sync_times
            .as_mut()
            .map(SyncTimes::marked)
            .transpose()?;
        let timed = timed.unwrap_or_default();
        let take = |calls: &mut SyncCalls| calls.take(&timed);
        let calls = self.sync_calls.as_mut().map(take).transpose()?;
        let outside_calls = self.outside_sync_calls.as_mut().map(OutsideSyncs::take);
        let deadline = Instant::now() + QUIET_LIMIT;
        let (asked_ns, marked_ns) = loop {
            let asked_ns = monotonic_ns();
            let Some(control) = &self.control else {
                break (asked_ns, None);
            };
            let facts = Facts {
                measured,
                kernel: counters.clone(),
                sync_calls: calls.as_ref(),
                commit_s: self.plan.commit_s,
                virtual_ns: self.plan.is_emulated.then_some(asked_ns),
            };
            // At last, a mark is set whatever has arrived: if the counters differ for another
            // reason, the comparison with the recording names it.
            match control.mark(name, &facts, Instant::now() >= deadline)? {
                Marked::At(marked_ns) => break (asked_ns, marked_ns),
                // The file system itself reads in the background: ext4, after a mount, the bitmaps
                // of all groups (ext4lazyinit).
                Marked::Early => counters = self.settled_counters(pause)?,
            }
        };
        if let Some(sync_calls) = &mut self.sync_calls {
            sync_calls.marked(asked_ns, marked_ns);
        }
        if let Some(work) = self.pending.take() {
            let mut interval = work.interval;
            let none = Counters::default();
            let since = |(disk, now): (&String, &Counters)| {
                (
                    disk.clone(),
                    now.since(work.begin.get(disk).unwrap_or(&none)),
                )
            };
            interval.counters = counters.iter().map(since).collect();
            interval.settle_write_bytes = disks::written_since(work.settle.as_ref(), &counters);
            interval.unmount_write_bytes = disks::written_since(work.unmount.as_ref(), &counters);
            interval.sync_calls = calls.map(|calls| calls.count);
            interval.outside_sync_calls = outside_calls;
            emit(&Event::Interval(Box::new(interval)))?;
        }
        Ok(counters)
    }

    /// Returns the counters of the disks once no request is in flight.
    fn settled_counters(&self, pause: Duration) -> Result<BTreeMap<String, Counters>> {
        let (counters, restless) = quiet_counters(&self.disks, pause)?;
        match (restless, &self.control) {
            // The recording and the kernel's counters could not be compared.
            (Some(disk), Some(_)) => Err(CellError::new(
                Kind::LeftRunning,
                format!(
                    "disk {disk} is still busy {} s after {} had settled: background I/O is still \
                    running; it must finish before the step ends",
                    QUIET_LIMIT.as_secs(),
                    self.step,
                ),
            )),
            _ => Ok(counters),
        }
    }

    /// Runs one interval: sets its mark, does its work, and measures the resources used.
    fn interval(
        &mut self,
        name: &str,
        measured: bool,
        limit: Duration,
        run: impl FnOnce(&mut Self, &Watchdog, &mut Work) -> Result<()>,
    ) -> Result<()> {
        let is_first = self.step.is_empty();
        let counters = self.boundary(name, Some(measured))?;
        // Everything that reached a disk between attaching and the first mark belongs to the first
        // interval.
        let begin = if is_first { BTreeMap::new() } else { counters };
        self.step = name.to_owned();
        self.kernel_log.skip();
        // Discards the calls of mkfs and of the agent, which syncs the disks itself.
        self.sync_times.as_mut().map(SyncTimes::take).transpose()?;
        let watchdog = self.watchdog(name, limit)?;
        let mut work = Work {
            begin,
            ..Work::default()
        };
        if let Some(schedule) = &mut self.schedule {
            schedule.wait();
        }
        // The slow reading of other processes comes first and last, to keep it outside.
        self.cpu.begin()?;
        let usage_begin = Usage::read()?;
        let start = Instant::now();
        let result = run(self, &watchdog, &mut work);
        let end = Instant::now();
        if let Some(schedule) = &mut self.schedule {
            schedule.end();
        }
        let usage_end = Usage::read()?;
        let cpu = self.cpu.end()?;
        match (watchdog.failure(), result) {
            // The command ended by itself before the watchdog acted, so its own failure says more.
            (Some(failure), Err(error)) if failure.kind == Kind::LeftRunning => return Err(error),
            (Some(failure), _) => return Err(failure),
            (None, result) => result?,
        }
        drop(watchdog);
        let command_ended = work.command_ended.unwrap_or(end);
        let interval = &mut work.interval;
        interval.name = name.to_owned();
        interval.measured = measured;
        interval.wall_ns = nanoseconds(end - start);
        interval.command_ns = nanoseconds(command_ended - start);
        interval.settle_ns = nanoseconds(end - command_ended);
        interval.cpu_kernel_threads_ns = cpu.kernel_threads;
        interval.cpu_disk_server_ns = cpu.disk_server;
        usage_end.record(&usage_begin, work.own_ns, interval);
        self.pending = Some(work);
        Ok(())
    }

    /// Starts a watchdog that also watches the disk server.
    pub fn watchdog(&self, step: &str, limit: Duration) -> Result<Watchdog> {
        let server = self.control.as_ref().map(Control::try_clone).transpose()?;
        Watchdog::start(step, limit, server)
    }

    fn inspect(&mut self) -> Result<()> {
        for inspect in self.plan.inspect.clone() {
            let watchdog = self.watchdog(&inspect.name, LIMIT)?;
            let event = self.run_inspection(&inspect, &watchdog)?;
            if let Some(failure) = watchdog.failure() {
                return Err(failure);
            }
            emit(&event)?;
        }
        Ok(())
    }

    fn attach_file_system(&mut self) -> Result<()> {
        let filled = MountPlan {
            device: self.launcher.fill.fill(&self.plan.mount.device)?,
            options: self.launcher.fill.fill(&self.plan.mount.options)?,
            ..self.plan.mount.clone()
        };
        mount::mount(&filled, &self.launcher.dirs.fs)?;
        self.is_mounted = true;
        self.mounted = Some(MountInfo::of(&self.launcher.dirs.fs)?);
        Ok(())
    }

    fn start_background(&mut self) -> Result<()> {
        self.background = Background::start(&self.launcher, &self.plan.background)?;
        Ok(())
    }

    /// Unmounts, and waits until the file system can write no more.
    fn detach_file_system(&mut self) -> Result<()> {
        self.background.end()?;
        let dir = &self.launcher.dirs.fs;
        mount::unmount(dir)?;
        self.is_mounted = false;
        if self.plan.after_unmount.is_empty() {
            return mount::until_released(dir, self.disks.iter().map(|disk| disk.path.as_path()));
        }
        // A device between the file system and the disks may hold the disks; that is expected.
        let device = self.launcher.fill.fill(&self.plan.mount.device)?;
        mount::until_released(dir, [Path::new(&device)])
    }

    /// Waits after the last unmount until nothing can write to the disks.
    fn release_disks(&self, watchdog: &Watchdog) -> Result<()> {
        self.run_commands(&self.plan.after_unmount, "unmount", Kind::Unmount, watchdog)?;
        let disks = self.disks.iter().map(|disk| disk.path.as_path());
        mount::until_released(&self.launcher.dirs.fs, disks)
    }

    /// Fails if the workload has unmounted or remounted the file system under test, which makes the
    /// measurements meaningless.
    fn check_mount(&self) -> Result<()> {
        let dir = &self.launcher.dirs.fs;
        let Some(earlier) = &self.mounted else {
            return Ok(());
        };
        match MountInfo::of(dir) {
            Ok(now) => now.check_unchanged(earlier),
            Err(_) => {
                let message = format!(
                    "{} is not mounted any more: did the workload unmount it?",
                    dir.display()
                );
                Err(CellError::new(Kind::Unmount, message))
            }
        }
    }

    fn open_root(&self) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(&self.launcher.dirs.fs, flags, Mode::empty())
            .internal(|| "open the file system under test")
    }

    fn sync_file_system(&self) -> Result<()> {
        rustix::fs::syncfs(self.open_root()?).map_err(|error| {
            let kind = if error == rustix::io::Errno::NOSPC {
                Kind::DiskFull
            } else {
                Kind::Workload
            };
            CellError::new(kind, format!("syncfs after {}: {error}", self.step))
        })
    }

    fn drop_caches(&self) -> Result<()> {
        self.sync_file_system()?;
        // Written at offset 0: the kernel ignores writes at other offsets (sysctl_writes_strict).
        self.drop_caches
            .write_at(b"3", 0)
            .map(drop)
            .internal(|| "write /proc/sys/vm/drop_caches")
    }

    fn measure_space(&self, interval: &mut Interval) -> Result<()> {
        let stat = rustix::fs::fstatvfs(self.open_root()?).internal(|| "statvfs")?;
        let bytes = |blocks: u64| blocks * stat.f_frsize;
        let sizes = self
            .disks
            .iter()
            .map(|disk| crate::disks::size_bytes(&disk.kernel_name));
        let size = sizes.sum::<Result<u64>>()?;
        interval.space_used_bytes = Some(bytes(stat.f_blocks.saturating_sub(stat.f_bfree)));
        interval.space_taken_bytes = Some(size.saturating_sub(bytes(stat.f_bavail)));
        interval.space_overhead_bytes = Some(size.saturating_sub(bytes(stat.f_blocks)));
        interval.space_reserved_bytes = Some(bytes(stat.f_bfree.saturating_sub(stat.f_bavail)));
        let of_disk = |disk: &Disk| crate::btrfs_space::metadata_used_bytes(&disk.kernel_name);
        interval.metadata_used_bytes = self.disks.iter().find_map(of_disk);
        Ok(())
    }

    /// True if the file system under test is full: no free blocks, or no free inodes if it counts
    /// inodes.
    pub fn is_full(&self) -> bool {
        /// Free space below which a file system is considered full: file systems keep a small
        /// reserve.
        const AS_GOOD_AS_NONE: u64 = 256 * 1024;
        self.space()
            .is_some_and(|(free_bytes, has_inodes)| free_bytes < AS_GOOD_AS_NONE || !has_inodes)
    }

    /// Free bytes of the file system under test, and whether it can make another inode. `None` if
    /// it is not mounted.
    pub fn space(&self) -> Option<(u64, bool)> {
        let root = self.is_mounted.then(|| self.open_root())?.ok()?;
        let stat = rustix::fs::fstatvfs(root).ok()?;
        let has_inodes = stat.f_files == 0 || stat.f_ffree > 0;
        Some((stat.f_bavail.saturating_mul(stat.f_frsize), has_inodes))
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
