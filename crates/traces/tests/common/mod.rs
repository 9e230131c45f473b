//! Files for tests, and what is read from them.
#![allow(dead_code, reason = "each test binary uses a part")]

use fscost_traces::{Error, Format, Kind, Request, Trace};
use std::{
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

pub fn gunzip(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).expect("a fixture");
    flate2::read::GzDecoder::new(file)
        .read_to_end(&mut bytes)
        .expect("gzip data");
    bytes
}

/// A file of these bytes, in a folder that is removed at the end.
pub struct File {
    folder: tempfile::TempDir,
    name: String,
}

impl File {
    pub fn new(bytes: impl AsRef<[u8]>) -> File {
        File::named("trace", bytes)
    }

    pub fn named(name: &str, bytes: impl AsRef<[u8]>) -> File {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut file = std::fs::File::create(folder.path().join(name)).expect("a new file");
        file.write_all(bytes.as_ref()).expect("space");
        File {
            folder,
            name: name.to_owned(),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }
}

/// All requests, and the names of the disks.
pub fn read(path: &Path, format: Option<Format>) -> Result<(Vec<Request>, Vec<String>), Error> {
    let mut trace = Trace::open(path, format)?;
    let requests = trace.by_ref().collect::<Result<Vec<_>, _>>()?;
    Ok((requests, trace.disks().to_vec()))
}

pub fn requests_of(bytes: impl AsRef<[u8]>) -> Vec<Request> {
    read(&File::new(bytes).path(), None).expect("a trace").0
}

/// The text of the error, without the folder.
pub fn error_of(bytes: impl AsRef<[u8]>, format: Option<Format>) -> String {
    let file = File::new(bytes);
    let error = read(&file.path(), format).expect_err("not a trace");
    let text = error.to_string();
    let folder = format!("{}/", file.folder.path().display());
    text.strip_prefix(&folder).expect("the path").to_owned()
}

/// Requests and bytes of a kind.
pub fn totals(requests: &[Request], kind: Kind) -> (usize, u64) {
    let these = || requests.iter().filter(|request| request.kind == kind);
    (
        these().count(),
        these().map(|request| request.length_bytes).sum(),
    )
}

pub fn request(time_ns: u64, kind: Kind, offset_bytes: u64, length_bytes: u64) -> Request {
    Request {
        time_ns,
        disk: 0,
        kind,
        fua: false,
        offset_bytes,
        length_bytes,
    }
}
