//! `fscost._native`: recordings and their explanation for Python. Conversions only, no logic.

#![forbid(unsafe_code)]

mod array;
mod explanation;
mod latency;
mod names;
mod recovery;
mod replay;
mod requests;
mod wear;

use array::Array;
use explanation::{Batches, Explanation};
use fscost_explain::Names;
use fscost_recording::{self as recording, Output};
use pyo3::{
    create_exception,
    exceptions::PyException,
    prelude::*,
    types::{PyDict, PyList},
};
use requests::Requests;
use std::path::PathBuf;

create_exception!(
    _native,
    RecordingError,
    PyException,
    "A recording that cannot be read, or a wish that it cannot fulfil."
);

/// The native half of fscost.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::latency::{latency_check, latency_parameters};
    #[pymodule_export]
    use super::names::{causes, structures};
    #[pymodule_export]
    use super::wear::{Workload, trace_workloads};
    #[pymodule_export]
    use super::{
        Array, Batches, Explanation, Recording, RecordingError, Requests, import_dm_log_writes,
    };
    use pyo3::{panic::PanicException, prelude::*};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // What a panic becomes; it derives from BaseException, so nothing catches it that does not
        // know its name.
        module.add("PanicException", module.py().get_type::<PanicException>())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Its arguments: what went wrong, and the kind of it in one word.
fn error(error: recording::Error) -> PyErr {
    let kind = match error.kind {
        recording::ErrorKind::Io => "io",
        recording::ErrorKind::HostDiskFull => "host-disk-full",
        recording::ErrorKind::TooLarge => "too-large",
        recording::ErrorKind::HostMemory => "host-memory",
        recording::ErrorKind::Format => "format",
        recording::ErrorKind::Corrupt => "corrupt",
        recording::ErrorKind::Invalid => "invalid",
    };
    RecordingError::new_err((error.to_string(), kind))
}

/// A recording opened for reading; one that was cut or damaged opens as far as it is whole.
#[pyclass(frozen, module = "fscost._native")]
struct Recording {
    inner: recording::Recording,
}

