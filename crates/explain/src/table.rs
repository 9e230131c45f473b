//! Explanation as a table: the time and interval of each row, and the names that its numbers refer
//! to.

use crate::{Causes, Explained, SortedRows, explain_streamed};
use fscost_recording::{Frame, Mark, MarkReader, Op, Recording, Result};
use std::collections::HashMap;

/// Name of the interval before the first mark.
const BEFORE: &str = "before";

/// Explained recording, with everything needed to interpret its rows.
pub struct Table {
    /// The rows, their paths and the families of the disks.
    pub explained: Explained<SortedRows>,
    /// Time and interval of each event.
    pub timeline: Timeline,
}

impl Table {
    /// Explains a recording.
    pub fn new(recording: &Recording) -> Result<Table> {
        Self::with(recording, |_| {})
    }

    /// Explains a recording; `visit` gets every frame in order, with some content still packed.
    pub fn with(recording: &Recording, mut visit: impl FnMut(&mut Frame)) -> Result<Table> {
        let mut timeline = Timeline::default();
        timeline.begin(BEFORE);
        let explained = explain_streamed(recording, |frame| {
            timeline.add(frame)?;
            visit(frame);
            Ok(())
        })?;
        Ok(Table {
            explained,
            timeline,
        })
    }

    /// Returns the index of a combination of causes in [`SortedRows::cause_sets`].
    pub fn cause_set(&self, causes: Causes) -> usize {
        let cause_sets = self.explained.rows.cause_sets();
        cause_sets.binary_search(&causes).unwrap_or(0)
    }
}

/// Times at which events completed, and the intervals between marks that they belong to.
#[derive(Debug, Default)]
pub struct Timeline {
    times_ns: Vec<u64>,
    /// First event of each interval, and the number of the interval's name.
    begins: Vec<(u64, usize)>,
    marks: Vec<(u64, Mark)>,
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    reader: MarkReader,
}

impl Timeline {
    fn add(&mut self, frame: &Frame) -> Result<()> {
        for event in &frame.events {
            if event.op == Op::Mark {
                let mark = self.reader.mark_of(frame, event)?;
                self.begin(&mark.name);
                self.marks.push((event.complete_ns, mark));
            }
            self.times_ns.push(event.complete_ns);
        }
        Ok(())
    }

    fn begin(&mut self, name: &str) {
        // An untrusted recording may have as many names as marks.
        let number = self.numbers.get(name).copied().unwrap_or_else(|| {
            let number = self.names.len();
            self.names.push(name.to_owned());
            self.numbers.insert(name.to_owned(), number);
            number
        });
        self.begins.push((self.times_ns.len() as u64, number));
    }

    /// Returns all marks with their times.
    pub fn marks(&self) -> &[(u64, Mark)] {
        &self.marks
    }

    /// Returns the time at which the event completed, nanoseconds since the recording began.
    pub fn time_ns(&self, event: u64) -> u64 {
        self.times_ns.get(event as usize).copied().unwrap_or(0)
    }

    /// Returns the number of the name of the event's interval.
    pub fn interval(&self, event: u64) -> usize {
        let after = self.begins.partition_point(|(begin, _)| *begin <= event);
        self.begins[after.saturating_sub(1)].1
    }

    /// Iterates over the name of each interval, in order.
    pub fn interval_names(&self) -> impl Iterator<Item = &str> {
        self.begins
            .iter()
            .map(|&(_, name)| self.names[name].as_str())
    }

    /// Returns the distinct names of intervals.
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
        let of_each: Vec<_> = timeline.interval_names().collect();
        assert_eq!(of_each, ["before", "a", "b", "a"]);
        assert_eq!(timeline.time_ns(5), 50);
    }
}
