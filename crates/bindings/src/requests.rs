//! The requests of a recording, as columns.

use crate::{
    columns::{Columns, append, column},
    detached,
    recording::{Recording, interval_entries},
};
use fscost_recording::{self as recording, Op, Survey};
use pyo3::{
    prelude::*,
    types::{IntoPyDict as _, PyDict},
};

/// An iterator of column batches.
#[pyclass(module = "fscost._native")]
pub struct Requests {
    recording: Py<Recording>,
    reader: Reader,
}

struct Reader {
    /// Index of the next frame, and the number of its first event.
    next: usize,
    event: u64,
    survey: Survey,
}

/// Minimum number of events per batch: large enough for Parquet, small enough for memory.
const BATCH_EVENTS: usize = 1 << 18;

impl Requests {
    pub fn of(recording: Bound<'_, Recording>) -> Self {
        let survey = Survey::new(recording.get().inner.header().disks.len());
        Self {
            recording: recording.unbind(),
            reader: Reader {
                next: 0,
                event: 0,
                survey,
            },
        }
    }
}

#[pymethods]
impl Requests {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let (recording, reader) = (&self.recording.get().inner, &mut self.reader);
        let batch = detached(py, || reader.batch(recording))?;
        batch.map(|columns| columns.into_py_dict(py)).transpose()
    }

    /// Return the intervals of the requests read so far, in the form of `Recording.intervals`.
    /// After the last batch, they cover the whole recording.
    fn intervals<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let intervals = self.reader.survey.intervals();
        interval_entries(py, &self.recording.get().inner, intervals)
    }
}

impl Reader {
    /// Returns the next requests; `None` after the last.
    fn batch(&mut self, source: &recording::Recording) -> recording::Result<Option<Columns<8>>> {
        let mut frame = recording::Frame::default();
        let (mut batch, mut count) = (None, 0);
        while count < BATCH_EVENTS && self.next < source.frames().len() {
            source.read_frame(self.next, false, &mut frame)?;
            self.survey.add(&frame)?;
            let numbered = (self.event..).zip(&frame.events);
            let requests: Vec<_> = numbered.filter(|(_, e)| e.op != Op::Mark).collect();
            count += requests.len();
            if !requests.is_empty() {
                append(&mut batch, columns(&requests));
            }
            self.next += 1;
            self.event += frame.events.len() as u64;
        }
        Ok(batch)
    }
}

fn columns(requests: &[(u64, &recording::Event)]) -> Columns<8> {
    [
        column("event", requests, |(number, _)| number.to_le_bytes()),
        column("submit_ns", requests, |(_, e)| e.submit_ns.to_le_bytes()),
        column("complete_ns", requests, |(_, e)| {
            e.complete_ns.to_le_bytes()
        }),
        column("offset", requests, |(_, e)| e.offset.to_le_bytes()),
        column("length", requests, |(_, e)| e.length.to_le_bytes()),
        column("disk", requests, |(_, e)| e.disk.to_le_bytes()),
        column("op", requests, |(_, e)| [e.op as u8]),
        column("fua", requests, |(_, e)| [u8::from(e.fua)]),
    ]
}
