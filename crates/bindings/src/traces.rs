//! Summaries of other tools' traces as dictionaries.

use crate::{
    interruptible::interruptible,
    wear::{format_of, unreadable},
};
use fscost_traces::{Summary, Total, Trace, summaries};
use pyo3::{
    prelude::*,
    types::{IntoPyDict, PyDict},
};
use std::path::PathBuf;

/// Name of the format, seconds from the first line to the last, and the disks by name.
type Summaries<'py> = (&'static str, f64, Vec<(String, Bound<'py, PyDict>)>);

/// Read a trace and sum its requests: the format's name, the trace's seconds, and a dictionary for
/// each disk. `form` is the format's name; without it, the content decides.
#[pyfunction]
#[pyo3(signature = (path, form=None))]
pub fn trace_summaries<'py>(
    py: Python<'py>,
    path: PathBuf,
    form: Option<&str>,
) -> PyResult<Summaries<'py>> {
    let format = format_of(form)?;
    let read = move |_: &_| {
        let mut trace = Trace::open(&path, format)?;
        let found = summaries(&mut trace)?;
        Ok((trace.format().name(), trace.duration_ns(), found))
    };
    let (format, duration_ns, disks) = interruptible(py, read)?.map_err(unreadable)?;
    let disks = disks
        .into_iter()
        .map(|(name, found)| Ok((name, told(py, &found)?)));
    Ok((
        format,
        duration_ns as f64 / 1e9,
        disks.collect::<PyResult<_>>()?,
    ))
}

fn told<'py>(py: Python<'py>, found: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let sizes = found.write_sizes.iter().enumerate();
    let sizes: Vec<_> = sizes
        .filter(|(_, total)| total.requests > 0)
        .map(|(power, total)| (1u128 << power, total.requests, total.bytes))
        .collect();
    let told = PyDict::new(py);
    let totals = [
        ("read", found.read),
        ("write", found.write),
        ("discard", found.discard),
        ("zero", found.zero),
    ];
    for (name, Total { requests, bytes }) in totals {
        told.set_item(format!("{name}_requests"), requests)?;
        told.set_item(format!("{name}_bytes"), bytes)?;
    }
    let counts = [
        ("flushes", found.flushes),
        ("fua_writes", found.fua),
        ("sequential_write_bytes", found.sequential_write_bytes),
    ];
    told.update(counts.into_py_dict(py)?.as_mapping())?;
    told.set_item("again_write_bytes", found.again_write_bytes)?;
    told.set_item("distinct_write_bytes", found.distinct_bytes)?;
    told.set_item("touched_write_bytes", found.touched_bytes)?;
    told.set_item("write_sizes", sizes)?;
    Ok(told)
}
