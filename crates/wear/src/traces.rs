//! A trace of another tool as workloads, one for each of its disks.

use crate::{MOST_STEPS, UNEXPLAINED, too_many};
use fscost_ssd::{Part, Spec, Workload};
use fscost_traces::{Error, ErrorKind, Format, Kind, Place, Result, Trace};
use std::path::Path;

/// One disk of a trace.
#[derive(Debug, Clone)]
pub struct TracedDisk {
    /// Name of the disk in the trace.
    pub name: String,
    /// All requests of the disk, as one cycle. The size of the workload's disk is the highest end
    /// of any request.
    pub workload: Workload,
    /// Time from the first line of the trace to the last one, the same for all disks: a disk that
    /// is idle for most of a capture is not busier for it. 0 if the format has no times.
    pub duration_ns: u64,
}

/// Reads the disks of a trace, in the order of their first requests. Also returns the format that
/// was used.
pub fn of_trace(
    path: &Path,
    format: Option<Format>,
    spec: &Spec,
) -> Result<(Format, Vec<TracedDisk>)> {
    let mut trace = Trace::open(path, format)?;
    let mut disks: Vec<Reading> = Vec::new();
    let mut steps = 0;
    while let Some(request) = trace.next_request()? {
        let index = request.disk as usize;
        while disks.len() <= index {
            disks.push(Reading::new(spec.unit_bytes));
        }
        let disk = &mut disks[index];
        steps += usize::from(request.kind != Kind::Read) + usize::from(request.fua);
        if steps > MOST_STEPS {
            return Err(Error {
                kind: ErrorKind::TooLarge,
                path: path.to_owned(),
                place: Place::File,
                cause: too_many().into(),
            });
        }
        let (offset, length) = (request.offset_bytes, request.length_bytes);
        disk.end = disk.end.max(offset + length);
        let workload = &mut disk.workload;
        match request.kind {
            Kind::Read => {}
            Kind::Write | Kind::Zero => {
                workload.write(Part::Cycle, offset, [(length, UNEXPLAINED)]);
                if request.fua {
                    workload.flush(Part::Cycle, UNEXPLAINED);
                }
            }
            Kind::Discard => workload.trim(Part::Cycle, offset, length, UNEXPLAINED),
            Kind::Flush => workload.flush(Part::Cycle, UNEXPLAINED),
        }
    }
    let duration_ns = trace.duration_ns();
    let names = trace.disks().iter().cloned();
    let found = names.zip(disks).map(|(name, disk)| TracedDisk {
        name,
        duration_ns,
        workload: Workload {
            disk_bytes: disk.end,
            ..disk.workload
        },
    });
    Ok((trace.format(), found.collect()))
}

/// A disk whose end is not yet known.
struct Reading {
    workload: Workload,
    end: u64,
}

impl Reading {
    fn new(unit_bytes: u32) -> Reading {
        Reading {
            workload: Workload::new(unit_bytes, u64::MAX),
            end: 0,
        }
    }
}
