//! Requests to the members of an array, as tuples.

use crate::refused;
use fscost_raid::{Error, Geometry, Level, MemberRequest, Operation, Rmw, RowCounts, WritePath};
use fscost_wear::{IntervalTimes, MemberTimes, OnArray};
use pyo3::{
    prelude::*,
    types::{IntoPyDict as _, PyDict},
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
            level: level.ok_or_else(|| refused(Error::Shape))?,
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
                return Err(refused(why));
            }
        };
        Ok(WritePath {
            rmw,
            cached_stripes: self.cached_stripes,
        })
    }

    /// Returns the array in place of a recorded disk.
    pub fn on(&self, disk: u16) -> PyResult<OnArray> {
        Ok(OnArray {
            disk,
            geometry: self.geometry()?,
            options: self.options()?,
            batch_gap_ns: self.batch_gap_ns,
        })
    }
}

/// Returns how busy each member would have been in each interval.
pub fn interval_times<'py>(
    py: Python<'py>,
    intervals: &[IntervalTimes],
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let entry = |interval: &IntervalTimes| {
        let members = interval.members.iter().map(|each| member_times(py, each));
        let entry = PyDict::new(py);
        entry.set_item("name", &interval.name)?;
        entry.set_item("elapsed_s", interval.elapsed_s)?;
        entry.set_item("members", members.collect::<PyResult<Vec<_>>>()?)?;
        Ok(entry)
    };
    intervals.iter().map(entry).collect()
}

fn member_times<'py>(py: Python<'py>, found: &MemberTimes) -> PyResult<Bound<'py, PyDict>> {
    let load = &found.load;
    let entry = [
        ("read_requests", load.read_requests),
        ("read_bytes", load.read_bytes),
        ("preread_requests", load.preread_requests),
        ("preread_bytes", load.preread_bytes),
        ("write_requests", load.write_requests),
        ("write_bytes", load.write_bytes),
        ("redundant_write_bytes", load.redundant_write_bytes),
        ("discard_bytes", load.discard_bytes),
        ("flushes", load.flushes),
    ]
    .into_py_dict(py)?;
    entry.set_item("busy_s", found.busy_s)?;
    entry.set_item("nand_write_bytes", found.nand_write_bytes)?;
    entry.set_item("erased_blocks", found.erased_blocks)?;
    Ok(entry)
}

/// Returns the counts `(full, cached, reconstruct, read_modify_write)`.
pub fn row_counts(rows: RowCounts) -> (u64, u64, u64, u64) {
    (
        rows.full,
        rows.cached,
        rows.reconstruct,
        rows.read_modify_write,
    )
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
        let inner = made.map_err(refused)?;
        Ok(Self { inner })
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    /// Return the number of 4 KiB rows written, by how their parity was computed: `(full, cached,
    /// reconstruct, read_modify_write)`.
    fn rows(&self) -> (u64, u64, u64, u64) {
        row_counts(self.inner.rows())
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
    make(&mut out).map_err(refused)?;
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
