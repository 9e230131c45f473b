//! One cell from the first mark to the last: intervals, and what is measured in each.

use crate::background::Background;
use crate::child::Launcher;
use crate::control::Control;
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
use crate::sync_calls::{SyncCalls, SyncTimes, monotonic_ns};
use crate::usage::{Usage, thread_cpu_ns};
use crate::watchdog::Watchdog;
use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Limit of mkfs, of mounting, and of each inspection.
const LIMIT: Duration = Duration::from_secs(900);

/// A cell that is running.
#[derive(Debug)]
pub struct Cell {
    /// What to do.
    pub plan: Plan,
    /// Starts its commands.
    pub launcher: Launcher,
    /// Its disks.
    pub disks: Vec<Disk>,
    /// The disk server.
    pub control: Option<Control>,
    /// Tells CPU times.
    pub cpu: CpuMeter,
    /// `/proc/sys/vm/drop_caches`, which the workload cannot write.
    pub drop_caches: OwnedFd,
    /// The workload's calls for durability, where they can be heard.
    pub sync_calls: Option<SyncCalls>,
    /// How long they take, where that can be timed.
    pub sync_times: Option<SyncTimes>,
    /// The kernel log.
    pub kernel_log: KernelLog,
    /// The interval under way; empty before the first.
    pub step: String,
    /// The file system as it was mounted last.
    pub mounted: Option<MountInfo>,
    /// Whether the file system is mounted.
    pub is_mounted: bool,
    /// What runs while it is.
    pub background: Background,
    /// When intervals begin in an emulated machine.
    pub schedule: Option<Schedule>,
    /// An interval that is over but for its counters, which are read when the next begins.
    pub pending: Option<Pending>,
}

/// An interval and the counters at its begin.
#[derive(Debug)]
pub struct Pending {
    interval: Interval,
    begin: BTreeMap<String, Counters>,
    settle: Option<disks::Written>,
    unmount: Option<disks::Written>,
}

/// What an interval's work tells.
#[derive(Debug, Default)]
pub struct Work {
    /// When the command and its descendants were gone.
    pub command_ended: Option<Instant>,
    /// CPU time of `init` itself that belongs to the interval.
    pub own_ns: u64,
    /// Space and pauses.
    pub interval: Interval,
    /// What the disks had received when the command was over.
    pub settle: Option<disks::Written>,
    /// What they had received when the unmount began.
    pub unmount: Option<disks::Written>,
}

impl Work {
    /// Does something whose CPU time in this thread belongs to the interval.
    pub fn own<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begin = thread_cpu_ns();
        let result = work();
        self.own_ns += thread_cpu_ns().saturating_sub(begin);
        result
    }
}

