//! Checks that run on every recording.

use fscost_explain::{Structure, Table, explain, recovery};
use fscost_recording::{Event, Instant, Mark, Op, Recording, intervals, verify};
use std::path::Path;

/// Explains an intact recording. Every write must be covered exactly by its rows, and every punched
/// hole exactly or not at all. The holes taken for zeroes must not exceed what the kernel counted.
pub fn explain_all(recording: &Recording) {
    let table = Table::new(recording).expect("a whole recording is explained");
    recovery(recording, u64::MAX, &[]).expect("a whole recording can be mounted, or not");
    let explained = &table.explained;
    let rows = explained.rows.iter();
    let mut rows = rows.map(|row| row.expect("rows are read back")).peekable();
    let mut number = 0;
    let mut punched_bytes = 0;
    let mut counted = Counted::new(recording);
    for_each_event(recording, |event, content| {
        let is_zeroes = event.op == Op::Punch && rows.peek().is_some_and(|row| row.event == number);
        punched_bytes += if is_zeroes { event.length } else { 0 };
        counted.event(event, content, is_zeroes);
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

/// Bytes written, punched, and taken for zeroes since the last mark, compared with the bytes that
/// the kernel counted as written.
struct Counted {
    disks: Vec<String>,
    before: Vec<Option<u64>>,
    since: Vec<[u64; 3]>,
}

impl Counted {
    fn new(recording: &Recording) -> Counted {
        let disks = recording.header().disks.iter();
        let disks: Vec<_> = disks.map(|disk| disk.name.clone()).collect();
        Counted {
            before: vec![Some(0); disks.len()],
            since: vec![[0; 3]; disks.len()],
            disks,
        }
    }

    fn event(&mut self, event: &Event, content: &[u8], is_zeroes: bool) {
        if event.op == Op::Mark {
            let detail = Mark::from_bytes(content).expect("a mark").detail;
            for ((name, before), since) in
                self.disks.iter().zip(&mut self.before).zip(&mut self.since)
            {
                let now = detail["kernel"][name.as_str()]["write_bytes"].as_u64();
                let [written, punched, zeroes] = std::mem::take(since);
                let left = now.zip(std::mem::replace(before, now));
                let left = left.and_then(|(now, before)| now.checked_sub(before));
                if let Some(left) = left.and_then(|left| left.checked_sub(written)) {
                    assert!(left > punched || zeroes <= left, "{zeroes} of {left}");
                    assert!(left != punched || zeroes == left, "{zeroes} of {left}");
                }
            }
        } else if let Some(since) = self.since.get_mut(usize::from(event.disk)) {
            match event.op {
                Op::Write | Op::WriteZeroes => since[0] += event.length,
                Op::Punch => since[1] += event.length,
                _ => {}
            }
            since[2] += if is_zeroes { event.length } else { 0 };
        }
    }
}

/// Runs all operations on a file that may or may not be a recording. Each must return a result or
/// an error.
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

/// Asserts that two recordings are equal in everything that an export preserves. Reads are omitted,
/// and hole punches become discards.
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

/// Asserts that the requests are the same, and that no sector of file data kept its content.
pub fn assert_stripped(recording: &Recording, stripped: &Recording) {
    let mut contents = Vec::new();
    for_each_event(stripped, |event, content| {
        contents.push((
            Event {
                content_offset: 0,
                ..*event
            },
            content.to_vec(),
        ));
    });
    let mut rows = explain(recording)
        .expect("a whole recording is explained")
        .rows
        .into_iter()
        .peekable();
    let mut number = 0;
    for_each_event(recording, |event, content| {
        let (kept, left) = &contents[number];
        if event.op != Op::Mark {
            let event = Event {
                content_offset: 0,
                ..*event
            };
            assert_eq!(&event, kept, "event {number}");
            assert_eq!(content.len(), left.len(), "event {number}");
        }
        while let Some(row) = rows.next_if(|row| row.event == number as u64) {
            if row.home.unwrap_or(row.structure) != Structure::FileData {
                continue;
            }
            let within = (row.offset - event.offset) as usize;
            let range = within..within + row.length as usize;
            let sectors = |content: &[u8]| {
                let content = content.get(range.clone()).unwrap_or_default();
                content.chunks_exact(512).map(Vec::from).collect::<Vec<_>>()
            };
            for (before, after) in sectors(content).into_iter().zip(sectors(left)) {
                let is_zero = before.iter().all(|&byte| byte == 0);
                assert!(is_zero || before != after, "content stays: {row:?}");
            }
        }
        number += 1;
    });
    assert_eq!(number, contents.len());
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
