//! The requests of a trace of another tool, which has one time for each: when it was issued.

use crate::{
    Requests,
    requests::{Item, MOST_REQUESTS},
};
use fscost_latency::Op;
use fscost_traces::{Error, ErrorKind, Format, Kind, Place, Result, Trace};
use std::path::Path;

/// A trace of another tool.
#[derive(Debug, Clone)]
pub struct Traced {
    /// Names of the disks.
    pub disks: Vec<String>,
    /// Requests of all disks. Each completes at once, so that only flushes and the time between
    /// requests separate them.
    pub requests: Requests,
}

/// Reads a trace. Each disk is as large as its highest address.
pub fn of_trace(path: &Path, format: Option<Format>) -> Result<Traced> {
    let mut trace = Trace::open(path, format)?;
    let mut items = Vec::new();
    let mut disk_bytes: Vec<u64> = Vec::new();
    while let Some(request) = trace.next_request()? {
        let disk = u16::try_from(request.disk).map_err(|_| {
            let most = usize::from(u16::MAX) + 1;
            too_many(path, "disks", most)
        })?;
        if items.len() == MOST_REQUESTS {
            return Err(too_many(path, "requests", MOST_REQUESTS));
        }
        let index = usize::from(disk);
        if disk_bytes.len() <= index {
            disk_bytes.resize(index + 1, 0);
        }
        let end = request.offset_bytes + request.length_bytes;
        disk_bytes[index] = disk_bytes[index].max(end);
        items.push(Item {
            submit_ns: request.time_ns,
            complete_ns: request.time_ns,
            offset_bytes: request.offset_bytes,
            length_bytes: request.length_bytes,
            disk,
            op: Some(op(request.kind)),
            fua: request.fua,
            ..Item::default()
        });
    }
    Ok(Traced {
        disks: trace.disks().to_vec(),
        requests: Requests::at_once(items, disk_bytes),
    })
}

fn op(kind: Kind) -> Op {
    match kind {
        Kind::Read => Op::Read,
        Kind::Write => Op::Write,
        Kind::Discard => Op::Discard,
        Kind::Zero => Op::WriteZeroes,
        Kind::Flush => Op::Flush,
    }
}

fn too_many(path: &Path, what: &str, most: usize) -> Error {
    Error {
        kind: ErrorKind::TooLarge,
        path: path.to_owned(),
        place: Place::File,
        cause: format!("at most {most} {what} can be replayed, and the trace has more").into(),
    }
}
