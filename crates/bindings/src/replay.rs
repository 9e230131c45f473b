//! Replays of recordings on latency models of devices, as dictionaries.

use crate::{
    interruptible::interruptible,
    refused,
    wear::{format_of, unreadable},
};
use fscost_latency::Model;
use fscost_replay::{DiskTimes, Histogram, IntervalTimes, Requests, Traced, Waits};
use pyo3::{prelude::*, types::PyDict};
use std::{path::PathBuf, sync::Arc, thread};

/// Replays requests with each assumption of `waits`, on threads of their own.
pub fn all(
    requests: &Requests,
    models: &[Model],
    waits: &[Waits],
    seed: u64,
) -> Vec<Vec<IntervalTimes>> {
    thread::scope(|scope| {
        let replay = |&each| scope.spawn(move || requests.replay(models, each, seed));
        let threads: Vec<_> = waits.iter().map(replay).collect();
        threads.into_iter().map(joined).collect()
    })
}

/// The models of the disks, and the assumptions of the replays.
type Parsed = (Vec<Model>, Vec<Waits>);
/// For each assumption, its intervals.
type Intervals<'py> = Vec<Vec<Bound<'py, PyDict>>>;

/// Parses the name and the text of models, and the names of assumptions.
pub fn parsed(models: &[(String, String)], waits: &[String]) -> PyResult<Parsed> {
    let models = models.iter().map(|(file, text)| Model::parse(file, text));
    let models = models.collect::<Result<_, _>>().map_err(refused)?;
    let waits = waits.iter().map(|each| named(each));
    Ok((models, waits.collect::<PyResult<_>>()?))
}

/// Converts the intervals of replays.
pub fn intervals<'py>(py: Python<'py>, found: &[Vec<IntervalTimes>]) -> PyResult<Intervals<'py>> {
    let one = |each: &Vec<_>| each.iter().map(|each| interval(py, each)).collect();
    found.iter().map(one).collect()
}

/// A block trace of another tool, to be replayed on models.
#[pyclass(frozen, module = "fscost._native")]
pub struct TracedRequests {
    inner: Arc<Traced>,
}

#[pymethods]
impl TracedRequests {
    /// Read a trace; `form` names its format. Errors are those of a recording.
    #[new]
    #[pyo3(signature = (path, form=None))]
    fn new(py: Python<'_>, path: PathBuf, form: Option<&str>) -> PyResult<TracedRequests> {
        let format = format_of(form)?;
        let read = move |_: &_| fscost_replay::of_trace(&path, format);
        let inner = Arc::new(interruptible(py, read)?.map_err(unreadable)?);
        Ok(TracedRequests { inner })
    }

    /// Return the names of the disks.
    fn disks(&self) -> Vec<String> {
        self.inner.disks.clone()
    }

    /// Replay the requests on a model of each disk, as a recording does.
    fn replay<'py>(
        &self,
        py: Python<'py>,
        models: Vec<(String, String)>,
        waits: Vec<String>,
        seed: u64,
    ) -> PyResult<Intervals<'py>> {
        let (models, waits) = parsed(&models, &waits)?;
        let inner = Arc::clone(&self.inner);
        let replay = move |_: &_| all(&inner.requests, &models, &waits, seed);
        let found = interruptible(py, replay)?;
        intervals(py, &found)
    }
}

/// Returns the assumption with this name.
fn named(waits: &str) -> PyResult<Waits> {
    match waits {
        "flushes" => Ok(Waits::ForFlushes),
        "all" => Ok(Waits::ForAll),
        other => Err(refused(format!("waits {other:?} is unknown"))),
    }
}

/// Returns the result of a thread, or continues its panic.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the times of an interval and of its disks.
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
