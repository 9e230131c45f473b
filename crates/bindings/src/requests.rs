//! The requests of a recording, as columns.

use crate::{
    arrow::{Batch, column, flags, named, nullable, refused, texts},
    detached,
    intervals::interval_entries,
};
use arrow_data::ArrayData;
use arrow_schema::DataType::{Int8, Int32, Int64, UInt64};
use fscost_recording::{Event, Frame, Op, Recording, Reply, Result, Survey};
use pyo3::{prelude::*, types::PyDict};
use std::{iter::Peekable, sync::Arc, vec};

/// An iterator of record batches.
#[pyclass(module = "fscost._native")]
pub struct Requests {
    recording: Arc<Recording>,
    reader: Reader,
    disks: ArrayData,
    ops: ArrayData,
}

struct Reader {
    /// Index of the next frame, and the number of its first event.
    next: usize,
    event: u64,
    /// Number of the next request, and the replies from it on.
    request: u64,
    replies: Peekable<vec::IntoIter<Reply>>,
    survey: Survey,
}

/// Minimum number of events per batch: large enough for Parquet, small enough for memory.
const BATCH_EVENTS: usize = 1 << 18;

impl Requests {
    pub fn of(py: Python<'_>, recording: Arc<Recording>) -> PyResult<Self> {
        let replies = detached(py, || recording.replies())?;
        let disks = &recording.header().disks;
        Ok(Self {
            disks: texts(disks.iter().map(|disk| &disk.name))?,
            ops: texts(
                Op::ALL
                    .iter()
                    .filter(|op| **op != Op::Mark)
                    .map(|op| op.name()),
            )?,
            reader: Reader {
                next: 0,
                event: 0,
                request: 0,
                replies: replies.into_iter().peekable(),
                survey: Survey::new(disks.len()),
            },
            recording,
        })
    }
}

#[pymethods]
impl Requests {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let (recording, reader) = (&*self.recording, &mut self.reader);
        let columns = detached(py, || reader.columns(recording))?;
        if columns.event.is_empty() {
            return Ok(None);
        }
        let batch = Batch::new([
            ("event", column(UInt64, columns.event)?),
            ("submit_ns", column(UInt64, columns.submit_ns)?),
            ("complete_ns", column(UInt64, columns.complete_ns)?),
            ("disk", named(Int32, columns.disk, &self.disks)?),
            ("op", named(Int8, columns.op, &self.ops)?),
            ("offset", column(UInt64, columns.offset)?),
            ("length", column(UInt64, columns.length)?),
            ("fua", flags(&columns.fua)?),
            ("latency_ns", time(columns.latency_ns)?),
            ("late_ns", time(columns.late_ns)?),
        ]);
        batch.map(Some)
    }

    /// Return the intervals of the requests read so far, in the form of `Recording.intervals`.
    /// After the last batch, they cover the whole recording.
    fn intervals<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let intervals = self.reader.survey.intervals();
        interval_entries(py, &self.recording, intervals)
    }
}

#[derive(Default)]
struct Columns {
    event: Vec<u64>,
    submit_ns: Vec<u64>,
    complete_ns: Vec<u64>,
    disk: Vec<i32>,
    op: Vec<i8>,
    offset: Vec<u64>,
    length: Vec<u64>,
    fua: Vec<bool>,
    /// Negative without a reply.
    latency_ns: Vec<i64>,
    late_ns: Vec<i64>,
}

impl Columns {
    fn add(&mut self, number: u64, event: &Event, reply: Option<Reply>) {
        self.event.push(number);
        self.submit_ns.push(event.submit_ns);
        self.complete_ns.push(event.complete_ns);
        self.disk.push(i32::from(event.disk));
        self.op.push(event.op as i8);
        self.offset.push(event.offset);
        self.length.push(event.length);
        self.fua.push(event.fua);
        let between = |begin: u64, end: u64| i64::try_from(end.saturating_sub(begin)).unwrap_or(-1);
        let latency_ns = reply.map(|reply| between(event.submit_ns, reply.complete_ns));
        self.latency_ns.push(latency_ns.unwrap_or(-1));
        let late_ns = reply.map(|reply| between(reply.complete_ns, reply.sent_ns));
        self.late_ns.push(late_ns.unwrap_or(-1));
    }
}

impl Reader {
    /// Returns the columns of the next requests; empty columns after the last request.
    fn columns(&mut self, source: &Recording) -> Result<Columns> {
        let mut frame = Frame::default();
        let mut columns = Columns::default();
        while columns.event.len() < BATCH_EVENTS && self.next < source.frames().len() {
            source.read_frame(self.next, false, &mut frame)?;
            self.survey.add(&frame)?;
            let numbered = (self.event..).zip(&frame.events);
            for (number, event) in numbered.filter(|(_, e)| e.op != Op::Mark) {
                columns.add(number, event, reply_to(&mut self.replies, self.request));
                self.request += 1;
            }
            self.next += 1;
            self.event += frame.events.len() as u64;
        }
        Ok(columns)
    }
}

/// Returns a column of times; negative ones are null.
fn time(values: Vec<i64>) -> PyResult<ArrayData> {
    let column = nullable(Int64, values)?.into_builder().data_type(UInt64);
    column.build().map_err(refused)
}

/// Returns the reply to a request, and drops those to earlier ones.
fn reply_to(replies: &mut Peekable<vec::IntoIter<Reply>>, request: u64) -> Option<Reply> {
    let mut found = None;
    while let Some(reply) = replies.next_if(|reply| reply.request <= request) {
        found = (reply.request == request).then_some(reply);
    }
    found
}
