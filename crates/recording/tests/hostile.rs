//! Recordings that nobody recorded: small files that would unpack to large ones, and what is no
//! file at all.
#![allow(clippy::unwrap_used, missing_docs)]

use fscost_recording::*;
use std::{os::unix::fs::FileExt as _, path::Path};
use zerocopy::IntoBytes as _;

const FRAME_HEADER: usize = 64;
const EVENT: usize = 40;
const HEADER: usize = 64 + 64;

/// A recording of one frame, with an event for each length, its events changed by `change` and its
/// checksums made right.
fn crafted(path: &Path, lengths: &[(Op, u64)], change: impl Fn(&mut [u8])) {
    let disk = DiskInfo {
        name: "main".into(),
        size_bytes: 1 << 30,
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
    };
    let header = Header {
        begin_unix_ns: 1,
        disks: vec![disk],
        stripped: Stripped::No,
    };
    let mut writer = Writer::create(path, &header).unwrap();
    for &(op, length) in lengths {
        if op == Op::Mark {
            let name = "m".repeat(length as usize - r#"{"name":""}"#.len());
            let detail = serde_json::Value::Null;
            writer.mark(&Mark { name, detail }, 0).unwrap();
            continue;
        }
        let request = Event {
            submit_ns: 0,
            complete_ns: 0,
            offset: 0,
            length,
            content_offset: 0,
            disk: 0,
            op,
            fua: false,
        };
        if op == Op::Write {
            writer.space()[..length as usize].fill(7);
        }
        writer.append(request).unwrap();
    }
    writer.finish().unwrap();
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let bytes = std::fs::read(path).unwrap();
    let frame = &bytes[HEADER..];
    let number = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap()) as usize;
    let (events, events_stored, content_stored, pieces) =
        (number(12), number(16), number(24), number(28));
    let table = FRAME_HEADER..FRAME_HEADER + pieces * 8;
    let stored = table.end..table.end + events_stored;
    let mut raw = zstd::bulk::decompress(&frame[stored.clone()], events * EVENT).unwrap();
    change(&mut raw);
    let packed = zstd::bulk::compress(&raw, 1).unwrap();
    let mut again = frame[..FRAME_HEADER].to_vec();
    again[16..20].copy_from_slice((packed.len() as u32).as_bytes());
    let index = [&frame[table], &packed].concat();
    again[48..52].copy_from_slice(crc32c::crc32c(&index).as_bytes());
    again[60..64].fill(0);
    let sum = crc32c::crc32c(&again);
    again[60..64].copy_from_slice(sum.as_bytes());
    again.extend(index);
    again.extend(&frame[stored.end..stored.end + content_stored]);
    again.extend(&frame[stored.end + content_stored..]);
    file.set_len(HEADER as u64).unwrap();
    file.write_all_at(&again, HEADER as u64).unwrap();
}

fn refused(lengths: &[(Op, u64)], change: impl Fn(&mut [u8])) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    crafted(&path, lengths, change);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.end(), &End::Finished);
    let report = verify(&recording).unwrap();
    for error in [
        recording.marks().map(drop),
        intervals(&recording).map(drop),
        recording.image_at(0, &Instant::End).map(drop),
    ] {
        assert_eq!(error.unwrap_err().kind, ErrorKind::Corrupt);
    }
    report.damaged.join("; ")
}

#[test]
fn what_is_not_changed_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    crafted(&path, &[(Op::Write, 4096), (Op::Mark, 100)], |_| {});
    assert!(verify(&Recording::open(&path).unwrap()).unwrap().is_whole());
}

/// The review's M2: 4,096 marks of one frame that are the same 256 KiB took 1.2 GB.
#[test]
fn marks_that_share_their_content_are_refused() {
    let requests = vec![(Op::Flush, 0); 4095];
    let said = refused(&[requests, vec![(Op::Mark, 256 << 10)]].concat(), |raw| {
        let mark = raw[raw.len() - EVENT..].to_vec();
        raw.chunks_mut(EVENT)
            .for_each(|event| event.copy_from_slice(&mark));
    });
    assert!(
        said.contains("does not follow the content of the previous event"),
        "{said}"
    );
}

#[test]
fn a_mark_stands_last_in_its_frame() {
    let said = refused(&[(Op::Flush, 0), (Op::Mark, 100)], |raw| {
        let (first, last) = raw.split_at_mut(EVENT);
        first.swap_with_slice(last);
    });
    assert!(said.contains("a mark is not the last event"), "{said}");
}

/// 18 KB claimed 4 GiB of writes.
#[test]
fn writes_that_share_their_content_are_refused() {
    let said = refused(&[(Op::Write, 65536), (Op::Write, 65536)], |raw| {
        raw[EVENT + 32..EVENT + 36].fill(0); // the content's offset
    });
    assert!(
        said.contains("does not follow the content of the previous event"),
        "{said}"
    );
}

#[test]
fn content_of_no_event_is_refused() {
    let said = refused(&[(Op::Write, 65536), (Op::Write, 65536)], |raw| {
        raw[EVENT + 24..EVENT + 32].copy_from_slice(&512_u64.to_le_bytes()); // its length
    });
    assert!(said.contains("content that belongs to no event"), "{said}");
}

/// A mark of 256 KiB takes some hundred bytes in the file and ten times its length in memory.
#[test]
fn more_marks_than_memory_should_hold_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    crafted(&path, &[(Op::Mark, 256 << 10); 40], |_| {});
    let recording = Recording::open(&path).unwrap();
    assert!(verify(&recording).unwrap().is_whole());
    for error in [recording.marks().map(drop), intervals(&recording).map(drop)] {
        assert!(error.unwrap_err().to_string().contains("8 MiB of marks"));
    }
}

/// 290 bytes with one write-zeroes of a terabyte are a log of a terabyte.
#[test]
fn the_size_of_a_log_is_known_before_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let all = [
        (Op::Write, 8192),
        (Op::Read, 4096),
        (Op::Flush, 0),
        (Op::WriteZeroes, (3 << 20) + 512),
        (Op::Punch, 1 << 20),
        (Op::Mark, 100),
    ];
    crafted(&path, &all, |_| {});
    let recording = Recording::open(&path).unwrap();
    let log = folder.path().join("log");
    dm_log_writes::export(&recording, 0, Output::create(&log).unwrap()).unwrap();
    let bytes = dm_log_writes::export_bytes(&recording, 0).unwrap();
    assert_eq!(bytes, std::fs::metadata(&log).unwrap().len());
    let image = recording.image_at(0, &Instant::End).unwrap();
    assert_eq!(image.content_bytes(), 0);
    image
        .export(Output::create(&folder.path().join("i")).unwrap().file())
        .unwrap();
}

#[test]
fn what_is_no_regular_file_is_refused_unopened() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
    let made = folder.path().join("made");
    for path in [fifo.as_path(), Path::new("/dev/zero"), folder.path()] {
        let error = Recording::open(path).unwrap_err().to_string();
        assert!(error.ends_with("is not a regular file"), "{error}");
        let error = dm_log_writes::import(path, Output::create(&made).unwrap());
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("is not a regular file")
        );
        std::fs::remove_file(&made).unwrap();
    }
}

#[test]
fn a_file_is_made_for_its_owner_and_never_through_a_link() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("r"), folder.path().join("link"));
    Output::create(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    symlink(folder.path().join("nowhere"), &link).unwrap();
    assert!(Output::create(&link).is_err());
    assert!(!folder.path().join("nowhere").exists());
}
