//! Replays of recordings on latency models of devices, as dictionaries.

use crate::latency::refused;
use fscost_latency::Model;
use fscost_recording::Recording;
use fscost_replay::{DiskTimes, Histogram, IntervalTimes, Requests, Waits};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyList},
};
use std::{collections::HashMap, thread};

/// Replays a recording with each assumption of `waits`, on threads of their own. `models` holds the
/// file name and text of each disk's model. `completions` holds requests and the times at which
/// live models completed them.
pub fn replay<'py>(
    py: Python<'py>,
    recording: &Recording,
    models: &[(String, String)],
    waits: &[String],
    seed: u64,
    completions: &[u8],
) -> PyResult<Bound<'py, PyList>> {
    let waits: Vec<Waits> = waits
        .iter()
        .map(|each| named(each))
        .collect::<PyResult<_>>()?;
    let models = models.iter().map(|(file, text)| Model::parse(file, text));
    let models: Vec<Model> = models.collect::<Result<_, _>>().map_err(refused)?;
    let found = py.detach(|| -> fscost_recording::Result<Vec<Vec<IntervalTimes>>> {
        let requests = Requests::completed(recording, &pairs(completions))?;
        let of = &|waits| requests.replay(&models, waits, seed);
        Ok(thread::scope(|scope| {
            let threads: Vec<_> = waits
                .iter()
                .map(|&each| scope.spawn(move || of(each)))
                .collect();
            threads.into_iter().map(joined).collect()
        }))
    });
    let found = found.map_err(crate::error)?;
    let replays = found.iter().map(|intervals| {
        let intervals = intervals.iter().map(|each| interval(py, each));
        PyList::new(py, intervals.collect::<PyResult<Vec<_>>>()?)
    });
    PyList::new(py, replays.collect::<PyResult<Vec<_>>>()?)
}

fn named(waits: &str) -> PyResult<Waits> {
    match waits {
        "flushes" => Ok(Waits::ForFlushes),
        "all" => Ok(Waits::ForAll),
        other => {
            let what = format!("waits {other:?} is unknown");
            Err(PyValueError::new_err(what))
        }
    }
}

/// Returns the result of a thread, or continues its panic.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Parses pairs of 64-bit numbers, little-endian: the number of a request and the time at which it
/// was completed.
fn pairs(bytes: &[u8]) -> HashMap<u64, u64> {
    let (words, _) = bytes.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let number = |word: [u8; 8]| u64::from_le_bytes(word);
    pairs
        .iter()
        .map(|&[request, at_ns]| (number(request), number(at_ns)))
        .collect()
}

fn interval<'py>(py: Python<'py>, found: &IntervalTimes) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    values.set_item("name", &found.name)?;
    values.set_item("recorded_ns", found.recorded_ns)?;
    values.set_item("modelled_ns", found.modelled_ns)?;
    let disks = found.disks.iter().map(|disk| disk_times(py, disk));
    values.set_item("disks", disks.collect::<PyResult<Vec<_>>>()?)?;
    Ok(values)
}

fn disk_times<'py>(py: Python<'py>, found: &DiskTimes) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    values.set_item("busy_ns", found.busy_ns)?;
    for (name, latencies) in DiskTimes::OPS.iter().zip(&found.latencies) {
        values.set_item(name, histogram(py, latencies)?)?;
    }
    Ok(values)
}

/// Returns the smallest and largest latency and the count of each non-empty bucket, and the exact
/// sum and maximum.
fn histogram<'py>(py: Python<'py>, found: &Histogram) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    values.set_item("buckets", found.buckets().collect::<Vec<_>>())?;
    values.set_item("sum_ns", found.sum_ns())?;
    values.set_item("max_ns", found.max_ns())?;
    Ok(values)
}
