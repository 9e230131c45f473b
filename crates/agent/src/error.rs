//! Failures of a cell: a kind that the runner acts on, a paragraph for people, and the cause.

use serde::Serialize;
use std::error::Error;

/// Value of `kind` in a `failed` event (`docs/cell-protocol.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A loop device or FUSE is not available.
    Attach,
    /// A command of `mkfs` failed.
    Mkfs,
    /// mount(2) or a command of `after_mount` failed.
    Mount,
    /// A step's command failed.
    Workload,
    /// A step timed out.
    Timeout,
    /// Processes of a step outlived it.
    LeftRunning,
    /// The file system under test is full.
    DiskFull,
    /// The disk that holds the recording is full.
    HostDiskFull,
    /// The recording has reached `--max-recording`.
    RecordingTooLarge,
    /// The disk server would need too much of the host's memory.
    HostMemory,
    /// The disk server died or reported a fatal error.
    DiskServer,
    /// The file system could not be unmounted.
    Unmount,
    /// The agent cannot run this plan.
    Plan,
    /// The runner asked the agent to end (SIGTERM, SIGINT).
    Interrupted,
    /// Anything else: a bug in fscost, or a host that lacks what every cell needs.
    Internal,
}

/// A failed cell.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CellError {
    /// Kind of failure, on which the runner acts.
    pub kind: Kind,
    /// Action that failed, and the remedy.
    pub message: String,
    /// Exit status of the command that failed.
    pub status: Option<i32>,
    /// Signal that ended the command.
    pub signal: Option<i32>,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// Result of everything that can fail a cell.
pub type Result<T> = std::result::Result<T, CellError>;

impl CellError {
    /// Creates a failure without an underlying error.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            signal: None,
            source: None,
        }
    }

    /// Returns the message followed by its causes, as one paragraph.
    pub fn paragraph(&self) -> String {
        let mut text = self.message.clone();
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

/// Adds a kind and a description of the failed action to an error.
pub trait Context<T> {
    /// Wraps the error; `doing` is called only if there is one.
    fn context<S: Into<String>>(self, kind: Kind, doing: impl FnOnce() -> S) -> Result<T>;

    /// Wraps an error that is a bug in fscost, or the fault of a host that lacks what every cell
    /// needs: [`Kind::Internal`].
    fn internal<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T>
    where
        Self: Sized,
    {
        self.context(Kind::Internal, doing)
    }
}

impl<T, E: Error + Send + Sync + 'static> Context<T> for std::result::Result<T, E> {
    fn context<S: Into<String>>(self, kind: Kind, doing: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|error| CellError {
            source: Some(Box::new(error)),
            ..CellError::new(kind, doing())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_names_what_was_done_and_the_cause() {
        let failed: std::io::Result<()> = Err(std::io::Error::from_raw_os_error(2));
        let error = failed
            .context(Kind::Attach, || "open /dev/loop-control")
            .unwrap_err();
        assert_eq!(
            error.paragraph(),
            "open /dev/loop-control: No such file or directory (os error 2)"
        );
        assert_eq!(error.kind, Kind::Attach);
    }

    #[test]
    fn kinds_are_spelled_as_the_protocol_does() {
        let spelled =
            serde_json::to_string(&[Kind::LeftRunning, Kind::HostDiskFull, Kind::DiskServer])
                .unwrap();
        assert_eq!(
            spelled,
            r#"["left-running","host-disk-full","disk-server"]"#
        );
    }
}
