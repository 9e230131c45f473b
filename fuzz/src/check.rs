//! What is asked of every recording, and what must hold of the answers.

use fscost_analysis::Table;
use fscost_recording::{Event, Instant, Op, Recording, intervals, verify};
use std::path::Path;

/// Explain a recording that is whole; every write is covered exactly by its rows, and a hole punched by none or exactly.
pub fn explain_all(recording: &Recording) {
    let table = Table::new(recording).expect("a whole recording is explained");
    let explained = &table.explained;
    let rows = explained.rows.iter();
    let mut rows = rows.map(|row| row.expect("rows are read back")).peekable();
    let mut number = 0;
    let mut punched_bytes = 0;
    for_each_event(recording, |event, _| {
        let is_zeroes = event.op == Op::Punch && rows.peek().is_some_and(|row| row.event == number);
        punched_bytes += if is_zeroes { event.length } else { 0 };
        if is_zeroes || matches!(event.op, Op::Write | Op::WriteZeroes) {
            let mut at = event.offset;
            while let Some(row) = rows.next_if(|row| row.event == number) {
                assert_eq!((row.disk, row.offset), (event.disk, at), "{row:?}");
                assert!(row.length > 0, "{row:?}");
                let known = explained.rows.cause_sets()[table.cause_set(row.causes)];
                assert_eq!(known, row.causes, "{row:?}");
                let _ = row.path.map(|path| explained.paths.text(path));
                at += row.length;
            }
            assert_eq!(at, event.offset + event.length, "event {number}: {event:?}");
        }
        assert_eq!(table.timeline.time_ns(number), event.complete_ns);
        assert!(table.timeline.interval(number) < table.timeline.names().len());
        number += 1;
    });
    assert!(rows.next().is_none(), "rows of no event");
    assert_eq!(punched_bytes, explained.punched_bytes.iter().sum::<u64>());
}

/// All that can be asked of a file that may or may not be a recording: answers or errors.
pub fn open_all(path: &Path) {
    let Ok(recording) = Recording::open(path) else {
        return;
    };
    let report = verify(&recording).expect("verify reads what is there");
    let marks = recording.marks();
    let _ = intervals(&recording);
    for disk in 0..recording.header().disks.len().min(4) as u16 {
        for instant in [Instant::Events(1), Instant::End] {
            let Ok(mut image) = recording.image_at(disk, &instant) else {
                continue;
            };
            let mut bytes = [0; 4096];
            for at in [
                0,
                image.size_bytes() / 2,
                image.size_bytes().saturating_sub(4096),
            ] {
                let there = (image.size_bytes() - at).min(4096) as usize;
                let _ = image.read_at(at, &mut bytes[..there]);
            }
        }
    }
    if report.damaged.is_empty() && marks.is_ok() {
        explain_all(&recording);
    } else {
        let _ = Table::new(&recording);
    }
}

/// What an export keeps of two recordings is the same: reads are left out, and hole punches become discards.
pub fn assert_same_events(one: &Recording, other: &Recording) {
    let kept = |recording: &Recording| {
        let mut kept = Vec::new();
        for_each_event(recording, |event, content| {
            let content = if event.op == Op::Write {
                crc32c::crc32c(content)
            } else {
                0
            };
            if event.op != Op::Mark {
                kept.push((event.op, event.offset, event.length, event.fua, content));
            }
        });
        kept
    };
    assert_eq!(kept(one), kept(other));
}

fn for_each_event(recording: &Recording, mut visit: impl FnMut(&Event, &[u8])) {
    let walk = recording.for_each_frame(true, |_, frame| {
        for event in &frame.events {
            visit(event, frame.content_of(event));
        }
        Ok(true)
    });
    walk.expect("a whole recording is read");
}