impl Cell {
    /// Runs the cell; gives the disk server's totals.
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
        // Detaches the loop devices before the server ends: it must not be asked anything after.
        self.disks.clear();
        match self.control.take() {
            Some(control) => control.finish(),
            None => Ok(Value::Null),
        }
    }

    fn format(&mut self) -> Result<()> {
        let commands = self.plan.mkfs.clone();
        self.interval("mkfs", false, LIMIT, |cell, watchdog, work| {
            for argv in &commands {
                cell.run_command(argv, "mkfs", Kind::Mkfs, watchdog)?;
            }
            work.command_ended = Some(Instant::now());
            work.own(|| cell.disks.iter().try_for_each(Disk::sync))
        })
    }

    fn mount(&mut self) -> Result<()> {
        let commands = self.plan.after_mount.clone();
        self.interval("mount", false, LIMIT, |cell, watchdog, work| {
            work.own(|| cell.attach_file_system())?;
            if let Some(mounted) = &cell.mounted {
                emit(&Event::Mounted(mounted.clone()))?;
            }
            for argv in &commands {
                cell.run_command(argv, "mount", Kind::Mount, watchdog)?;
            }
            cell.start_background()?;
            work.command_ended = Some(Instant::now());
            work.own(|| cell.sync_file_system())?;
            cell.measure_space(&mut work.interval)
        })
    }

    fn run_step(&mut self, step: &StepPlan, is_last: bool) -> Result<()> {
        let limit = Duration::from_secs(step.timeout_s);
        if step.drop_caches {
            // Before the mark: what this writes, earlier steps have dirtied.
            let _watchdog = self.watchdog(&step.name, limit)?;
            self.drop_caches()?;
        }
        self.interval(&step.name, step.measured, limit, |cell, watchdog, work| {
            work.interval.probe = cell.run_workload(step, watchdog)?;
            work.interval.sync_times_ns =
                cell.sync_times.as_mut().map(SyncTimes::take).transpose()?;
            if let Some(failure) = watchdog.failure() {
                // It has killed the programs of the background too: that they ended says less.
                return Err(failure);
            }
            work.command_ended = Some(Instant::now());
            work.settle = Some(disks::written(&cell.disks)?);
            cell.check_mount()?;
            if is_last {
                // The same that unmounting begins with; only so the space in use is known exactly.
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

    /// Marks the begin of `name`, which is the end of the interval before; gives the counters of
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
        let (counters, restless) = quiet_counters(&self.disks, pause)?;
        if let (Some(disk), Some(_)) = (restless, &self.control) {
            // Its recording and the kernel's counters could not be compared.
            return Err(CellError::new(
                Kind::LeftRunning,
                format!(
                    "{} s after {} had settled, disk {disk} is still busy: something in the background goes on, and must end with the step",
                    QUIET_LIMIT.as_secs(),
                    self.step,
                ),
            ));
        }
        let calls = self.sync_calls.as_mut().map(SyncCalls::take).transpose()?;
        let asked_ns = monotonic_ns();
        let marked_ns = match &self.control {
            Some(control) => control.mark(
                name,
                measured,
                &counters,
                calls.as_ref(),
                self.plan.commit_s,
            )?,
            None => None,
        };
        if let Some(sync_calls) = &mut self.sync_calls {
            sync_calls.marked(asked_ns, marked_ns);
        }
        if let Some(Pending {
            mut interval,
            begin,
            settle,
            unmount,
        }) = self.pending.take()
        {
            let none = Counters::default();
            let since = |(disk, now): (&String, &Counters)| {
                (disk.clone(), now.since(begin.get(disk).unwrap_or(&none)))
            };
            interval.counters = counters.iter().map(since).collect();
            interval.settle_write_bytes = disks::written_since(settle.as_ref(), &counters);
            interval.unmount_write_bytes = disks::written_since(unmount.as_ref(), &counters);
            interval.sync_calls = calls.map(|calls| calls.count);
            emit(&Event::Interval(Box::new(interval)))?;
        }
        Ok(counters)
    }

    /// One interval: its mark, its work, and what that used.
    fn interval(
        &mut self,
        name: &str,
        measured: bool,
        limit: Duration,
        run: impl FnOnce(&mut Self, &Watchdog, &mut Work) -> Result<()>,
    ) -> Result<()> {
        let is_first = self.step.is_empty();
        let counters = self.boundary(name, Some(measured))?;
        // Whatever reached a disk between attaching and the first mark belongs to the first
        // interval.
        let begin = if is_first { BTreeMap::new() } else { counters };
        self.step = name.to_owned();
        self.kernel_log.skip();
        // Those of mkfs and of the agent, which syncs the disks itself.
        self.sync_times.as_mut().map(SyncTimes::take).transpose()?;
        let watchdog = self.watchdog(name, limit)?;
        let mut work = Work::default();
        if let Some(schedule) = &mut self.schedule {
            schedule.wait();
        }
        let usage_begin = Usage::begin(&self.cpu)?;
        let start = Instant::now();
        let result = run(self, &watchdog, &mut work);
        let end = Instant::now();
        if let Some(schedule) = &mut self.schedule {
            schedule.end();
        }
        let usage_end = Usage::end(&self.cpu)?;
        match (watchdog.failure(), result) {
            // The command had ended by itself before the watchdog acted: how it failed says more.
            (Some(failure), Err(error)) if failure.kind == Kind::LeftRunning => return Err(error),
            (Some(failure), _) => return Err(failure),
            (None, result) => result?,
        }
        drop(watchdog);
        let command_ended = work.command_ended.unwrap_or(end);
        let mut interval = work.interval;
        interval.name = name.to_owned();
        interval.measured = measured;
        interval.wall_ns = nanoseconds(end - start);
        interval.command_ns = nanoseconds(command_ended - start);
        interval.settle_ns = nanoseconds(end - command_ended);
        usage_end.record(&usage_begin, work.own_ns, &mut interval);
        self.pending = Some(Pending {
            interval,
            begin,
            settle: work.settle,
            unmount: work.unmount,
        });
        Ok(())
    }

    /// A watchdog that also watches the disk server.
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

    /// Unmounts, and waits until the file system cannot write any more.
    fn detach_file_system(&mut self) -> Result<()> {
        self.background.end()?;
        let dir = &self.launcher.dirs.fs;
        mount::unmount(dir)?;
        self.is_mounted = false;
        if self.plan.after_unmount.is_empty() {
            return mount::until_released(dir, self.disks.iter().map(|disk| disk.path.as_path()));
        }
        // Something between the file system and the disks holds these, as it should.
        let device = self.launcher.fill.fill(&self.plan.mount.device)?;
        mount::until_released(dir, [Path::new(&device)])
    }

    /// After the last unmount: nothing can write to the disks any more.
    fn release_disks(&self, watchdog: &Watchdog) -> Result<()> {
        for argv in &self.plan.after_unmount {
            self.run_command(argv, "unmount", Kind::Unmount, watchdog)?;
        }
        let disks = self.disks.iter().map(|disk| disk.path.as_path());
        mount::until_released(&self.launcher.dirs.fs, disks)
    }

    /// A workload that unmounts or remounts the file system under test makes what is measured
    /// meaningless.
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
            .context(Kind::Internal, || "open the file system under test")
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
        // At the begin of the file: the kernel ignores what is written elsewhere
        // (sysctl_writes_strict).
        rustix::io::pwrite(&self.drop_caches, b"3", 0)
            .map(drop)
            .context(Kind::Internal, || "write /proc/sys/vm/drop_caches")
    }

    fn measure_space(&self, interval: &mut Interval) -> Result<()> {
        let stat = rustix::fs::fstatvfs(self.open_root()?).context(Kind::Internal, || "statvfs")?;
        interval.space_used_bytes =
            Some(stat.f_blocks.saturating_sub(stat.f_bfree) * stat.f_frsize);
        let of_disk = |disk: &Disk| crate::btrfs_space::metadata_used_bytes(&disk.kernel_name);
        interval.metadata_used_bytes = self.disks.iter().find_map(of_disk);
        Ok(())
    }

    /// Whether the file system under test has no room: no block, or no inode where they are
    /// counted.
    pub fn is_full(&self) -> bool {
        /// Less than this is as good as none: file systems keep a little for themselves.
        const AS_GOOD_AS_NONE: u64 = 256 * 1024;
        if !self.is_mounted {
            return false;
        }
        let Ok(Ok(stat)) = self.open_root().map(rustix::fs::fstatvfs) else {
            return false;
        };
        stat.f_bavail * stat.f_frsize < AS_GOOD_AS_NONE || (stat.f_files > 0 && stat.f_ffree == 0)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
