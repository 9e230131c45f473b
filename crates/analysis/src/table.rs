//! The explanation as a table: each row's time and interval, and the names that its numbers stand for.

use crate::classify::{Causes, Explained, explain};
use fscost_recording::{Frame, Op, Recording, Result};

/// The interval of what precedes the first mark.
const BEFORE: &str = "before";

/// An explained recording, with what its rows need to stand alone.
pub struct Table {
    /// The rows, their paths, the disks' families.
    pub explained: Explained,
    /// When each event was, and in which interval.
    pub timeline: Timeline,
    /// Every combination of causes that occurs, in order.
    pub cause_sets: Vec<Causes>,
}

impl Table {
    /// Explain a recording.
    pub fn new(recording: &Recording) -> Result<Table> {
        let explained = explain(recording)?;
        let mut cause_sets: Vec<Causes> = Vec::new();
        for row in &explained.rows {
            if let Err(place) = cause_sets.binary_search(&row.causes) {
                cause_sets.insert(place, row.causes);
            }
        }
        Ok(Table {
            explained,
            timeline: Timeline::new(recording)?,
            cause_sets,
        })
    }

    /// The number of a combination in `cause_sets`.
    pub fn cause_set(&self, causes: Causes) -> usize {
        self.cause_sets.binary_search(&causes).unwrap_or(0)
    }
}

/// When each event completed, and between which marks.
#[derive(Debug, Default)]
pub struct Timeline {
    times_ns: Vec<u64>,
    /// For each interval, its first event and the number of its name.
    begins: Vec<(u64, usize)>,
    names: Vec<String>,
}

impl Timeline {
    /// Read all events of a recording, without their content.
    pub fn new(recording: &Recording) -> Result<Timeline> {
        let mut timeline = Timeline::default();
        timeline.begin(BEFORE);
        let mut frame = Frame::default();
        for index in 0..recording.frames().len() {
            recording.read_frame(index, false, &mut frame)?;
            // Content is unpacked only where a mark needs it.
            if frame.events.iter().any(|e| e.op == Op::Mark) {
                recording.read_frame(index, true, &mut frame)?;
            }
            for event in &frame.events {
                if event.op == Op::Mark {
                    timeline.begin(&frame.mark_of(event)?.name);
                }
                timeline.times_ns.push(event.complete_ns);
            }
        }
        Ok(timeline)
    }

    fn begin(&mut self, name: &str) {
        let known = self.names.iter().position(|n| n == name);
        let number = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        self.begins.push((self.times_ns.len() as u64, number));
    }

    /// When the event completed, nanoseconds since the recording began.
    pub fn time_ns(&self, event: u64) -> u64 {
        self.times_ns.get(event as usize).copied().unwrap_or(0)
    }

    /// The number of the name of the event's interval.
    pub fn interval(&self, event: u64) -> usize {
        let after = self.begins.partition_point(|(begin, _)| *begin <= event);
        self.begins[after.saturating_sub(1)].1
    }

    /// Each name of an interval, once.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_begin_with_their_mark_and_names_are_kept_once() {
        let mut timeline = Timeline::default();
        timeline.begin(BEFORE);
        for (event, mark) in [None, Some("a"), None, Some("b"), Some("a"), None]
            .into_iter()
            .enumerate()
        {
            if let Some(name) = mark {
                timeline.begin(name);
            }
            timeline.times_ns.push(10 * event as u64);
        }
        let found: Vec<_> = (0..6)
            .map(|e| timeline.names()[timeline.interval(e)].as_str())
            .collect();
        assert_eq!(found, ["before", "a", "a", "b", "a", "a"]);
        assert_eq!(timeline.names(), ["before", "a", "b"]);
        assert_eq!(timeline.time_ns(5), 50);
    }
}
