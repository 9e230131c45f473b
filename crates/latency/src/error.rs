//! Errors of model files.

/// A model file that cannot be used. The message names file, field, cause and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct Error {
    /// File that was read.
    pub file: String,
    /// Field, cause and remedy.
    pub what: String,
}

impl Error {
    pub(crate) fn of_file(file: &str, what: impl Into<String>) -> Error {
        Error {
            file: file.to_owned(),
            what: what.into(),
        }
    }

    pub(crate) fn of_field(file: &str, field: &str, what: &str) -> Error {
        Error::of_file(file, format!("latency.{field}: {what}"))
    }
}
