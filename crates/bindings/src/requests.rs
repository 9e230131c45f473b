//! The requests of a recording, as columns.

use crate::{Recording, error};
use fscost_recording::{self as recording, Op, Survey};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict, PyList},
};

/// An iterator of column batches.
#[pyclass(module = "fscost._native")]
pub struct Requests {
    recording: Py<Recording>,
    next: usize,
    event: u64,
    survey: Survey,
}

/// Minimum number of events per batch: large enough for Parquet, small enough for memory.
const BATCH_EVENTS: usize = 1 << 18;

impl Requests {
    pub(crate) fn of(recording: Bound<'_, Recording>) -> Self {
        Self {
            survey: Survey::new(recording.get().inner.header().disks.len()),
            recording: recording.unbind(),
            next: 0,
            event: 0,
        }
    }
}

#[pymethods]
impl Requests {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let recording = &self.recording.get().inner;
        let mut columns = Columns::default();
        let (first, event, survey) = (self.next, self.event, &mut self.survey);
        (self.next, self.event) = py
            .detach(|| columns.fill(recording, first, event, survey))
            .map_err(error)?;
        if columns.op.is_empty() {
            return Ok(None);
        }
        let batch = PyDict::new(py);
        for (name, bytes) in [
            ("event", &columns.event),
            ("submit_ns", &columns.submit_ns),
            ("complete_ns", &columns.complete_ns),
            ("offset", &columns.offset),
            ("length", &columns.length),
            ("disk", &columns.disk),
            ("op", &columns.op),
            ("fua", &columns.fua),
        ] {
            batch.set_item(name, PyBytes::new(py, bytes))?;
        }
        Ok(Some(batch))
    }

    /// Return the intervals of the requests read so far, in the form of `Recording.intervals`.
    /// After the last batch, they cover the whole recording.
    fn intervals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let intervals = self.survey.intervals();
        self.recording.get().interval_entries(py, intervals)
    }
}

#[derive(Default)]
struct Columns {
    event: Vec<u8>,
    submit_ns: Vec<u8>,
    complete_ns: Vec<u8>,
    offset: Vec<u8>,
    length: Vec<u8>,
    disk: Vec<u8>,
    op: Vec<u8>,
    fua: Vec<u8>,
}

impl Columns {
    /// Fills the columns from frame `next` on, whose first event has the number `first`. Returns
    /// the first frame that was not read, and the number of its first event.
    fn fill(
        &mut self,
        recording: &recording::Recording,
        mut next: usize,
        mut first: u64,
        survey: &mut Survey,
    ) -> recording::Result<(usize, u64)> {
        let mut frame = recording::Frame::default();
        while self.op.len() < BATCH_EVENTS && next < recording.frames().len() {
            recording.read_frame(next, false, &mut frame)?;
            survey.add(&frame)?;
            let numbered = (first..).zip(&frame.events);
            for (number, event) in numbered.filter(|(_, e)| e.op != Op::Mark) {
                self.event.extend(number.to_le_bytes());
                self.submit_ns.extend(event.submit_ns.to_le_bytes());
                self.complete_ns.extend(event.complete_ns.to_le_bytes());
                self.offset.extend(event.offset.to_le_bytes());
                self.length.extend(event.length.to_le_bytes());
                self.disk.extend(event.disk.to_le_bytes());
                self.op.push(event.op as u8);
                self.fua.push(u8::from(event.fua));
            }
            next += 1;
            first += frame.events.len() as u64;
        }
        Ok((next, first))
    }
}
