//! The marks of a recording.

use fscost_recording::{Op, Recording};

/// Returns the number of the first event and the name of each mark, in order.
pub fn marks(recording: &Recording) -> Vec<(u64, String)> {
    let mut marks = Vec::new();
    let mut number = 0;
    let walk = recording.for_each_frame(true, |_, frame| {
        for event in &frame.events {
            if event.op == Op::Mark {
                marks.push((number, frame.mark_of(event)?.name));
            }
            number += 1;
        }
        Ok(true)
    });
    walk.unwrap();
    marks
}
