//! Replies of disks with a model: what is written is read, whole, packed and in earlier versions.
#![allow(clippy::unwrap_used, missing_docs)]

use fscost_recording::*;
use std::{fs, path::Path};

const HEADER: usize = 64 + 64;

fn writer(path: &Path) -> Writer {
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
    Writer::create(path, &header).unwrap()
}

fn write(at_ns: u64) -> Event {
    Event {
        submit_ns: at_ns,
        complete_ns: at_ns,
        offset: 0,
        length: 512,
        content_offset: 0,
        disk: 0,
        op: Op::Write,
        fua: false,
    }
}

fn reply(request: u64) -> Reply {
    Reply {
        request,
        complete_ns: 1000 + request * 10,
        sent_ns: 1003 + request * 11,
    }
}

/// A recording of `count` writes whose replies come one write late and, half of them, after the
/// last write.
fn recorded(path: &Path, count: u64) {
    let mut writer = writer(path);
    for number in 0..count {
        writer.append(write(number)).unwrap();
        if number > 0 && number <= count / 2 {
            writer.reply(reply(number - 1)).unwrap();
        }
    }
    let mark = Mark {
        name: "end".into(),
        detail: serde_json::Value::Null,
    };
    writer.mark(&mark, count).unwrap();
    for number in count / 2..count {
        writer.reply(reply(number)).unwrap();
    }
    writer.finish().unwrap();
}

fn expected(count: u64) -> Vec<Reply> {
    (0..count).map(reply).collect()
}

#[test]
fn replies_are_read_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    for count in [1, 2, 600, 20_000] {
        let path = folder.path().join(count.to_string());
        recorded(&path, count);
        let recording = Recording::open(&path).unwrap();
        assert_eq!(recording.version(), 2);
        assert_eq!(recording.replies().unwrap(), expected(count));
        let report = verify(&recording).unwrap();
        assert!(report.is_whole(), "{:?}", report.damaged);
        assert_eq!(report.events, count + 1);
        // A frame of replies alone does not end the time of the disks.
        let last = recording.frames().last().unwrap();
        assert_eq!((last.event_count, last.last_complete_ns), (0, count));
        let image = recording.image_at(0, &Instant::CompletedBy(count)).unwrap();
        assert_eq!(image.size_bytes(), 1 << 30);
    }
}

/// The bytes of docs/recording-format.md, counted by hand, as in recording.rs.
#[test]
fn the_bytes_are_those_of_the_document() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    recorded(&path, 1);
    let bytes = fs::read(&path).unwrap();
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    // The first frame ends at the mark, so the second one has the reply alone.
    let length = |frame: usize| {
        let bodies = [frame + 16, frame + 24, frame + 56].map(|at| u32_at(at) as usize);
        64 + u32_at(frame + 28) as usize * 8 + bodies.iter().sum::<usize>()
    };
    assert_eq!((u32_at(HEADER + 52), u32_at(HEADER + 56)), (0, 0));
    let frame = HEADER + length(HEADER);
    assert_eq!(&bytes[frame..frame + 5], b"FRAM\x01");
    assert_eq!((u32_at(frame + 12), u32_at(frame + 52)), (0, 1));
    let index = &bytes[frame + 64..frame + length(frame)];
    assert_eq!(u32_at(frame + 48), crc32c::crc32c(index));
    let stored = &index[u32_at(frame + 16) as usize..];
    let reply = zstd::bulk::decompress(stored, 1000).unwrap();
    assert_eq!(reply, [0u64, 1000, 1003].map(u64::to_le_bytes).concat());
    assert_eq!(&bytes[frame + length(frame)..][..5], b"FRAM\x02");
}

