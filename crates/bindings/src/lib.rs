//! `fscost._native`: recordings and their explanation for Python. Only conversions, no logic.

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
use fscost_recording::{self as recording, Output};
use fscost_strip::Names;
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
    "A recording that cannot be read, or a request that it cannot satisfy."
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
        // Exception class of Rust panics. It derives from BaseException, so only code that names it
        // can catch it.
        module.add("PanicException", module.py().get_type::<PanicException>())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Converts an error to an exception with two arguments: the message, and the kind in one word.
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

/// A recording opened for reading. A truncated or damaged recording opens up to the damage.
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

    /// Return disks, sizes and the kind of end: `{"stripped", "begin_unix_ns", "file_bytes",
    /// "frames", "events", "content_bytes", "content_stored_bytes", "end", "last_ns", "disks":
    /// [{"name", "size_bytes", "logical_block_bytes", "physical_block_bytes"}]}`.
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

    /// Return the intervals between marks with their totals: `[{"name", "begin_ns", "end_ns",
    /// "first_write_bytes", "disks": {name: totals}, "detail": JSON text or None}]`. The first,
    /// `before`, holds everything before the first mark.
    fn intervals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let found = py
            .detach(|| recording::intervals(&self.inner))
            .map_err(error)?;
        self.interval_entries(py, &found)
    }

    /// Return all marks: `[(at_ns, name, JSON text or None)]`.
    fn marks(&self, py: Python<'_>) -> PyResult<Vec<MarkTexts>> {
        let marks = py.detach(|| self.inner.marks()).map_err(error)?;
        Ok(mark_texts(&marks))
    }

    /// Return the requests in batches of columns, little-endian: `{"event": u64 bytes (its number,
    /// marks counted), "submit_ns": u64, "complete_ns", "offset", "length", "disk": u16, "op": u8,
    /// "fua": u8}`.
    fn requests(slf: Bound<'_, Self>) -> Requests {
        Requests::of(slf)
    }

    /// Explain each written byte: rows in batches of columns, and the names for the numbers in
    /// them.
    fn explain(&self, py: Python<'_>) -> PyResult<Explanation> {
        py.detach(|| Explanation::new(&self.inner)).map_err(error)
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
        py.detach(|| Explanation::packing(&self.inner, out, level))
            .map_err(error)
    }

    /// Return the requests of one disk as a workload for an SSD model: see `wear.rs`.
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

    /// Return an unexplained workload for each member of the array that the disk stands for.
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

    /// Return how busy each disk, or each member of the array that one disk stands for, would have
    /// been if it were a `device`: `{"intervals": [{"name", "elapsed_s", "members": [{"busy_s",
    /// "nand_write_bytes", "erased_blocks", …}]}], "rows": (full, cached, reconstruct,
    /// read_modify_write)}`.
    #[pyo3(signature = (device, array=None))]
    fn times<'py>(
        &self,
        py: Python<'py>,
        device: wear::Device,
        array: Option<(u16, array::Shape)>,
    ) -> PyResult<Bound<'py, PyDict>> {
        array::times(py, &self.inner, &device, array)
    }

    /// Replay the requests on device models, once for each assumption of `waits` ("flushes",
    /// "all"): lists of `[{"name", "recorded_ns", "modelled_ns", "disks":
    /// [{"busy_ns", "read", "write", "flush", "discard"}]}]`, the last four as `{"buckets":
    /// [(least, most, count)], "sum_ns", "max_ns"}`. `completions` holds pairs of 64-bit numbers: a
    /// request of the recording, and the time at which its live model completed it.
    #[pyo3(signature = (models, waits, seed, completions=None))]
    fn replay<'py>(
        &self,
        py: Python<'py>,
        models: Vec<(String, String)>,
        waits: Vec<String>,
        seed: u64,
        completions: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyList>> {
        replay::replay(
            py,
            &self.inner,
            &models,
            &waits,
            seed,
            completions.unwrap_or_default(),
        )
    }

    /// Return the state from which a mount would recover disks that hold the events completed by
    /// `at_ns` except those in `lost`: see `recovery.rs`.
    fn recovery<'py>(
        &self,
        py: Python<'py>,
        at_ns: u64,
        lost: Vec<u64>,
    ) -> PyResult<Bound<'py, PyList>> {
        recovery::recovery(py, &self.inner, at_ns, &lost)
    }

    /// Read and check everything: `{"whole": bool, "end": str, "damaged": [str], "events",
    /// "content_bytes", "content_stored_bytes", "disks": {name: totals}}`.
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
        let image = py.detach(|| self.inner.image_at(disk, &instant));
        let image = image.map_err(error)?;
        announce.call1((image.content_bytes(),))?;
        let out = Output::of_descriptor(descriptor, &path).map_err(error)?;
        py.detach(|| image.export(out.file())).map_err(error)
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
        py.detach(|| fscost_strip::strip(&self.inner, out, names, &key))
            .map(|s| s.file_bytes)
            .map_err(error)
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

/// Time, name, and detail as JSON.
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

/// Convert a dm-log-writes log to a recording in the empty file behind a descriptor; return the
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
