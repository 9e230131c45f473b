//! The error type: the file, the position in it, and the cause.

use std::{
    borrow::Cow,
    fmt,
    path::{Path, PathBuf},
};

/// Class of an error, for code that handles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Opening or reading the file failed.
    Io,
    /// The file is not a trace, or has an unsupported format.
    Format,
    /// A line or record does not follow its format.
    Malformed,
    /// The trace has more requests than its reader can hold.
    TooLarge,
}

/// Position that an error refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A line of the decompressed text, counted from 1.
    Line(u64),
    /// A byte of the decompressed data, counted from 0.
    Byte(u64),
}

/// Error for a trace that cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}: {place}{cause}", .path.display())]
pub struct Error {
    /// Class of the error.
    pub kind: ErrorKind,
    /// File that was read.
    pub path: PathBuf,
    /// Position in the file.
    pub place: Place,
    /// Cause, and the remedy if there is one.
    pub cause: Cow<'static, str>,
}

/// A `Result` with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(
        kind: ErrorKind,
        path: &Path,
        place: Place,
        cause: impl Into<Cow<'static, str>>,
    ) -> Error {
        Error {
            kind,
            path: path.to_owned(),
            place,
            cause: cause.into(),
        }
    }

    pub(crate) fn malformed(path: &Path, place: Place, problem: Problem) -> Error {
        Error::new(ErrorKind::Malformed, path, place, problem)
    }

    pub(crate) fn format(path: &Path, cause: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Format, path, Place::File, cause)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File => Ok(()),
            Place::Line(number) => write!(f, "line {number}: "),
            Place::Byte(at) => write!(f, "byte {at}: "),
        }
    }
}

/// Cause of an error, before file and position are known.
pub(crate) type Problem = Cow<'static, str>;
