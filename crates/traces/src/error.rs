//! One error type: the file, the place in it, and the cause.

use std::{
    borrow::Cow,
    fmt,
    path::{Path, PathBuf},
};

/// The class of an error, for code that decides on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Opening or reading the file failed.
    Io,
    /// The file is not a trace, or not one that can be read.
    Format,
    /// A line or record does not follow its format.
    Malformed,
}

/// The place that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A line of the decompressed text, counted from 1.
    Line(u64),
    /// A byte of the decompressed data, counted from 0.
    Byte(u64),
}

/// A trace that cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}: {place}{cause}", .path.display())]
pub struct Error {
    /// Class.
    pub kind: ErrorKind,
    /// File.
    pub path: PathBuf,
    /// Place in the file.
    pub place: Place,
    /// Cause, and the remedy where there is one.
    pub cause: Cow<'static, str>,
}

/// `Result` with [`Error`].
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

/// The cause of an error, before file and place are known.
pub(crate) type Problem = Cow<'static, str>;