#[test]
fn a_packed_copy_has_the_same_replies() {
    let folder = tempfile::tempdir().unwrap();
    let (path, packed) = (folder.path().join("r"), folder.path().join("p"));
    recorded(&path, 5000);
    let recording = Recording::open(&path).unwrap();
    let mut packer = Packer::new(&recording, Output::create(&packed).unwrap(), 3).unwrap();
    recording
        .for_each_frame_ahead(Contents::Packed, &|_| false, |_, frame| {
            packer.add(frame).map(|()| true)
        })
        .unwrap();
    packer.finish().unwrap();
    let copy = Recording::open(&packed).unwrap();
    assert_eq!(copy.replies().unwrap(), expected(5000));
    assert!(verify(&copy).unwrap().is_whole());
}

/// Changes bytes of the file's header, or of its first frame's, and makes the checksum right.
fn changed(path: &Path, header: std::ops::Range<usize>, change: impl Fn(&mut [u8])) {
    let mut bytes = fs::read(path).unwrap();
    let part = &mut bytes[header.clone()];
    change(part);
    part[60..64].fill(0);
    let sum = crc32c::crc32c(part);
    part[60..64].copy_from_slice(&sum.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_recording_of_version_1_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let mut writer = writer(&path);
    writer.append(write(7)).unwrap();
    writer.finish().unwrap();
    // Without replies, only the number of the version differs.
    changed(&path, 0..HEADER, |header| header[8] = 1);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.version(), 1);
    assert!(recording.replies().unwrap().is_empty());
    assert_eq!(verify(&recording).unwrap().events, 1);
    changed(&path, 0..HEADER, |header| header[8] = 3);
    let error = Recording::open(&path).unwrap_err();
    assert!(error.to_string().contains("versions 1 to 2"), "{error}");
}

#[test]
fn impossible_replies_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let refused = |reply: Reply| {
        let _ = fs::remove_file(&path);
        let mut writer = writer(&path);
        writer.append(write(7)).unwrap();
        writer.reply(reply).unwrap();
        writer.finish().unwrap();
        verify(&Recording::open(&path).unwrap()).unwrap().damaged
    };
    let early = Reply {
        sent_ns: 999,
        ..reply(0)
    };
    assert!(refused(early)[0].contains("a reply precedes its request's completion"));
    assert!(refused(reply(1))[0].contains("a reply to no request"));
    assert!(refused(reply(0)).is_empty());
    let mut twice = writer(&path.with_extension("twice"));
    twice.append(write(7)).unwrap();
    twice.reply(reply(0)).unwrap();
    twice.reply(reply(0)).unwrap();
    twice.finish().unwrap();
    let recording = Recording::open(&path.with_extension("twice")).unwrap();
    assert_eq!(recording.replies().unwrap_err().kind, ErrorKind::Corrupt);
    // More replies than a frame may have: the recording ends before the frame.
    changed(&path, HEADER..HEADER + 64, |frame| {
        frame[52..56].copy_from_slice(&5000u32.to_le_bytes());
    });
    let recording = Recording::open(&path).unwrap();
    assert!(matches!(recording.end(), End::Corrupt { at_byte: 128, .. }));
}

/// A small file could hold more replies than memory.
#[test]
fn too_many_replies_are_refused_before_they_are_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let mut writer = writer(&path);
    for _ in 0..4096 {
        writer.reply(reply(0)).unwrap();
    }
    writer.finish().unwrap();
    let bytes = fs::read(&path).unwrap();
    let frame = &bytes[HEADER..bytes.len() - 64];
    let mut many = bytes[..HEADER].to_vec();
    for number in 0..=(1_u32 << 25) / 4096 {
        let begin = many.len();
        many.extend_from_slice(frame);
        many[begin + 8..begin + 12].copy_from_slice(&number.to_le_bytes());
        many[begin + 60..begin + 64].fill(0);
        let sum = crc32c::crc32c(&many[begin..begin + 64]);
        many[begin + 60..begin + 64].copy_from_slice(&sum.to_le_bytes());
    }
    fs::write(&path, many).unwrap();
    let error = Recording::open(&path).unwrap().replies().unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge, "{error}");
}
