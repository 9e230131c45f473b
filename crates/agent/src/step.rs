//! The commands of a cell, in order: mkfs and after_mount, inspections, and the steps of the
//! workload.

use crate::cell::Cell;
use crate::child;
use crate::error::{CellError, Context, Kind, Result};
use crate::event::{Event, ProbeResult};
use crate::plan::{InspectPlan, StepPlan};
use crate::probe::Probe;
use crate::reap;
use crate::watchdog::Watchdog;
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::{Command, ExitStatus, Stdio};

/// Bytes of an inspection's output that are kept.
const INSPECTED_BYTES: usize = 64 * 1024;

impl Cell {
    /// Runs the commands of mkfs, after_mount or after_unmount.
    pub fn run_commands(
        &self,
        commands: &[Vec<String>],
        name: &str,
        kind: Kind,
        watchdog: &Watchdog,
    ) -> Result<()> {
        for argv in commands {
            let begin = self.launcher.log.announce(name);
            let status = self.run_to_end(&mut self.launcher.command(argv)?, kind, watchdog)?;
            if !status.success() {
                let what = format!("`{}`", self.launcher.fill.fill_all(argv)?.join(" "));
                let tail = self.launcher.log.tail(begin);
                return Err(child::failure(kind, &what, status, &tail));
            }
        }
        Ok(())
    }

    /// Runs a command whose output is a fact about the cell. A failure is a fact too.
    pub fn run_inspection(&self, inspect: &InspectPlan, watchdog: &Watchdog) -> Result<Event> {
        self.launcher.log.announce(&inspect.name);
        let memory =
            rustix::fs::memfd_create("inspect", MemfdFlags::CLOEXEC).internal(|| "memfd_create")?;
        let output = File::from(memory);
        let theirs = output.try_clone().internal(|| "duplicate a descriptor")?;
        let mut command = self.launcher.command(&inspect.command)?;
        command.stdout(Stdio::from(theirs));
        let (status, output) = match self.run_to_end(&mut command, Kind::Internal, watchdog) {
            Ok(status) => (status.code(), text_of(&output)?),
            Err(error) => (None, error.paragraph()),
        };
        Ok(Event::Inspected {
            name: inspect.name.clone(),
            output,
            status,
        })
    }

    /// Runs the command of a step, with its probe.
    pub fn run_workload(
        &self,
        step: &StepPlan,
        watchdog: &Watchdog,
    ) -> Result<Option<ProbeResult>> {
        let begin = self.launcher.log.announce(&step.name);
        let mut command = self.launcher.shell(&step.shell, &step.env)?;
        let dir = &self.launcher.dirs.fs;
        let probe = step
            .probe_interval_ms
            .map(|interval_ms| Probe::start(dir, interval_ms))
            .transpose()?;
        let status = self.run_to_end(&mut command, Kind::Workload, watchdog);
        // Ended in any case, because its directory would keep the file system busy.
        let pauses = probe.and_then(Probe::end);
        let status = status?;
        if status.success() {
            Ok(pauses)
        } else {
            Err(self.workload_failure(step, status, begin))
        }
    }

    /// Runs a command until it and all its descendants have ended; background programs may keep
    /// running. Fails with `kind` if the command cannot be started.
    fn run_to_end(
        &self,
        command: &mut Command,
        kind: Kind,
        watchdog: &Watchdog,
    ) -> Result<ExitStatus> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command
            .spawn()
            .context(kind, || format!("{program} could not be started"))?;
        let status = reap::until_ended(child.id(), |is_stopped| {
            watchdog.command_stopped(is_stopped);
        })?;
        watchdog.command_ended();
        if self.background.is_empty() {
            reap::until_alone()?;
        } else {
            reap::until(|| self.background.is_all());
        }
        watchdog.command_gone();
        Ok(status)
    }

    fn workload_failure(&self, step: &StepPlan, status: ExitStatus, begin: u64) -> CellError {
        let tail = self.launcher.log.tail(begin);
        let is_full = self.is_full();
        let kind = if is_full {
            Kind::DiskFull
        } else {
            Kind::Workload
        };
        let mut error = child::failure(kind, &format!("step {}", step.name), status, &tail);
        if is_full {
            error.message.push_str(
                "; the file system under test is full: raise --size, or \
                give the step less to write",
            );
        } else if tail.contains("No space left on device") {
            let free_mib = self.space().map_or(0, |(free_bytes, _)| free_bytes >> 20);
            error.message.push_str(&format!(
                "; the file system under test has {free_mib} MiB of space now: if the step needs \
                 more, raise --size; else look at TMPDIR, a RAM disk in guests, and at limits of \
                 the kernel",
            ));
        }
        error
    }
}

fn text_of(file: &File) -> Result<String> {
    let mut bytes = vec![0; INSPECTED_BYTES];
    let length = file
        .read_at(&mut bytes, 0)
        .internal(|| "read an inspection's output")?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}
