//! `fscost-agent init`: pid 1 of the cell's PID namespace, and the only process that mounts
//! anything.

use crate::background::Background;
use crate::cell::Cell;
use crate::child::{Launcher, Log};
use crate::control::Control;
use crate::cpu::CpuMeter;
use crate::disks;
use crate::error::{CellError, Context, Kind, Result};
use crate::event::{Event, Failed, emit};
use crate::handoff::{Handoff, adopt};
use crate::klog::KernelLog;
use crate::namespace::Kept;
use crate::plan::{DiskPlan, Placeholders, Plan};
use crate::schedule::Schedule;
use crate::sync_calls::{OutsideSyncs, SyncCalls, SyncTimes};
use crate::{namespace, reap, sandbox};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Time limit for cleaning up a failed cell; the end of this process cleans up the rest.
const TIDY_LIMIT: Duration = Duration::from_secs(3);

/// Entry point of the process.
pub fn main() -> ExitCode {
    match prepare() {
        Ok(cell) => run(cell),
        Err(error) => {
            report("", &error, Vec::new());
            ExitCode::FAILURE
        }
    }
}

fn run(mut cell: Cell) -> ExitCode {
    let result = cell
        .run()
        .and_then(|recording| emit(&Event::Done { recording }));
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    let error = root_cause(error, cell.control.as_ref());
    let devices: Vec<String> = cell
        .disks
        .iter()
        .map(|disk| disk.kernel_name.clone())
        .collect();
    let kernel = cell.kernel_log.lines_about(&devices);
    report(&cell.step, &error, kernel);
    tidy(&mut cell);
    ExitCode::FAILURE
}

/// Returns the root cause of a failure. A failing disk makes everything else fail, so an error that
/// the server reports takes precedence.
fn root_cause(error: CellError, control: Option<&Control>) -> CellError {
    let may_be_the_disk = !matches!(
        error.kind,
        Kind::HostDiskFull | Kind::RecordingTooLarge | Kind::HostMemory | Kind::Plan
    );
    let Some(trouble) = control
        .filter(|_| may_be_the_disk)
        .and_then(Control::trouble)
    else {
        return error;
    };
    let is_cause = matches!(
        trouble.kind,
        Kind::HostDiskFull | Kind::RecordingTooLarge | Kind::HostMemory
    );
    let (noticed, told) = (error.paragraph(), trouble.paragraph());
    let message = if is_cause {
        format!("{told} (first seen as: {noticed})")
    } else if noticed == told {
        told
    } else {
        format!("{noticed}: {told}")
    };
    CellError::new(trouble.kind, message)
}

fn report(step: &str, error: &CellError, kernel: Vec<String>) {
    // If this write fails, `supervisor` has died, and this process is about to.
    let _ = emit(&Event::Failed(Failed::new(step, error, kernel)));
}

/// Unmounts while the disk is still served; otherwise the kernel logs write errors when this
/// process ends.
fn tidy(cell: &mut Cell) {
    let deadline = Instant::now() + TIDY_LIMIT;
    while reap::kill_all().is_ok() && !reap::is_alone() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    if cell.is_mounted && reap::is_alone() {
        // On error, the end of the process unmounts too.
        let _ = rustix::mount::unmount(
            &cell.launcher.dirs.fs,
            rustix::mount::UnmountFlags::NOFOLLOW,
        );
    }
    cell.disks.clear();
}

fn prepare() -> Result<Cell> {
    let kernel_log = KernelLog::open();
    sandbox::offer_to_oom_killer();
    set_parent_process_death_signal(Some(Signal::KILL))
        .internal(|| "set the parent-death signal")?;
    if std::process::id() != 1 {
        return Err(CellError::new(
            Kind::Internal,
            "`fscost-agent init` is started by `fscost-agent run` only",
        ));
    }
    require_supervisor()?;
    let handoff = Handoff::from_stdin()?;
    let control = handoff.control_fd.map(adopt).transpose()?.map(Control::new);
    let built = build(handoff, control.as_ref(), kernel_log);
    let mut cell = built.map_err(|error| root_cause(error, control.as_ref()))?;
    cell.control = control;
    Ok(cell)
}

