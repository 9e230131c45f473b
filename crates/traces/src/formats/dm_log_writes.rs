//! Logs of the kernel's dm-log-writes target
//! (`Documentation/admin-guide/device-mapper/log-writes.rst`), read by
//! `fscost-recording`.
//!
//! They have writes, discards and flushes in the order of their completion, but no reads and no
//! times: the time of a
//! request is its number in the log.

use crate::{
    device_events::{Requests, range},
    disks::Disks,
    error::{Error, ErrorKind, Place, Result},
    request::{Kind, Request},
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

    /// The requests of the next entry; none at the end.
    pub(crate) fn next(&mut self, disks: &mut Disks) -> Result<Option<Requests>> {
        let entry = self
            .entries
            .next_entry()
            .map_err(|e| error(&self.path, e))?;
        let Some(entry) = entry else {
            return Ok(None);
        };
        let malformed = |problem| {
            Error::new(
                ErrorKind::Malformed,
                &self.path,
                Place::Byte(entry.at_byte),
                problem,
            )
        };
        let disk = disks.number(b"log").map_err(malformed)?;
        let flush = Request {
            time_ns: entry.number,
            disk,
            kind: Kind::Flush,
            fua: false,
            offset_bytes: 0,
            length_bytes: 0,
        };
        let place = range(entry.offset, 1, entry.length).map_err(malformed)?;
        let data = Request {
            time_ns: entry.number,
            disk,
            kind: if entry.is_discard {
                Kind::Discard
            } else {
                Kind::Write
            },
            fua: entry.is_fua && !entry.is_discard,
            ..place
        };
        let data = (entry.length > 0).then_some(data);
        Ok(Some(if entry.has_flush {
            Requests {
                first: Some(flush),
                second: data,
            }
        } else {
            Requests {
                first: data,
                second: None,
            }
        }))
    }
}

/// Errors of that crate name the byte in their text, and may name the file.
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
