//! File access by path: new files that cannot be replaced by a link, and regular files to read.

use crate::{Error, ErrorKind, Result};
use rustix::fs::{Mode, OFlags};
use std::{
    fs::{File, OpenOptions},
    io,
    os::{fd::AsRawFd as _, unix::fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// An empty file to fill, with its name for errors. Only its owner may read it, because recordings
/// hold the contents of files.
#[derive(Debug)]
pub struct Output {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
}

impl Output {
    /// Creates a file. Fails if anything has that name, even a link (`O_EXCL`, open(2)).
    pub fn create(path: &Path) -> Result<Output> {
        let mut options = OpenOptions::new();
        options.create_new(true).mode(0o600);
        Output::open(options, path, path, "creating")
    }

    /// Opens the file behind a descriptor of this process. The holder of the descriptor names the
    /// file `path` once it is complete.
    pub fn of_descriptor(number: i32, path: &Path) -> Result<Output> {
        let descriptor = own_descriptor(number);
        Output::open(OpenOptions::new(), descriptor.as_ref(), path, "opening")
    }

    fn open(mut options: OpenOptions, at: &Path, name: &Path, doing: &str) -> Result<Output> {
        let opened = options.read(true).write(true).open(at);
        Ok(Output {
            file: opened.map_err(|e| Error::io(doing, name, e))?,
            path: name.to_owned(),
        })
    }

    /// Returns the file itself.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Opens a regular file for reading. The type is checked before opening: opening a FIFO would
/// block, and some devices act as soon as they are opened (a watchdog).
pub fn open_regular(path: &Path) -> Result<File> {
    let failed = |e: io::Error| Error::io("opening", path, e);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let named = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| failed(e.into()))?;
    let named = File::from(named);
    if !named.metadata().map_err(failed)?.is_file() {
        return Err(Error::new(
            ErrorKind::Format,
            format!("{} is not a regular file", path.display()),
        ));
    }
    File::open(own_descriptor(named.as_raw_fd())).map_err(failed)
}

fn own_descriptor(number: i32) -> String {
    format!("/proc/self/fd/{number}")
}