/// Returns a listener, unless it could not be started. That does not fail the cell: its values are
/// null, and the log says why.
fn listening<T>(started: Result<T>, failure: &str, log: &Log) -> Option<T> {
    started
        .inspect_err(|error| {
            log.announce(&format!("{failure}: {}", error.paragraph()));
        })
        .ok()
}

type Listeners = (Option<SyncCalls>, Option<OutsideSyncs>, Option<SyncTimes>);

/// Starts the listeners of the plan.
fn listeners(plan: &Plan, log: &Log) -> Listeners {
    let own = match &plan.sync_tracepoints[..] {
        [] => None,
        names => listening(SyncCalls::listen(names), "sync calls are not counted", log),
    };
    let outside = match &plan.outside_sync_calls[..] {
        [] => None,
        names => listening(
            OutsideSyncs::listen(names),
            "sync calls of other programs are not counted",
            log,
        ),
    };
    let times = listening(SyncTimes::listen(), "fsync is not timed", log);
    (own, outside, times)
}

/// Builds the cell, without its control channel.
fn build(handoff: Handoff, control: Option<&Control>, kernel_log: KernelLog) -> Result<Cell> {
    let Handoff { plan, cpu_fd, .. } = handoff;
    let cpu = CpuMeter::new(adopt(cpu_fd)?);
    let log = Log::of_init()?;
    // Opened through the host's own mounts: a file open for writing would prevent a mount of the
    // cell from becoming read-only.
    let backings = disks::open_backings(&plan)?;
    namespace::leave_host(plan.has_network)?;
    if !plan.has_network {
        sandbox::bring_loopback_up()?;
    }
    let kept = Kept::open(plan.input.as_deref(), &plan.writable)?;
    let dirs = namespace::build(&plan.base, kept)?;
    sandbox::limit_processes()?;
    let drop_caches = namespace::protect_settings()?;
    let names: Vec<&str> = plan
        .disks
        .iter()
        .filter(|disk| disk.is_served())
        .map(|disk: &DiskPlan| disk.name.as_str())
        .collect();
    // The descriptor of the server's mount must be closed once the disks are attached.
    let served = control
        .map(|control| control.ready(&names))
        .transpose()
        .map(Option::flatten)
        .map_err(|mut error| {
            // Only the server can have written to the log so far, so the end of the log is the
            // server's message.
            error
                .message
                .push_str(&format!("; the end of the log: {}", log.tail(0)));
            error
        })?;
    let disks = disks::attach(&plan, backings, served)?;
    sandbox::mask_devices(&disks.iter().map(|disk| disk.kernel_name.clone()).collect())?;
    let paths = disks
        .iter()
        .map(|disk| (disk.name.clone(), disk.path.to_string_lossy().into_owned()))
        .collect();
    let (sync_calls, outside_sync_calls, sync_times) = listeners(&plan, &log);
    Ok(Cell {
        sync_calls,
        outside_sync_calls,
        sync_times,
        schedule: plan.is_emulated.then(Schedule::default),
        launcher: Launcher {
            owns_kernel: plan.owns_kernel,
            fill: Placeholders::new(&plan, paths),
            dirs,
            log,
        },
        plan,
        disks,
        control: None,
        cpu,
        drop_caches,
        kernel_log,
        step: String::new(),
        mounted: None,
        is_mounted: false,
        background: Background::default(),
        pending: None,
    })
}

/// Fails if `supervisor` died before this process could ask to die with it. The pid of `supervisor`
/// cannot be checked from another PID namespace. But `supervisor` reads our events, and a dying
/// process closes its files before its children get their signal (kernel/exit.c, `do_exit`).
fn require_supervisor() -> Result<()> {
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).internal(|| "check that the agent is alive")?;
    if fds[0].revents().contains(PollFlags::ERR) {
        return Err(CellError::new(Kind::Internal, "the agent has died"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_server_the_error_stays() {
        let error = root_cause(CellError::new(Kind::Workload, "bad"), None);
        assert_eq!(
            (error.kind, error.message.as_str()),
            (Kind::Workload, "bad")
        );
    }
}
