//! An array's members' requests, as tuples.

use fscost_raid::{Error, Geometry, Level, MemberRequest, Operation, Rmw, WritePath};
use pyo3::{exceptions::PyValueError, prelude::*};

/// The shape of an array, as `fscost.wear.array` checked it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Shape {
    level: i32,
    layout: u32,
    chunk_bytes: u64,
    member_bytes: Vec<u64>,
    rmw_level: u8,
    cached_stripes: usize,
}

impl Shape {
    pub fn array(&self) -> PyResult<fscost_raid::Array> {
        let level = Level::from_number(self.level);
        let geometry = Geometry {
            level: level.ok_or_else(|| refused(&Error::Shape))?,
            layout: self.layout,
            chunk_bytes: self.chunk_bytes,
            member_bytes: self.member_bytes.clone(),
        };
        let options = WritePath {
            rmw: match self.rmw_level {
                0 => Rmw::Never,
                1 => Rmw::WhenFewerReads,
                2 => Rmw::WhenNoMoreReads,
                other => {
                    return Err(PyValueError::new_err(format!(
                        "rmw_level is {other}: it must be 0, 1 or 2"
                    )));
                }
            },
            cached_stripes: self.cached_stripes,
        };
        fscost_raid::Array::new(&geometry, options).map_err(|error| refused(&error))
    }
}

fn refused(error: &Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A member's request: `(member, "read" | "preread" | "write" | "discard" | "flush", offset, bytes, redundant_bytes)`.
type Request = (usize, &'static str, u64, u64, u64);

/// An array of Linux md that requests are made to. Each method returns the members' requests that it leads to.
#[pyclass(module = "fscost._native")]
pub struct Array {
    inner: fscost_raid::Array,
}

#[pymethods]
impl Array {
    #[new]
    fn new(shape: Shape) -> PyResult<Self> {
        Ok(Self {
            inner: shape.array()?,
        })
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    /// Rows of 4 KiB written, by how their parity was computed: `(full, cached, reconstruct, read_modify_write)`.
    fn rows(&self) -> (u64, u64, u64, u64) {
        let rows = self.inner.rows();
        (
            rows.full,
            rows.cached,
            rows.reconstruct,
            rows.read_modify_write,
        )
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

    /// End a batch: what waits in the stripe cache is written.
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
