//! Recordings.

use crate::{
    RecordingError,
    array::{self, Shape},
    error,
    explanation::Explanation,
    interruptible::announcing,
    intervals::{MarkTexts, interval_entries, mark_texts, named_totals},
    recovery, replay,
    requests::Requests,
    wear::{self, Device, Workload},
    working,
};
use fscost_recording::{self as recording, FrameInfo, Output, dm_log_writes};
use fscost_strip::Names;
use fscost_wear::{Wanted, of_array, of_recording};
use pyo3::{prelude::*, types::PyDict};
use std::{path::PathBuf, sync::Arc};

/// A recording opened for reading. A truncated or damaged recording opens up to the damage.
#[pyclass(frozen, module = "fscost._native")]
pub struct Recording {
    inner: Arc<recording::Recording>,
}

impl Recording {
    /// Returns the recording that this one wraps.
    pub(crate) fn inner(&self) -> &Arc<recording::Recording> {
        &self.inner
    }
}

#[pymethods]
impl Recording {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        Ok(Self {
            inner: Arc::new(recording::Recording::open(&path).map_err(error)?),
        })
    }

    /// Return disks, sizes and the kind of end: `{"stripped", "begin_unix_ns", "file_bytes",
    /// "frames", "events", "content_bytes", "content_stored_bytes", "end", "last_ns", "disks":
    /// [{"name", "size_bytes", "logical_block_bytes", "physical_block_bytes"}]}`.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (header, frames) = (self.inner.header(), self.inner.frames());
        let sum = |of: fn(&FrameInfo) -> u32| frames.iter().map(|f| u64::from(of(f))).sum::<u64>();
        let info = PyDict::new(py);
        info.set_item("version", self.inner.version())?;
        info.set_item("stripped", header.stripped.text())?;
        info.set_item("begin_unix_ns", header.begin_unix_ns)?;
        info.set_item("file_bytes", self.inner.file_bytes())?;
        info.set_item("frames", frames.len())?;
        info.set_item("events", sum(|f| f.event_count))?;
        info.set_item("content_bytes", sum(|f| f.content_bytes))?;
        info.set_item("content_stored_bytes", sum(|f| f.content_stored_bytes))?;
        info.set_item("last_ns", frames.last().map_or(0, |f| f.last_complete_ns))?;
        info.set_item("end", end_text(self.inner.end()))?;
        let disks = header.disks.iter().map(|disk| {
            let entry = PyDict::new(py);
            entry.set_item("name", &disk.name)?;
            entry.set_item("size_bytes", disk.size_bytes)?;
            entry.set_item("logical_block_bytes", disk.logical_block_bytes)?;
            entry.set_item("physical_block_bytes", disk.physical_block_bytes)?;
            Ok(entry)
        });
        info.set_item("disks", disks.collect::<PyResult<Vec<_>>>()?)?;
        Ok(info)
    }

    /// Return the intervals between marks with their totals: `[{"name", "begin_ns", "end_ns",
    /// "first_write_bytes", "disks": {name: totals}, "detail": JSON text or None}]`. The first,
    /// `before`, holds everything before the first mark.
    fn intervals<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let inner = Arc::clone(&self.inner);
        let found = working(py, move || recording::intervals(&inner))?;
        interval_entries(py, &self.inner, &found)
    }

    /// Return all marks: `[(at_ns, name, JSON text or None)]`.
    fn marks(&self, py: Python<'_>) -> PyResult<Vec<MarkTexts>> {
        let inner = Arc::clone(&self.inner);
        let marks = working(py, move || inner.marks())?;
        Ok(mark_texts(&marks))
    }

    /// Return the requests in record batches: `event` (its number, marks counted), `submit_ns`,
    /// `complete_ns`, `disk`, `op`, `offset`, `length`, `fua`, `latency_ns`, `late_ns` (both null
    /// without a reply).
    fn requests(&self, py: Python<'_>) -> PyResult<Requests> {
        Requests::of(py, Arc::clone(&self.inner))
    }

    /// Explain each written byte.
    fn explain(&self, py: Python<'_>) -> PyResult<Explanation> {
        let inner = Arc::clone(&self.inner);
        working(py, move || Explanation::new(&inner))
    }

    /// Explain the recording, and write it with content compressed at the given zstd level to the
    /// empty file behind a descriptor, in one pass. `Explanation.check_packed` raises the error of
    /// the second part.
    fn explain_and_pack(
        &self,
        py: Python<'_>,
        descriptor: i32,
        path: PathBuf,
        level: i32,
    ) -> PyResult<Explanation> {
        let out = Output::of_descriptor(descriptor, &path).map_err(error)?;
        let inner = Arc::clone(&self.inner);
        working(py, move || Explanation::packing(&inner, out, level))
    }

    /// Return the requests of one disk as a workload for an SSD model. `measured` names the
    /// intervals that are repeated. With an explanation, charges are kept by `cause`, `structure`,
    /// `path` or `step`.
    #[pyo3(signature = (disk, device, measured, explanation=None, by=None))]
    fn workload(
        &self,
        py: Python<'_>,
        disk: u16,
        device: Device,
        measured: Vec<String>,
        explanation: Option<&Explanation>,
        by: Option<&str>,
    ) -> PyResult<Workload> {
        let by = wear::grouping(by)?;
        let disks = &self.inner.header().disks;
        let disk_bytes = disks.get(usize::from(disk)).map_or(0, |d| d.size_bytes);
        let unit_bytes = device.spec()?.unit_bytes_for(disk_bytes);
        let table = explanation.map(|found| Arc::clone(&found.table));
        let inner = Arc::clone(&self.inner);
        let (inner, groups) = working(py, move || {
            let wanted = Wanted {
                disk,
                unit_bytes,
                measured: &measured,
            };
            let explained = table.as_deref().map(|table| (table, by));
            of_recording(&inner, explained, &wanted)
        })?;
        Ok(Workload::new(inner, groups))
    }

    /// Return an unexplained workload for each member of the array that the disk stands for.
    fn member_workloads(
        &self,
        py: Python<'_>,
        disk: u16,
        shape: Shape,
        device: Device,
        measured: Vec<String>,
    ) -> PyResult<Vec<Workload>> {
        let (on, spec) = (shape.on(disk)?, device.spec()?);
        let inner = Arc::clone(&self.inner);
        let found = working(py, move || of_array(&inner, &on, &spec, &measured))?;
        Ok(found.into_iter().map(Workload::unexplained).collect())
    }

    /// Return how busy each disk, or each member of the array that one disk stands for, would have
    /// been if it were a `device`: `{"intervals": [{"name", "elapsed_s", "members": [{"busy_s",
    /// "nand_write_bytes", "erased_blocks", …}]}], "rows": (full, cached, reconstruct,
    /// read_modify_write)}`.
    #[pyo3(signature = (device, array=None))]
    fn times<'py>(
        &self,
        py: Python<'py>,
        device: Device,
        array: Option<(u16, Shape)>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let on = array.map(|(disk, shape)| shape.on(disk)).transpose()?;
        let (spec, timing) = (device.spec()?, device.timing());
        let inner = Arc::clone(&self.inner);
        let times = move || fscost_wear::times(&inner, &spec, timing, on.as_ref());
        let (intervals, rows) = working(py, times)?;
        let found = PyDict::new(py);
        found.set_item("intervals", array::interval_times(py, &intervals)?)?;
        found.set_item("rows", array::row_counts(rows))?;
        Ok(found)
    }

    /// Replay the requests on device models, once for each assumption of `waits` ("flushes",
    /// "all"): lists of `[{"name", "recorded_ns", "modelled_ns", "disks":
    /// [{"busy_ns", "read", "write", "flush", "discard"}]}]`, the last four as `{"buckets":
    /// [(least, most, count)], "sum_ns", "max_ns"}`. `models` holds the file name and text of each
    /// disk's model. `None` if the recording does not tell how much time passed between requests.
    fn replay<'py>(
        &self,
        py: Python<'py>,
        models: Vec<(String, String)>,
        waits: Vec<String>,
        seed: u64,
    ) -> PyResult<Option<Vec<Vec<Bound<'py, PyDict>>>>> {
        let (models, waits) = replay::parsed(&models, &waits)?;
        let inner = Arc::clone(&self.inner);
        let found = working(py, move || {
            let requests = fscost_replay::Requests::of(&inner)?;
            let replayed = requests
                .has_time()
                .then(|| replay::all(&requests, &models, &waits, seed));
            Ok(replayed)
        })?;
        found.map(|found| replay::intervals(py, &found)).transpose()
    }

    /// Return the state from which a mount would recover disks that hold the events completed by
    /// `at_ns` except those in `lost`: see `recovery.rs`.
    fn recovery<'py>(
        &self,
        py: Python<'py>,
        at_ns: u64,
        lost: Vec<u64>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let inner = Arc::clone(&self.inner);
        let found = working(py, move || fscost_explain::recovery(&inner, at_ns, &lost))?;
        found.iter().map(|each| recovery::entry(py, each)).collect()
    }

    /// Read and check everything: `{"whole": bool, "end": str, "damaged": [str], "events",
    /// "content_bytes", "content_stored_bytes", "disks": {name: totals}}`.
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = Arc::clone(&self.inner);
        let report = working(py, move || recording::verify(&inner))?;
        let entry = PyDict::new(py);
        entry.set_item("whole", report.is_whole())?;
        entry.set_item("end", end_text(&report.end))?;
        entry.set_item("damaged", &report.damaged)?;
        entry.set_item("events", report.events)?;
        entry.set_item("content_bytes", report.content_bytes)?;
        entry.set_item("content_stored_bytes", report.content_stored_bytes)?;
        entry.set_item("disks", named_totals(py, &self.inner, &report.totals)?)?;
        Ok(entry)
    }

    /// Write the contents of a disk at an instant, sparse, to the empty file behind a descriptor.
    /// `path` is used in errors. `announce` is called beforehand with the number of bytes that will
    /// be written. Give at most one of `at_ns` and `mark`; without either, the instant is the end.
    #[pyo3(signature = (disk, descriptor, path, announce, at_ns=None, mark=None))]
    #[allow(clippy::too_many_arguments)] // They are the Python method's.
    fn export_image(
        &self,
        py: Python<'_>,
        disk: u16,
        descriptor: i32,
        path: PathBuf,
        announce: Bound<'_, PyAny>,
        at_ns: Option<u64>,
        mark: Option<String>,
    ) -> PyResult<()> {
        let instant = match (at_ns, mark) {
            (Some(ns), _) => recording::Instant::CompletedBy(ns),
            (None, Some(name)) => recording::Instant::Mark(name),
            (None, None) => recording::Instant::End,
        };
        // On this thread: abandoned work must not open a descriptor that has become another file.
        let out = Output::of_descriptor(descriptor, &path).map_err(error)?;
        let inner = Arc::clone(&self.inner);
        let announced = |bytes| announce.call1((bytes,)).map(|_| ());
        let exported = announcing(py, announced, move |_, announcer| {
            let image = inner.image_at(disk, &instant)?;
            match announcer.announce(image.content_bytes()) {
                true => image.export(out.file()),
                false => Ok(()),
            }
        });
        exported?.map_err(error)
    }

    /// Write the same recording without file contents to the empty file behind a descriptor; return
    /// its size. `names` is `replace`, `extensions` or `keep`. Anyone who keeps the `key` of 32
    /// bytes can guess contents.
    fn strip(
        &self,
        py: Python<'_>,
        descriptor: i32,
        path: PathBuf,
        names: &str,
        key: [u8; 32],
    ) -> PyResult<u64> {
        let names = match names {
            "replace" => Names::Replace,
            "extensions" => Names::Extensions,
            "keep" => Names::Keep,
            other => return Err(RecordingError::new_err(format!("names: {other:?}"))),
        };
        let out = Output::of_descriptor(descriptor, &path).map_err(error)?;
        let inner = Arc::clone(&self.inner);
        let stripped = working(py, move || fscost_strip::strip(&inner, out, names, &key))?;
        Ok(stripped.file_bytes)
    }

    /// Write one disk's requests as a dm-log-writes log to the empty file behind a descriptor;
    /// return the number of entries. `announce` is called beforehand with the log's size.
    fn export_dm_log_writes(
        &self,
        py: Python<'_>,
        disk: u16,
        descriptor: i32,
        path: PathBuf,
        announce: Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let out = Output::of_descriptor(descriptor, &path).map_err(error)?;
        let inner = Arc::clone(&self.inner);
        let announced = |bytes| announce.call1((bytes,)).map(|_| ());
        let exported = announcing(py, announced, move |_, announcer| {
            let bytes = dm_log_writes::export_bytes(&inner, disk)?;
            match announcer.announce(bytes) {
                true => dm_log_writes::export(&inner, disk, out),
                false => Ok(0),
            }
        });
        exported?.map_err(error)
    }
}

fn end_text(end: &recording::End) -> String {
    match end {
        recording::End::Finished => "finished".into(),
        recording::End::Cut { at_byte } => format!("truncated at byte {at_byte}"),
        recording::End::Corrupt { at_byte, what } => {
            if what.starts_with("at byte") {
                format!("damaged {what}")
            } else {
                format!("damaged at byte {at_byte}: {what}")
            }
        }
    }
}
