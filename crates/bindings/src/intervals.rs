//! Marks and the intervals between them, as dictionaries and tuples.

use fscost_recording::{Interval, Mark, Recording, Totals};
use pyo3::{
    prelude::*,
    types::{IntoPyDict as _, PyDict},
};

/// Returns the intervals as dictionaries.
pub fn interval_entries<'py>(
    py: Python<'py>,
    source: &Recording,
    intervals: &[Interval],
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let entry = |interval: &Interval| {
        let entry = PyDict::new(py);
        entry.set_item("name", &interval.mark.name)?;
        entry.set_item("begin_ns", interval.begin_ns)?;
        entry.set_item("end_ns", interval.end_ns)?;
        entry.set_item("first_write_bytes", interval.first_write_bytes)?;
        entry.set_item("detail", detail(&interval.mark))?;
        entry.set_item("disks", named_totals(py, source, &interval.totals)?)?;
        Ok(entry)
    };
    intervals.iter().map(entry).collect()
}

/// Returns the totals of each disk as dictionaries, by name.
pub fn named_totals<'py>(
    py: Python<'py>,
    source: &Recording,
    totals: &[Totals],
) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    for (disk, t) in source.header().disks.iter().zip(totals) {
        let totals = [
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
        named.set_item(&disk.name, totals.into_py_dict(py)?)?;
    }
    Ok(named)
}

/// Time, name, and detail as JSON.
pub type MarkTexts = (u64, String, Option<String>);

/// Returns the marks with their times.
pub fn mark_texts(marks: &[(u64, Mark)]) -> Vec<MarkTexts> {
    let texts = |(at_ns, mark): &(u64, Mark)| (*at_ns, mark.name.clone(), detail(mark));
    marks.iter().map(texts).collect()
}

fn detail(mark: &Mark) -> Option<String> {
    (!mark.detail.is_null()).then(|| mark.detail.to_string())
}
