//! Requests to the members of an array, as tuples.

use crate::wear::{Device, Workload};
use fscost_raid::{
    Error, Geometry, Level, Load, MemberRequest, Operation, Rmw, RowCounts, WritePath,
};
use fscost_recording::Recording;
use fscost_wear::{IntervalTimes, OnArray};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyList},
};

/// Geometry and options of an array, as checked by `fscost.wear.array`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Shape {
    level: i32,
    layout: u32,
    chunk_bytes: u64,
    member_bytes: Vec<u64>,
    rmw_level: u8,
    cached_stripes: usize,
    batch_gap_ns: u64,
}

impl Shape {
    fn geometry(&self) -> PyResult<Geometry> {
        let level = Level::from_number(self.level);
        Ok(Geometry {
            level: level.ok_or_else(|| refused(&Error::Shape))?,
            layout: self.layout,
            chunk_bytes: self.chunk_bytes,
            member_bytes: self.member_bytes.clone(),
        })
    }

    fn options(&self) -> PyResult<WritePath> {
        let rmw = match self.rmw_level {
            0 => Rmw::Never,
            1 => Rmw::WhenFewerReads,
            2 => Rmw::WhenNoMoreReads,
            other => {
                let why = format!("rmw_level is {other}: it must be 0, 1 or 2");
                return Err(PyValueError::new_err(why));
            }
        };
        Ok(WritePath {
            rmw,
            cached_stripes: self.cached_stripes,
        })
    }

    fn on(&self, disk: u16) -> PyResult<OnArray> {
        Ok(OnArray {
            disk,
            geometry: self.geometry()?,
            options: self.options()?,
            batch_gap_ns: self.batch_gap_ns,
        })
    }
}

/// Returns a workload for each member of the array that a recorded disk stands for.
pub fn member_workloads(
    py: Python<'_>,
    recording: &Recording,
    disk: u16,
    shape: &Shape,
    device: &Device,
    measured: &[String],
) -> PyResult<Vec<Workload>> {
    let (on, spec) = (shape.on(disk)?, device.spec()?);
    let made = py.detach(|| fscost_wear::of_array(recording, &on, &spec, measured));
    let made = made.map_err(crate::error)?;
    Ok(made.into_iter().map(Workload::of_member).collect())
}

/// Returns how busy each disk, or each member of the array that one disk stands for, would have
/// been.
pub fn times<'py>(
    py: Python<'py>,
    recording: &Recording,
    device: &Device,
    array: Option<(u16, Shape)>,
) -> PyResult<Bound<'py, PyDict>> {
    let on = array.map(|(disk, shape)| shape.on(disk)).transpose()?;
    let (spec, timing) = (device.spec()?, device.timing());
    let (intervals, rows) = py
        .detach(|| fscost_wear::times(recording, &spec, timing, on.as_ref()))
        .map_err(crate::error)?;
    let list = PyList::empty(py);
    for interval in &intervals {
        list.append(told_interval(py, interval)?)?;
    }
    let found = PyDict::new(py);
    found.set_item("intervals", list)?;
    found.set_item("rows", told_rows(rows))?;
    Ok(found)
}

fn told_interval<'py>(py: Python<'py>, interval: &IntervalTimes) -> PyResult<Bound<'py, PyDict>> {
    let members = PyList::empty(py);
    for member in &interval.members {
        let entry = told_load(py, &member.load)?;
        entry.set_item("busy_s", member.busy_s)?;
        entry.set_item("nand_write_bytes", member.nand_write_bytes)?;
        entry.set_item("erased_blocks", member.erased_blocks)?;
        members.append(entry)?;
    }
    let found = PyDict::new(py);
    found.set_item("name", &interval.name)?;
    found.set_item("elapsed_s", interval.elapsed_s)?;
    found.set_item("members", members)?;
    Ok(found)
}

fn told_load<'py>(py: Python<'py>, load: &Load) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    for (name, value) in [
        ("read_requests", load.read_requests),
        ("read_bytes", load.read_bytes),
        ("preread_requests", load.preread_requests),
        ("preread_bytes", load.preread_bytes),
        ("write_requests", load.write_requests),
        ("write_bytes", load.write_bytes),
        ("redundant_write_bytes", load.redundant_write_bytes),
        ("discard_bytes", load.discard_bytes),
        ("flushes", load.flushes),
    ] {
        entry.set_item(name, value)?;
    }
    Ok(entry)
}

/// Returns the counts `(full, cached, reconstruct, read_modify_write)`.
fn told_rows(rows: RowCounts) -> (u64, u64, u64, u64) {
    (
        rows.full,
        rows.cached,
        rows.reconstruct,
        rows.read_modify_write,
    )
}

fn refused(error: &Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Request to a member: `(member, "read" | "preread" | "write" | "discard" | "flush", offset,
/// bytes, redundant_bytes)`.
type Request = (usize, &'static str, u64, u64, u64);

/// A simulated Linux md array. Each method returns the member requests that it causes.
#[pyclass(module = "fscost._native")]
pub struct Array {
    inner: fscost_raid::Array,
}

#[pymethods]
impl Array {
    #[new]
    fn new(shape: Shape) -> PyResult<Self> {
        let made = fscost_raid::Array::new(&shape.geometry()?, shape.options()?);
        let inner = made.map_err(|error| refused(&error))?;
        Ok(Self { inner })
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    /// Return the number of 4 KiB rows written, by how their parity was computed: `(full, cached,
    /// reconstruct, read_modify_write)`.
    fn rows(&self) -> (u64, u64, u64, u64) {
        told_rows(self.inner.rows())
    }

    fn read(&mut self, offset: u64, length: u64) -> PyResult<Vec<Request>> {
        told(|out| self.inner.read(offset, length, out))
    }

    fn write(&mut self, offset: u64, length: u64) -> PyResult<Vec<Request>> {
        told(|out| self.inner.write(offset, length, out))
    }

    fn discard(&mut self, offset: u64, length: u64) -> PyResult<Vec<Request>> {
        told(|out| self.inner.discard(offset, length, out))
    }

    fn flush(&mut self) -> PyResult<Vec<Request>> {
        told(|out| {
            self.inner.flush(out);
            Ok(())
        })
    }

    /// End a batch: write the pending contents of the stripe cache.
    fn settle(&mut self) -> PyResult<Vec<Request>> {
        told(|out| {
            self.inner.settle(out);
            Ok(())
        })
    }
}

fn told(make: impl FnOnce(&mut Vec<MemberRequest>) -> Result<(), Error>) -> PyResult<Vec<Request>> {
    let mut out = Vec::new();
    make(&mut out).map_err(|error| refused(&error))?;
    let request = |each: &MemberRequest| {
        let operation = match each.operation {
            Operation::Read => "read",
            Operation::Preread => "preread",
            Operation::Write => "write",
            Operation::Discard => "discard",
            Operation::Flush => "flush",
        };
        (
            each.member,
            operation,
            each.offset,
            each.bytes,
            each.redundant_bytes,
        )
    };
    Ok(out.iter().map(request).collect())
}
