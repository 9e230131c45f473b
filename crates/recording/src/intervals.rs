//! The requests between marks, summed.

use crate::{Mark, Op, Recording, Result, Totals};

/// From one mark to the next.
#[derive(Debug, Clone)]
pub struct Interval {
    /// The mark that begins it.
    pub mark: Mark,
    /// When it begins.
    pub begin_ns: u64,
    /// When the next begins, or the last event.
    pub end_ns: u64,
    /// Per disk, in the header's order.
    pub totals: Vec<Totals>,
}

/// All intervals. What precedes the first mark belongs to an interval named `before`.
pub fn intervals(recording: &Recording) -> Result<Vec<Interval>> {
    let disk_count = recording.header().disks.len();
    let begin = |mark: Mark, at_ns: u64| Interval {
        mark,
        begin_ns: at_ns,
        end_ns: at_ns,
        totals: vec![Totals::default(); disk_count],
    };
    let before = Mark {
        name: "before".into(),
        detail: serde_json::Value::Null,
    };
    let mut found = vec![begin(before, 0)];
    let mut current = 0;
    let mut marks = crate::MarkReader::default();
    recording.for_each_frame(false, |_, frame| {
        for event in &frame.events {
            found[current].end_ns = event.complete_ns;
            if event.op == Op::Mark {
                found.push(begin(marks.mark_of(frame, event)?, event.complete_ns));
                current += 1;
            } else if let Some(totals) = found[current].totals.get_mut(usize::from(event.disk)) {
                totals.add(event);
            }
        }
        Ok(true)
    })?;
    Ok(found)
}
