//! An explained recording as columns.

use crate::{
    columns::{Columns, append, column},
    detached,
    recording::{MarkTexts, mark_texts},
};
use fscost_explain::{NO_INODE, Row, RowIter, Structure, Table};
use fscost_recording::{self as recording, Output, Packer};
use pyo3::{
    prelude::*,
    types::{IntoPyDict as _, PyDict},
};
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// Rows per batch.
const BATCH_ROWS: usize = 1 << 18;
/// Rows converted to columns at a time: few enough to stay in the processor's cache.
const PART_ROWS: usize = 1 << 10;

/// An explained recording. Each iteration starts at the first row and yields all rows in column
/// batches, little-endian: `{"event": u64 bytes, "time_ns": u64, "interval": i32, "disk": i32,
/// "offset": u64, "length": u64, "structure": i32, "home": i32, "home_offset": i64, "cause": i32,
/// "atime_alone": u8, "inode": i64, "tree": u64, "path": i32, "transaction": i64, "copy": u8,
/// "doubtful": u8}`. A missing value is -1.
#[pyclass(frozen, module = "fscost._native")]
pub struct Explanation {
    pub table: Table,
    /// Outcome of packing in the same pass.
    packed: Mutex<Option<recording::Result<()>>>,
}

impl Explanation {
    pub fn new(source: &recording::Recording) -> recording::Result<Self> {
        Ok(Self {
            table: Table::new(source)?,
            packed: Mutex::default(),
        })
    }

    /// Explains the recording and packs it in the same pass. A failure to pack does not end the
    /// explanation.
    pub fn packing(
        source: &recording::Recording,
        out: Output,
        level: i32,
    ) -> recording::Result<Self> {
        let mut packer = Packer::new(source, out, level);
        let table = Table::with(source, |frame| {
            if let Ok(writer) = &mut packer
                && let Err(error) = writer.add(frame)
            {
                packer = Err(error);
            }
        })?;
        let packed = packer.and_then(Packer::finish).map(|_| ());
        Ok(Self {
            table,
            packed: Mutex::new(Some(packed)),
        })
    }
}

#[pymethods]
impl Explanation {
    fn __iter__(slf: Bound<'_, Self>) -> Batches {
        Batches {
            rows: slf.get().table.explained.rows.iter(),
            explanation: slf.unbind(),
        }
    }

    /// Return the names for the numbers in the columns `structure` and `home`, `cause`, `interval`
    /// and `path`: `{"structures", "journal_structures" (those that belong to a journal or log),
    /// "causes", "intervals", "paths"}`.
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let explained = &self.table.explained;
        let structures = Structure::ALL.iter();
        let journal = structures.clone().filter(|s| s.is_journal());
        let journal = Vec::from_iter(journal.map(|s| s.name()));
        let causes = explained.rows.cause_sets().iter();
        let names = PyDict::new(py);
        names.set_item("structures", Vec::from_iter(structures.map(|s| s.name())))?;
        names.set_item("journal_structures", journal)?;
        names.set_item("causes", Vec::from_iter(causes.map(ToString::to_string)))?;
        names.set_item("intervals", self.table.timeline.names())?;
        names.set_item("paths", Vec::from_iter(explained.paths.texts()))?;
        Ok(names)
    }

    /// Return all marks of the recording: `[(at_ns, name, JSON text or None)]`.
    fn marks(&self) -> Vec<MarkTexts> {
        mark_texts(self.table.timeline.marks())
    }

    /// Return the bytes of the rows that were written as zeroes and reached the disk as punched
    /// holes, by interval name.
    fn punched_bytes(&self) -> BTreeMap<String, u64> {
        let mut found = BTreeMap::new();
        let names = self.table.timeline.interval_names();
        for (name, bytes) in names.zip(&self.table.explained.punched_bytes) {
            *found.entry(name.to_owned()).or_default() += bytes;
        }
        found
    }

    /// Raise the error that ended the packing, if one did. The error is raised once.
    fn check_packed(&self) -> PyResult<()> {
        let mut packed = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
        packed.take().unwrap_or(Ok(())).map_err(crate::error)
    }

    /// Return the file system family of each disk: `ext`, `xfs`, `btrfs`, or None.
    fn families(&self) -> Vec<Option<&'static str>> {
        self.table.explained.families.clone()
    }
}

/// An iterator of column batches.
#[pyclass(module = "fscost._native")]
pub struct Batches {
    explanation: Py<Explanation>,
    rows: RowIter,
}

#[pymethods]
impl Batches {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let table = &self.explanation.get().table;
        let rows = &mut self.rows;
        let batch = detached(py, || batch(table, rows))?;
        batch.map(|columns| columns.into_py_dict(py)).transpose()
    }
}

/// Returns the next rows; `None` after the last.
fn batch(table: &Table, rows: &mut RowIter) -> recording::Result<Option<Columns<17>>> {
    let mut batch = None;
    let mut part = Vec::with_capacity(PART_ROWS);
    for _ in 0..BATCH_ROWS / PART_ROWS {
        part.clear();
        for row in rows.by_ref().take(PART_ROWS) {
            part.push(row?);
        }
        if part.is_empty() {
            break;
        }
        append(&mut batch, columns(table, &part));
    }
    Ok(batch)
}

fn columns(table: &Table, rows: &[Row]) -> Columns<17> {
    let timeline = &table.timeline;
    [
        column("event", rows, |r| r.event.to_le_bytes()),
        column("time_ns", rows, |r| timeline.time_ns(r.event).to_le_bytes()),
        column("interval", rows, |r| number(timeline.interval(r.event))),
        column("disk", rows, |r| number(r.disk)),
        column("offset", rows, |r| r.offset.to_le_bytes()),
        column("length", rows, |r| r.length.to_le_bytes()),
        column("structure", rows, |r| number(r.structure as usize)),
        column("home", rows, |r| optional(r.home.map(|h| h as usize))),
        column("home_offset", rows, |r| wide(r.home_offset)),
        column("cause", rows, |r| number(table.cause_set(r.causes))),
        column("atime_alone", rows, |r| {
            [u8::from(r.causes.is_atime_alone())]
        }),
        column("inode", rows, |r| {
            wide(Some(r.inode).filter(|&i| i != NO_INODE))
        }),
        column("tree", rows, |r| r.tree.to_le_bytes()),
        column("path", rows, |r| optional(r.path.map(|p| p.index()))),
        column("transaction", rows, |r| wide(r.transaction)),
        column("copy", rows, |r| [r.copy]),
        column("doubtful", rows, |r| [u8::from(r.is_doubtful)]),
    ]
}

fn number(value: impl TryInto<i32>) -> [u8; 4] {
    optional(Some(value))
}

fn optional(value: Option<impl TryInto<i32>>) -> [u8; 4] {
    value
        .and_then(|v| v.try_into().ok())
        .unwrap_or(-1)
        .to_le_bytes()
}

fn wide(value: Option<u64>) -> [u8; 8] {
    value
        .and_then(|v| i64::try_from(v).ok())
        .unwrap_or(-1)
        .to_le_bytes()
}
