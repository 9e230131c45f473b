//! The error type: a kind to match on, the location, and the cause.

use std::{io, path::Path};

/// Kind of an error, for code that handles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Reading or writing the file failed.
    Io,
    /// The file system that holds the recording is full.
    HostDiskFull,
    /// The recording has reached its size limit.
    TooLarge,
    /// The operation would use too much of the host's memory.
    HostMemory,
    /// The file is not a recording, or has a version that this program does not support.
    Format,
    /// A checksum or field is wrong: the bytes differ from those written.
    Corrupt,
    /// The caller requested something that a recording cannot hold, such as a name that is too
    /// long, a disk that is too large, or an offset out of range.
    Invalid,
}

/// An error and where it occurred.
#[derive(Debug, thiserror::Error)]
#[error("{context}")]
pub struct Error {
    /// Kind of the error, to match on.
    pub kind: ErrorKind,
    /// Action that failed, with the file and the byte offset if relevant.
    pub context: String,
    #[source]
    source: Option<io::Error>,
}

/// A `Result` with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error that has no operating-system cause.
    pub fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        Self {
            kind,
            context: context.into(),
            source: None,
        }
    }

    pub(crate) fn corrupt(at_byte: u64, what: impl std::fmt::Display) -> Self {
        Self::new(ErrorKind::Corrupt, format!("at byte {at_byte}: {what}"))
    }

    pub(crate) fn io_at(at_byte: u64, source: io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("at byte {at_byte}: {source}"))
    }

    /// Creates an error for an impossible request, with the reason.
    pub fn invalid(why: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, why)
    }

    /// Creates an error for an operating-system failure while `doing` something to `path`.
    pub fn io(doing: &str, path: &Path, source: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let kind = match source.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => ErrorKind::HostDiskFull,
            _ => ErrorKind::Io,
        };
        Self {
            kind,
            context: format!("{doing} {}: {source}", path.display()),
            source: Some(source),
        }
    }

    /// Prefixes the error with the name of its file.
    pub fn in_file(mut self, path: &Path) -> Self {
        let name = path.display().to_string();
        let rest = self.context.strip_prefix(&name);
        let is_first = rest.is_some_and(|rest| rest.starts_with([':', ' ']));
        if !is_first && !self.context.contains(&format!(" {name}: ")) {
            self.context = format!("{name}: {}", self.context);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(context: &str, file: &str) -> String {
        Error::new(ErrorKind::Corrupt, context)
            .in_file(Path::new(file))
            .context
    }

    #[test]
    fn a_file_is_named_once_even_where_its_name_is_a_letter_of_the_message() {
        assert_eq!(
            named("at byte 302: a wrong sum", "r"),
            "r: at byte 302: a wrong sum"
        );
        assert_eq!(
            named("opening r: no such file", "r"),
            "opening r: no such file"
        );
        assert_eq!(
            named("r is not a regular file", "r"),
            "r is not a regular file"
        );
    }
}
