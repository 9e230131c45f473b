//! Commands of a cell: environment, output, and exit status.

use crate::error::{CellError, Context, Kind, Result};
use crate::namespace::Directories;
use crate::plan::Placeholders;
use crate::process::describe;
use crate::sandbox;
use crate::step_filter::StepFilter;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Search path of programs if the runner has no PATH.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Bytes of a failed command's output that the error message quotes.
const TAIL_BYTES: u64 = 2048;
const TAIL_LINES: usize = 20;

/// Log file that receives all output.
#[derive(Debug)]
pub struct Log {
    file: File,
}

impl Log {
    /// Returns the log, which is standard error of `init`: it was opened while the host's
    /// directories were still visible.
    pub fn of_init() -> Result<Self> {
        let fd = std::io::stderr()
            .as_fd()
            .try_clone_to_owned()
            .internal(|| "duplicate the log")?;
        Ok(Self {
            file: File::from(fd),
        })
    }

    /// Announces a command; returns the offset at which its output begins.
    pub fn announce(&self, name: &str) -> u64 {
        // A full host disk must not fail the cell because of its log.
        let _ = writeln!(&self.file, "=== {name}");
        self.file.metadata().map_or(0, |meta| meta.len())
    }

    /// Returns the last lines written since `begin`.
    pub fn tail(&self, begin: u64) -> String {
        let end = self.file.metadata().map_or(0, |meta| meta.len());
        let from = begin.max(end.saturating_sub(TAIL_BYTES));
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(from)).unwrap_or(0)];
        let length = self.file.read_at(&mut bytes, from).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
            .collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    fn stdio(&self) -> Result<Stdio> {
        let file = self.file.try_clone().internal(|| "duplicate the log")?;
        Ok(file.into())
    }
}

/// Starts commands.
#[derive(Debug)]
pub struct Launcher {
    /// Values of the placeholders.
    pub fill: Placeholders,
    /// Directories of the cell.
    pub dirs: Directories,
    /// Receives the output.
    pub log: Log,
    /// True if the kernel runs for this cell alone.
    pub owns_kernel: bool,
}

impl Launcher {
    /// Builds a command of mkfs, after_mount or inspect.
    pub fn command(&self, argv: &[String]) -> Result<Command> {
        let words = self.fill.fill_all(argv)?;
        let (program, rest) = words
            .split_first()
            .ok_or_else(|| CellError::new(Kind::Plan, "an empty command"))?;
        let mut command = self.prepare(program, &self.dirs.scratch)?;
        command.args(rest);
        Ok(command)
    }

    /// Builds the command of a step, with the file system under test as working directory.
    pub fn shell(&self, shell: &str, env: &BTreeMap<String, String>) -> Result<Command> {
        let mut command = self.prepare("/bin/sh", &self.dirs.fs)?;
        command.arg("-c").arg(self.fill.fill(shell)?);
        for (name, value) in env {
            command.env(name, self.fill.fill(value)?);
        }
        let owns_kernel = self.owns_kernel;
        let filter = match owns_kernel {
            true => None,
            false => Some(StepFilter::new()?),
        };
        let confine = move || {
            sandbox::drop_capabilities(owns_kernel)?;
            filter.as_ref().map_or(Ok(()), StepFilter::enter)
        };
        // SAFETY: prctl, capget, capset, keyctl and seccomp only; nothing is allocated and no lock
        // is taken.
        unsafe { command.pre_exec(confine) };
        Ok(command)
    }

    fn prepare(&self, program: &str, cwd: &Path) -> Result<Command> {
        let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
        let mut command = Command::new(program);
        command
            .current_dir(cwd)
            .env_clear()
            .env("PATH", path)
            .env("LC_ALL", "C")
            .env("TMPDIR", &self.dirs.scratch)
            .env("HOME", &self.dirs.scratch)
            .stdin(Stdio::null())
            .stdout(self.log.stdio()?)
            .stderr(self.log.stdio()?);
        // SAFETY: setsid is one system call, and touches no memory.
        unsafe { command.pre_exec(|| rustix::process::setsid().map(drop).map_err(Into::into)) };
        Ok(command)
    }
}

/// Describes a command that did not end successfully as an error.
pub fn failure(kind: Kind, what: &str, status: ExitStatus, tail: &str) -> CellError {
    let how = describe(status);
    let said = if tail.is_empty() {
        ", with no output".to_owned()
    } else {
        format!("; last output: {tail}")
    };
    let mut error = CellError::new(kind, format!("{what} {how}{said}"));
    error.status = status.code();
    error.signal = status.signal();
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_begins_where_the_command_began() {
        let mut log = Log {
            file: tempfile::tempfile().unwrap(),
        };
        log.file.write_all(b"of another command\n").unwrap();
        let begin = log.announce("step");
        assert_eq!(log.tail(begin), "");
        for line in 0..100 {
            writeln!(log.file, "line {line}\n").unwrap();
        }
        let tail = log.tail(begin);
        assert!(
            tail.starts_with("line 80\n") && tail.ends_with("line 99"),
            "{tail}"
        );
    }

    #[test]
    fn a_failure_says_how_and_what() {
        let failed = failure(
            Kind::Workload,
            "step a",
            ExitStatus::from_raw(3 << 8),
            "oh no",
        );
        assert_eq!(
            failed.message,
            "step a exited with status 3; last output: oh no"
        );
        let killed = failure(Kind::Mkfs, "mkfs", ExitStatus::from_raw(9), "");
        assert_eq!(
            (killed.signal, killed.message.as_str()),
            (Some(9), "mkfs was killed by signal 9, with no output")
        );
    }
}
