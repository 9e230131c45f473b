//! An explained recording as columns.

use crate::{
    arrow::{Batch, column, flags, named, nullable},
    columns::{Names, wide},
    detached,
    intervals::{MarkTexts, mark_texts},
    sums,
    wear::grouping,
};
use arrow_schema::DataType::{Int32, Int64, UInt8, UInt64};
use fscost_explain::{Key, NO_INODE, Row, RowIter, Structure, Table};
use fscost_recording::{self as recording, Output, Packer};
use fscost_wear::By;
use pyo3::prelude::*;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Rows per batch.
const BATCH_ROWS: usize = 1 << 16;

/// An explained recording. Each iteration starts at the first row and yields all rows in record
/// batches, with the columns of docs/explaining.md.
#[pyclass(frozen, module = "fscost._native")]
pub struct Explanation {
    pub table: Arc<Table>,
    pub disks: Vec<String>,
    /// Outcome of packing in the same pass.
    packed: Mutex<Option<recording::Result<()>>>,
}

impl Explanation {
    pub fn new(source: &recording::Recording) -> recording::Result<Self> {
        Ok(Self {
            table: Arc::new(Table::new(source)?),
            disks: disk_names(source),
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
            table: Arc::new(table),
            disks: disk_names(source),
            packed: Mutex::new(Some(packed)),
        })
    }
}

#[pymethods]
impl Explanation {
    /// Return a batch for each of several lists of columns: these columns of each group of rows
    /// with equal values, and `length_sum`. `phases` and `disks` choose rows by name. A list must
    /// consist of columns that `summed` names.
    #[pyo3(signature = (several, phases=None, disks=None))]
    fn sums(
        &self,
        py: Python<'_>,
        several: Vec<Vec<String>>,
        phases: Option<Vec<String>>,
        disks: Option<Vec<String>>,
    ) -> PyResult<Vec<Batch>> {
        let names = Names::of(&self.table, &self.disks)?;
        let chosen = sums::choice(&self.table, phases, (&self.disks, disks));
        sums::batches(py, &self.table, &names, &several, &chosen)
    }

    /// Return two batches about the log: the sums of the rows by transaction, structure, home
    /// structure and `atime_alone`, with their first and last time; and how many transactions
    /// copied each block or inode of the disk, by its offset.
    #[pyo3(signature = (phases=None, disks=None))]
    fn logged(
        &self,
        py: Python<'_>,
        phases: Option<Vec<String>>,
        disks: Option<Vec<String>>,
    ) -> PyResult<(Batch, Batch)> {
        let names = Names::of(&self.table, &self.disks)?;
        let chosen = sums::choice(&self.table, phases, (&self.disks, disks));
        sums::of_log(py, &self.table, &names, &chosen)
    }

    /// Return the columns that `sums` can sum by.
    #[staticmethod]
    fn summed() -> Vec<&'static str> {
        Key::NAMED.iter().map(|(name, _)| *name).collect()
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Batches> {
        let explanation = slf.get();
        Ok(Batches {
            rows: explanation.table.explained.rows.iter(),
            names: Names::of(&explanation.table, &explanation.disks)?,
            explanation: slf.unbind(),
        })
    }

    /// Return the distinct names of intervals, in order.
    fn phases(&self) -> &[String] {
        self.table.timeline.names()
    }

