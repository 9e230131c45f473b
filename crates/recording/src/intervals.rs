//! Totals of the requests between marks.

use crate::{Frame, Mark, MarkReader, Op, Recording, Result, Totals, first_writes::FirstWrites};

/// An interval from one mark to the next.
#[derive(Debug, Clone)]
pub struct Interval {
    /// Mark at the beginning of the interval.
    pub mark: Mark,
    /// Beginning of the interval.
    pub begin_ns: u64,
    /// Beginning of the next interval, or time of the last event.
    pub end_ns: u64,
    /// Totals per disk, in the header's order.
    pub totals: Vec<Totals>,
    /// Bytes written or zeroed for the first time, on all disks.
    pub first_write_bytes: u64,
}

/// Sums a recording's frames by interval. The frames must be added in order.
#[derive(Debug)]
pub struct Survey {
    intervals: Vec<Interval>,
    first_writes: Vec<FirstWrites>,
    marks: MarkReader,
}

impl Survey {
    /// Creates a survey of a recording with `disks` disks. Requests before the first mark belong to
    /// the interval `before`.
    pub fn new(disks: usize) -> Survey {
        let mut survey = Survey {
            intervals: Vec::new(),
            first_writes: (0..disks).map(|_| FirstWrites::default()).collect(),
            marks: MarkReader::default(),
        };
        survey.begin(Mark::new("before"), 0);
        survey
    }

    fn begin(&mut self, mark: Mark, at_ns: u64) {
        self.intervals.push(Interval {
            mark,
            begin_ns: at_ns,
            end_ns: at_ns,
            totals: vec![Totals::default(); self.first_writes.len()],
            first_write_bytes: 0,
        });
    }

    /// Adds the next frame. Only the content of marks is read.
    pub fn add(&mut self, frame: &Frame) -> Result<()> {
        for event in &frame.events {
            let disk = usize::from(event.disk);
            if let Some(current) = self.intervals.last_mut() {
                current.end_ns = event.complete_ns;
                if event.op != Op::Mark
                    && let Some(totals) = current.totals.get_mut(disk)
                {
                    totals.add(event);
                }
                if matches!(event.op, Op::Write | Op::WriteZeroes)
                    && let Some(first) = self.first_writes.get_mut(disk)
                {
                    current.first_write_bytes += first.write(event.offset, event.length);
                }
            }
            if event.op == Op::Mark {
                let mark = self.marks.mark_of(frame, event)?;
                self.begin(mark, event.complete_ns);
            }
        }
        Ok(())
    }

    /// Returns all intervals so far.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }
}

/// Returns all intervals of a recording.
pub fn intervals(recording: &Recording) -> Result<Vec<Interval>> {
    let mut survey = Survey::new(recording.header().disks.len());
    recording.for_each_frame(false, |_, frame| {
        survey.add(frame)?;
        Ok(true)
    })?;
    Ok(survey.intervals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;

    /// Operation, disk, offset and length.
    type Request = (Op, u16, u64, u64);

    fn first_write_bytes(requests: &[Request]) -> u64 {
        let event = |&(op, disk, offset, length): &Request| Event {
            submit_ns: 5,
            complete_ns: 5,
            offset,
            length,
            content_offset: 0,
            disk,
            op,
            fua: false,
        };
        let mut survey = Survey::new(2);
        // One frame per request: sectors written in one frame must be known in the next.
        for each in requests.chunks(1) {
            let events = each.iter().map(event).collect();
            let mut frame = Frame::default();
            frame.events = events;
            survey.add(&frame).unwrap();
        }
        survey.intervals()[0].first_write_bytes
    }

    #[test]
    fn only_writes_to_places_that_no_write_has_reached_count() {
        use Op::*;
        let cases: [(&[Request], u64); 7] = [
            (&[(Write, 0, 0, 4096), (Write, 0, 0, 4096)], 4096),
            (&[(Write, 0, 0, 2048), (Write, 0, 1024, 2048)], 3072),
            (&[(WriteZeroes, 0, 0, 8192), (Write, 0, 4096, 8192)], 12288),
            (
                &[
                    (Discard, 0, 0, 8192),
                    (Punch, 0, 0, 8192),
                    (Read, 0, 0, 8192),
                    (Write, 0, 0, 4096),
                ],
                4096,
            ),
            (
                &[
                    (Write, 0, 0, 4096),
                    (Discard, 0, 0, 4096),
                    (Write, 0, 0, 4096),
                ],
                4096,
            ),
            (&[(Write, 0, 0, 4096), (Write, 1, 0, 4096)], 8192),
            (&[(Flush, 0, 0, 0)], 0),
        ];
        for (requests, found) in cases {
            assert_eq!(first_write_bytes(requests), found, "{requests:?}");
        }
    }
}
