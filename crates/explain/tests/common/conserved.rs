//! Invariants of every explanation.

use fscost_explain::Explained;
use fscost_recording::{Op, Recording};

/// Asserts that the rows of every write cover it exactly.
pub fn assert_conserved(recording: &Recording, explained: &Explained) {
    let mut rows = explained.rows.iter().peekable();
    let mut number = 0;
    let walk = recording.for_each_frame(false, |_, frame| {
        for event in &frame.events {
            if matches!(event.op, Op::Write | Op::WriteZeroes) {
                let mut at = event.offset;
                while let Some(row) = rows.next_if(|row| row.event == number) {
                    assert_eq!((row.disk, row.offset), (event.disk, at), "{row:?}");
                    assert!(row.length > 0, "{row:?}");
                    at += row.length;
                }
                assert_eq!(at, event.offset + event.length, "event {number}");
            }
            number += 1;
        }
        Ok(true)
    });
    walk.unwrap();
    assert!(rows.next().is_none());
}