#[pymethods]
impl Recording {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        Ok(Self {
            inner: recording::Recording::open(&path).map_err(error)?,
        })
    }

    /// Disks, size and how it ends: `{"stripped", "begin_unix_ns", "file_bytes", "frames",
    /// "events", "content_bytes", "content_stored_bytes", "end",
    /// "last_ns", "disks": [{"name", "size_bytes", "logical_block_bytes",
    /// "physical_block_bytes"}]}`.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (header, frames) = (self.inner.header(), self.inner.frames());
        let info = PyDict::new(py);
        info.set_item("version", recording::VERSION)?;
        info.set_item("stripped", header.stripped.text())?;
        info.set_item("begin_unix_ns", header.begin_unix_ns)?;
        info.set_item("file_bytes", self.inner.file_bytes())?;
        info.set_item("frames", frames.len())?;
        info.set_item(
            "events",
            frames.iter().map(|f| u64::from(f.event_count)).sum::<u64>(),
        )?;
        info.set_item(
            "content_bytes",
            frames
                .iter()
                .map(|f| u64::from(f.content_bytes))
                .sum::<u64>(),
        )?;
        info.set_item(
            "content_stored_bytes",
            frames
                .iter()
                .map(|f| u64::from(f.content_stored_bytes))
                .sum::<u64>(),
        )?;
        info.set_item("last_ns", frames.last().map_or(0, |f| f.last_complete_ns))?;
        info.set_item("end", end_text(self.inner.end()))?;
        let disks = PyList::empty(py);
        for disk in &header.disks {
            let entry = PyDict::new(py);
            entry.set_item("name", &disk.name)?;
            entry.set_item("size_bytes", disk.size_bytes)?;
            entry.set_item("logical_block_bytes", disk.logical_block_bytes)?;
            entry.set_item("physical_block_bytes", disk.physical_block_bytes)?;
            disks.append(entry)?;
        }
        info.set_item("disks", disks)?;
        Ok(info)
    }

    /// The intervals between marks, summed: `[{"name", "begin_ns", "end_ns", "first_write_bytes",
    /// "disks": {name: totals}, "detail": JSON text or
    /// None}]`. The first, `before`, holds what precedes the first mark.
    fn intervals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let found = py
            .detach(|| recording::intervals(&self.inner))
            .map_err(error)?;
        self.interval_entries(py, &found)
    }

    /// All marks: `[(at_ns, name, JSON text or None)]`.
    fn marks(&self, py: Python<'_>) -> PyResult<Vec<MarkTexts>> {
        let marks = py.detach(|| self.inner.marks()).map_err(error)?;
        Ok(mark_texts(&marks))
    }

    /// Requests in batches of columns, little-endian: `{"event": u64 bytes (its number, marks
    /// counted), "submit_ns": u64, "complete_ns", "offset",
    /// "length", "disk": u16, "op": u8, "fua": u8}`.
    fn requests(slf: Bound<'_, Self>) -> Requests {
        Requests::of(slf)
    }

    /// What each written byte was: rows in batches of columns, and the names that their numbers
    /// stand for.
    fn explain(&self, py: Python<'_>) -> PyResult<Explanation> {
        py.detach(|| Explanation::new(&self.inner)).map_err(error)
    }

    /// The requests of one disk as a workload for a model of an SSD: see `wear.rs`.
    #[pyo3(signature = (disk, device, measured, explanation=None, by=None))]
    fn workload(
        &self,
        py: Python<'_>,
        disk: u16,
        device: wear::Device,
        measured: Vec<String>,
        explanation: Option<&Explanation>,
        by: Option<&str>,
    ) -> PyResult<wear::Workload> {
        wear::workload(py, &self.inner, disk, &device, &measured, explanation, by)
    }

    /// The same for each member of an array that the disk stands for, without an explanation.
    fn member_workloads(
        &self,
        py: Python<'_>,
        disk: u16,
        shape: array::Shape,
        device: wear::Device,
        measured: Vec<String>,
    ) -> PyResult<Vec<wear::Workload>> {
        array::member_workloads(py, &self.inner, disk, &shape, &device, &measured)
    }

    /// How busy the disks would have been as such devices, or the members of an array that one disk
    /// stands for:
    /// `{"intervals": [{"name", "elapsed_s", "members": [{"busy_s", "nand_write_bytes",
    /// "erased_blocks", …}]}], "rows": (full,
    /// cached, reconstruct, read_modify_write)}`.
    #[pyo3(signature = (device, array=None))]
    fn times<'py>(
        &self,
        py: Python<'py>,
        device: wear::Device,
        array: Option<(u16, array::Shape)>,
    ) -> PyResult<Bound<'py, PyDict>> {
        array::times(py, &self.inner, &device, array)
    }

    /// How long the disks would have taken: `[{"name", "recorded_ns", "modelled_ns", "disks":
    /// [{"busy_ns", "read", "write", "flush", "discard"}]}]`, the last four as `{"buckets": [(least,
    /// most, count)], "sum_ns", "max_ns"}`. `completions`: pairs of 64-bit numbers, a request of the
    /// recording and when its live model completed it.
    #[pyo3(signature = (models, waits, seed, completions=None))]
    fn replay<'py>(
        &self,
        py: Python<'py>,
        models: Vec<(String, String)>,
        waits: &str,
        seed: u64,
        completions: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyList>> {
        replay::replay(
            py,
            &self.inner,
            &models,
            waits,
            seed,
            completions.unwrap_or_default(),
        )
    }

    /// What a mount of the disks as they were would begin with, without these events: see
    /// `recovery.rs`.
    fn recovery<'py>(
        &self,
        py: Python<'py>,
        at_ns: u64,
        lost: Vec<u64>,
    ) -> PyResult<Bound<'py, PyList>> {
        recovery::recovery(py, &self.inner, at_ns, &lost)
    }

    /// Read everything: `{"whole": bool, "end": str, "damaged": [str], "events", "content_bytes",
    /// "content_stored_bytes", "disks": {name: totals}}`.
    fn verify<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = py
            .detach(|| recording::verify(&self.inner))
            .map_err(error)?;
        let entry = PyDict::new(py);
        entry.set_item("whole", report.is_whole())?;
        entry.set_item("end", end_text(&report.end))?;
        entry.set_item("damaged", &report.damaged)?;
        entry.set_item("events", report.events)?;
        entry.set_item("content_bytes", report.content_bytes)?;
        entry.set_item("content_stored_bytes", report.content_stored_bytes)?;
        entry.set_item("disks", self.named_totals(py, &report.totals)?)?;
        Ok(entry)
    }

    /// Write the disk as it was at an instant to the empty file behind a descriptor, sparse. `path`
    /// is for errors; `announce` is called with the number
    /// of bytes that will be written, before. `at_ns` and `mark` are exclusive; neither means the
    /// end.
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
        let image = py.detach(|| self.inner.image_at(disk, &instant));
        let image = image.map_err(error)?;
        announce.call1((image.content_bytes(),))?;
        let out = Output::of_descriptor(descriptor, &path).map_err(error)?;
        py.detach(|| image.export(out.file())).map_err(error)
    }

    /// Write the same recording, compressed at zstd's level, to the empty file behind a descriptor;
    /// returns its size.
    fn pack(&self, py: Python<'_>, descriptor: i32, path: PathBuf, level: i32) -> PyResult<u64> {
        let out = Output::of_descriptor(descriptor, &path).map_err(error)?;
        py.detach(|| recording::pack(&self.inner, out, level))
            .map(|s| s.file_bytes)
            .map_err(error)
    }

    /// Write the same recording without the contents of files to the empty file behind a
    /// descriptor; returns its size. `names` is `replace`, `extensions` or `keep`; who keeps
    /// the `key` of 32 bytes can guess contents.
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
        py.detach(|| fscost_explain::strip(&self.inner, out, names, &key))
            .map(|s| s.file_bytes)
            .map_err(error)
    }

    /// Write one disk's requests as a dm-log-writes log to the empty file behind a descriptor;
    /// returns the number of entries. `announce` is called with
    /// the log's size, before.
    fn export_dm_log_writes(
        &self,
        py: Python<'_>,
        disk: u16,
        descriptor: i32,
        path: PathBuf,
        announce: Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let bytes = py.detach(|| recording::dm_log_writes::export_bytes(&self.inner, disk));
        announce.call1((bytes.map_err(error)?,))?;
        let out = Output::of_descriptor(descriptor, &path).map_err(error)?;
        py.detach(|| recording::dm_log_writes::export(&self.inner, disk, out))
            .map_err(error)
    }
}

