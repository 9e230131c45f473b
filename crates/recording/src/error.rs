//! One error type: a small kind to match on, the place, and the cause.

use std::{io, path::Path};

/// What went wrong, for code that decides on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Reading or writing the file failed.
    Io,
    /// The file system that holds the recording is full.
    HostDiskFull,
    /// The recording has reached the size that it was limited to.
    TooLarge,
    /// The program would take too much of the host's memory.
    HostMemory,
    /// Not a recording, or a version that this program does not read.
    Format,
    /// A checksum or a field is wrong: the bytes are not what was written.
    Corrupt,
    /// The caller asked for something that the recording cannot hold (a name too long, a disk too
    /// large, an offset outside).
    Invalid,
}

/// An error with where it happened.
#[derive(Debug, thiserror::Error)]
#[error("{context}")]
pub struct Error {
    /// To match on.
    pub kind: ErrorKind,
    /// What was being done, with the file and the byte where that matters.
    pub context: String,
    #[source]
    source: Option<io::Error>,
}

/// `Result` with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error without a cause of the operating system's.
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

    /// What was asked for cannot be done, and why.
    pub fn invalid(why: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, why)
    }

    /// A failure of the operating system while `doing` something to `path`.
    pub fn io(doing: &str, path: &Path, source: io::Error) -> Self {
        let full = matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        );
        let kind = if full {
            ErrorKind::HostDiskFull
        } else {
            ErrorKind::Io
        };
        Self {
            kind,
            context: format!("{doing} {}: {source}", path.display()),
            source: Some(source),
        }
    }

    /// The same error, with the file it is about named first.
    pub fn in_file(mut self, path: &Path) -> Self {
        let name = path.display().to_string();
        let is_first = self
            .context
            .strip_prefix(&name)
            .is_some_and(|rest| rest.starts_with([':', ' ']));
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
