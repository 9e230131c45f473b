//! Logs of the kernel's dm-log-writes target
//! (`Documentation/admin-guide/device-mapper/log-writes.rst`), read by `fscost-recording`.
//!
//! Logs contain writes, discards and flushes in order of completion, but no reads and no times. The
//! time of a request is its number in the log.

use super::Reader;
use crate::{
    device_events::range,
    error::{Error, ErrorKind, Place, Result},
    request::{Kind, Output, Request},
};
use fscost_recording::{self as recording, dm_log_writes::Entries};
use std::path::{Path, PathBuf};

pub(crate) struct DmLogWrites {
    path: PathBuf,
    entries: Entries,
}

impl DmLogWrites {
    pub(crate) fn open(path: &Path) -> Result<DmLogWrites> {
        Ok(DmLogWrites {
            path: path.to_owned(),
            entries: Entries::open(path).map_err(|e| error(path, e))?,
        })
    }
}

impl Reader for DmLogWrites {
    fn step(&mut self, out: &mut Output) -> Result<bool> {
        let entry = self.entries.next_entry();
        let Some(entry) = entry.map_err(|e| error(&self.path, e))? else {
            return Ok(false);
        };
        let malformed = |problem| Error::malformed(&self.path, Place::Byte(entry.at_byte), problem);
        let disk = out.disks.number(b"log").map_err(malformed)?;
        if entry.has_flush {
            out.add(Request::flush(entry.number, disk));
        }
        let kind = if entry.is_discard {
            Kind::Discard
        } else {
            Kind::Write
        };
        out.add(Request {
            time_ns: entry.number,
            disk,
            kind,
            fua: entry.is_fua && kind == Kind::Write,
            ..range(entry.offset, 1, entry.length).map_err(malformed)?
        });
        Ok(true)
    }
}

/// Converts an error of `fscost-recording`. Such errors include the byte in their text, and may
/// include the file.
fn error(path: &Path, error: recording::Error) -> Error {
    let kind = match error.kind {
        recording::ErrorKind::Io => ErrorKind::Io,
        recording::ErrorKind::Format => ErrorKind::Format,
        _ => ErrorKind::Malformed,
    };
    let text = error.to_string();
    let prefix = format!("{}: ", path.display());
    let cause = text.strip_prefix(&prefix).unwrap_or(&text).to_owned();
    Error::new(kind, path, Place::File, cause)
}