impl Recording {
    fn interval_entries<'py>(
        &self,
        py: Python<'py>,
        intervals: &[recording::Interval],
    ) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for interval in intervals {
            let entry = PyDict::new(py);
            entry.set_item("name", &interval.mark.name)?;
            entry.set_item("begin_ns", interval.begin_ns)?;
            entry.set_item("end_ns", interval.end_ns)?;
            entry.set_item("first_write_bytes", interval.first_write_bytes)?;
            let detail =
                (!interval.mark.detail.is_null()).then(|| interval.mark.detail.to_string());
            entry.set_item("detail", detail)?;
            entry.set_item("disks", self.named_totals(py, &interval.totals)?)?;
            list.append(entry)?;
        }
        Ok(list)
    }

    fn named_totals<'py>(
        &self,
        py: Python<'py>,
        totals: &[recording::Totals],
    ) -> PyResult<Bound<'py, PyDict>> {
        let named = PyDict::new(py);
        for (disk, t) in self.inner.header().disks.iter().zip(totals) {
            let entry = PyDict::new(py);
            let fields = [
                ("read_requests", t.read_requests),
                ("read_bytes", t.read_bytes),
                ("write_requests", t.write_requests),
                ("write_bytes", t.write_bytes),
                ("zero_requests", t.zero_requests),
                ("zero_bytes", t.zero_bytes),
                ("discard_requests", t.discard_requests),
                ("discard_bytes", t.discard_bytes),
                ("punch_requests", t.punch_requests),
                ("punch_bytes", t.punch_bytes),
                ("flushes", t.flushes),
            ];
            for (name, value) in fields {
                entry.set_item(name, value)?;
            }
            named.set_item(&disk.name, entry)?;
        }
        Ok(named)
    }
}

/// Instant, name, and detail as JSON.
type MarkTexts = (u64, String, Option<String>);

fn mark_texts(marks: &[(u64, recording::Mark)]) -> Vec<MarkTexts> {
    let detail = |m: &recording::Mark| (!m.detail.is_null()).then(|| m.detail.to_string());
    let texts = marks.iter();
    texts
        .map(|(at_ns, mark)| (*at_ns, mark.name.clone(), detail(mark)))
        .collect()
}

fn end_text(end: &recording::End) -> String {
    match end {
        recording::End::Finished => "finished".into(),
        recording::End::Cut { at_byte } => format!("cut at byte {at_byte}"),
        recording::End::Corrupt { at_byte, what } => {
            if what.starts_with("at byte") {
                format!("damaged {what}")
            } else {
                format!("damaged at byte {at_byte}: {what}")
            }
        }
    }
}

/// Make a recording of a dm-log-writes log in the empty file behind a descriptor; returns the
/// number of entries.
#[pyfunction]
fn import_dm_log_writes(
    py: Python<'_>,
    log: PathBuf,
    descriptor: i32,
    path: PathBuf,
) -> PyResult<u64> {
    let out = Output::of_descriptor(descriptor, &path).map_err(error)?;
    py.detach(|| recording::dm_log_writes::import(&log, out))
        .map_err(error)
}