    /// Return the names of the groups of a workload with charges by `cause`, `structure`, `path` or
    /// `step`.
    fn names(&self, by: &str) -> PyResult<Vec<String>> {
        let explained = &self.table.explained;
        Ok(match grouping(Some(by))? {
            By::Cause => {
                let causes = explained.rows.cause_sets().iter();
                causes.map(ToString::to_string).collect()
            }
            By::Structure => {
                let structures = Structure::ALL.iter();
                structures.map(|s| s.name().to_owned()).collect()
            }
            By::Path => explained.paths.texts().map(str::to_owned).collect(),
            By::Step => self.phases().to_vec(),
        })
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

fn disk_names(source: &recording::Recording) -> Vec<String> {
    let disks = source.header().disks.iter();
    disks.map(|disk| disk.name.clone()).collect()
}

/// An iterator of record batches.
#[pyclass(module = "fscost._native")]
pub struct Batches {
    explanation: Py<Explanation>,
    rows: RowIter,
    names: Names,
}

#[pymethods]
impl Batches {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let (table, rows, names) = (&self.explanation.get().table, &mut self.rows, &self.names);
        let columns = detached(py, || Columns::of(table, rows))?;
        columns.map(|each| each.into_batch(names)).transpose()
    }
}

/// Columns of a batch. Negative numbers stand for missing values.
#[derive(Default)]
struct Columns {
    event: Vec<u64>,
    time_ns: Vec<u64>,
    phase: Vec<i32>,
    disk: Vec<i32>,
    offset: Vec<u64>,
    length: Vec<u64>,
    structure: Vec<i32>,
    home_structure: Vec<i32>,
    home_offset: Vec<i64>,
    cause: Vec<i32>,
    atime_alone: Vec<bool>,
    inode: Vec<i64>,
    tree: Vec<u64>,
    path: Vec<i32>,
    file_offset: Vec<i64>,
    transaction: Vec<i64>,
    copy: Vec<u8>,
    doubtful: Vec<bool>,
}

impl Columns {
    /// Returns the columns of the next rows; `None` after the last row.
    fn of(table: &Table, rows: &mut RowIter) -> recording::Result<Option<Self>> {
        let mut columns = Self::default();
        for row in rows.take(BATCH_ROWS) {
            columns.add(table, &row?);
        }
        Ok(Some(columns).filter(|each| !each.event.is_empty()))
    }

    fn add(&mut self, table: &Table, row: &Row) {
        self.event.push(row.event);
        self.time_ns.push(table.timeline.time_ns(row.event));
        self.phase.push(number(table.timeline.interval(row.event)));
        self.disk.push(i32::from(row.disk));
        self.offset.push(row.offset);
        self.length.push(row.length);
        self.structure.push(number(row.structure as usize));
        self.home_structure
            .push(row.home.map_or(-1, |home| number(home as usize)));
        self.home_offset.push(wide(row.home_offset));
        self.cause.push(number(table.cause_set(row.causes)));
        self.atime_alone.push(row.causes.is_atime_alone());
        self.inode
            .push(wide(Some(row.inode).filter(|&inode| inode != NO_INODE)));
        self.tree.push(row.tree);
        self.path
            .push(row.path.map_or(-1, |path| number(path.index())));
        self.file_offset.push(wide(row.file_offset()));
        self.transaction.push(wide(row.transaction));
        self.copy.push(row.copy);
        self.doubtful.push(row.is_doubtful);
    }

    fn into_batch(self, names: &Names) -> PyResult<Batch> {
        Batch::new([
            ("event", column(UInt64, self.event)?),
            ("time_ns", column(UInt64, self.time_ns)?),
            ("phase", named(Int32, self.phase, &names.phases)?),
            ("disk", named(Int32, self.disk, &names.disks)?),
            ("offset", column(UInt64, self.offset)?),
            ("length", column(UInt64, self.length)?),
            (
                "structure",
                named(Int32, self.structure, &names.structures)?,
            ),
            (
                "home_structure",
                named(Int32, self.home_structure, &names.structures)?,
            ),
            ("home_offset", nullable(Int64, self.home_offset)?),
            ("cause", named(Int32, self.cause, &names.causes)?),
            ("atime_alone", flags(&self.atime_alone)?),
            ("inode", nullable(Int64, self.inode)?),
            ("tree", column(UInt64, self.tree)?),
            ("path", named(Int32, self.path, &names.paths)?),
            ("file_offset", nullable(Int64, self.file_offset)?),
            ("transaction", nullable(Int64, self.transaction)?),
            ("copy", column(UInt8, self.copy)?),
            ("doubtful", flags(&self.doubtful)?),
        ])
    }
}

fn number(value: impl TryInto<i32>) -> i32 {
    value.try_into().unwrap_or(-1)
}
