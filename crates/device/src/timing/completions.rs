//! Measurements of each reply: a file of 24 bytes a request, little-endian. A record holds the
//! request's number in the recording (marks not counted), the time at which the model completed it,
//! and the time at which its reply had been sent. Both times are in nanoseconds since the recording
//! began.

use super::queue::Part;
use fscost_recording::{Error, Result};
use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
};

/// The open file.
pub struct Completions {
    file: BufWriter<File>,
    path: PathBuf,
    failed: Option<io::Error>,
}

impl Completions {
    /// Create a file, which must not exist.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create_new(path).map_err(|error| Error::io("creating", path, error))?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 16, file),
            path: path.to_owned(),
            failed: None,
        })
    }

    /// Note a reply that was sent.
    pub fn note(&mut self, parts: &[Part], sent_ns: u64) {
        for part in parts {
            let words = [part.number, part.at_ns, sent_ns].map(u64::to_le_bytes);
            if let Err(error) = self.file.write_all(words.as_flattened()) {
                self.failed.get_or_insert(error);
            }
        }
    }

    /// Store the rest; returns the first failure, if any.
    pub fn finish(&mut self) -> Result<()> {
        let stored = self.failed.take().map_or_else(|| self.file.flush(), Err);
        stored.map_err(|error| Error::io("writing", &self.path, error))
    }
}
