//! Frames that are read ahead on other threads come in order, and a damaged one comes in its turn.
#![allow(clippy::unwrap_used, missing_docs)]

use fscost_recording::*;
use std::{fs, os::unix::fs::FileExt as _, path::Path};

const FRAMES: u64 = 40;
const LENGTH: u64 = 256 << 10;

/// One write a frame, its content its number.
fn write(path: &Path) {
    let header = Header {
        begin_unix_ns: 0,
        disks: vec![DiskInfo {
            name: "main".into(),
            size_bytes: FRAMES * LENGTH,
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
        }],
        stripped: Stripped::No,
    };
    let mut writer = Writer::create(path, &header).unwrap();
    for number in 0..FRAMES {
        writer.space()[..LENGTH as usize].fill(number as u8);
        let event = Event {
            submit_ns: number,
            complete_ns: number,
            offset: number * LENGTH,
            length: LENGTH,
            content_offset: 0,
            disk: 0,
            op: Op::Write,
            fua: false,
        };
        writer.append(event).unwrap();
    }
    writer.finish().unwrap();
}

/// The numbers in the frames that are visited until `stop`, and how the walk ended.
fn visited(recording: &Recording, contents: Contents, stop: usize) -> (Vec<u8>, Result<()>) {
    let mut found = Vec::new();
    // Half of it is expected, and all is looked at.
    let expected = |event: &Event| event.complete_ns.is_multiple_of(2);
    let ended = recording.for_each_frame_ahead(contents, &expected, |index, frame| {
        let event = frame.events[0];
        frame.unpack(&event)?;
        let content = frame.content_of(&frame.events[0]);
        assert_eq!(content.len() as u64, LENGTH);
        assert!(content.iter().all(|&byte| usize::from(byte) == index));
        found.push(content[0]);
        Ok(found.len() < stop)
    });
    (found, ended)
}

#[test]
fn frames_come_in_order_as_far_as_they_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    write(&path);
    let recording = Recording::open(&path).unwrap();
    let all: Vec<u8> = (0..FRAMES as u8).collect();
    for contents in [Contents::All, Contents::Packed] {
        let (found, ended) = visited(&recording, contents, usize::MAX);
        assert_eq!(found, all);
        ended.unwrap();
        let (found, ended) = visited(&recording, contents, 3);
        assert_eq!(found, all[..3]);
        ended.unwrap();
    }
}

#[test]
fn content_that_nobody_unpacks_is_checked_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    write(&path);
    let end = fs::metadata(&path).unwrap().len();
    let last = Recording::open(&path).unwrap().frames().len() - 1;
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    // In the last piece of the last frame, before the frame that says that the recording is whole.
    file.write_all_at(b"x", end - 200).unwrap();
    let recording = Recording::open(&path).unwrap();
    let mut visited = 0;
    let walk = recording.for_each_frame_ahead(Contents::Packed, &|_| false, |_, _| {
        visited += 1;
        Ok(true)
    });
    assert_eq!(walk.unwrap_err().kind, ErrorKind::Corrupt);
    assert_eq!(visited, last);
}

#[test]
fn the_error_of_a_damaged_frame_comes_after_what_stands_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    write(&path);
    let damaged = 17;
    let at = Recording::open(&path).unwrap().frames()[damaged].at_byte;
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"x", at + 90).unwrap();
    let recording = Recording::open(&path).unwrap();
    let (found, ended) = visited(&recording, Contents::All, usize::MAX);
    assert_eq!(found.len(), damaged);
    assert_eq!(ended.unwrap_err().kind, ErrorKind::Corrupt);
}
