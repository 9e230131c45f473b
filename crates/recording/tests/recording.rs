//! Whole recordings: what is written is read, cut and damaged files are told, images are right at
//! every instant.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use fscost_recording::*;
use proptest::prelude::*;
use std::{fs, os::unix::fs::FileExt as _, path::Path};

const DISK_BYTES: u64 = 1 << 20;

fn header(disks: usize) -> Header {
    let disk = |index: usize| DiskInfo {
        name: format!("disk{index}"),
        size_bytes: DISK_BYTES,
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
    };
    Header {
        begin_unix_ns: 1_700_000_000_000_000_000,
        disks: (0..disks).map(disk).collect(),
        stripped: Stripped::No,
    }
}

fn event(op: Op, disk: u16, offset: u64, length: u64, at_ns: u64) -> Event {
    Event {
        submit_ns: at_ns,
        complete_ns: at_ns,
        offset,
        length,
        content_offset: 0,
        disk,
        op,
        fua: false,
    }
}

/// A request of a test, and the bytes it writes.
#[derive(Debug, Clone)]
struct Asked {
    op: Op,
    disk: u16,
    offset: u64,
    length: u64,
    seed: u8,
}

impl Asked {
    fn content(&self) -> Vec<u8> {
        // Half of it compresses, half does not, and no two requests have the same.
        (0..self.length)
            .map(|i| {
                if i % 1024 < 512 {
                    self.seed
                } else {
                    (i as u8).wrapping_mul(167) ^ (i >> 7) as u8 ^ self.seed
                }
            })
            .collect()
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let op = prop_oneof![
        5 => Just(Op::Write),
        1 => Just(Op::Read),
        1 => Just(Op::Flush),
        1 => Just(Op::Discard),
        1 => Just(Op::WriteZeroes),
        1 => Just(Op::Punch),
    ];
    (
        op,
        0..2u16,
        0..2000u64,
        prop_oneof![1..64u64, 200..1500u64],
        any::<u8>(),
    )
        .prop_map(|(op, disk, sector, sectors, seed)| {
            let (offset, length) = (sector * 512, sectors.min(2048 - sector) * 512);
            if op == Op::Flush {
                Asked {
                    op,
                    disk,
                    offset: 0,
                    length: 0,
                    seed,
                }
            } else {
                Asked {
                    op,
                    disk,
                    offset,
                    length,
                    seed,
                }
            }
        })
}

fn write(path: &Path, requests: &[Asked]) -> Summary {
    let mut writer = Writer::create(path, &header(2)).unwrap();
    for (number, asked) in requests.iter().enumerate() {
        let content = asked.content();
        if asked.op == Op::Write {
            writer.space()[..content.len()].copy_from_slice(&content);
        }
        writer
            .append(event(
                asked.op,
                asked.disk,
                asked.offset,
                asked.length,
                number as u64,
            ))
            .unwrap();
    }
    writer.finish().unwrap()
}

fn model(requests: &[Asked], disk: u16) -> Vec<u8> {
    let mut image = vec![0; DISK_BYTES as usize];
    for asked in requests.iter().filter(|a| a.disk == disk) {
        let range = asked.offset as usize..(asked.offset + asked.length) as usize;
        match asked.op {
            Op::Write => image[range].copy_from_slice(&asked.content()),
            op if op.clears() => image[range].fill(0),
            _ => {}
        }
    }
    image
}

fn image_of(recording: &Recording, disk: u16, instant: &Instant) -> Vec<u8> {
    let mut image = vec![0xee; DISK_BYTES as usize];
    recording
        .image_at(disk, instant)
        .unwrap()
        .read_at(0, &mut image)
        .unwrap();
    image
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_request_and_every_byte_is_read_back(requests in prop::collection::vec(asked(), 1..80)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        let summary = write(&path, &requests);
        prop_assert_eq!(summary.file_bytes, fs::metadata(&path).unwrap().len());
        let recording = Recording::open(&path).unwrap();
        prop_assert!(verify(&recording).unwrap().is_whole());
        prop_assert_eq!(&verify(&recording).unwrap().totals, &summary.totals);
        let mut number = 0;
        recording.for_each_frame(true, |_, frame| {
            for event in &frame.events {
                let asked: &Asked = &requests[number];
                assert_eq!((event.op, event.disk, event.offset, event.length, event.complete_ns),
                    (asked.op, asked.disk, asked.offset, asked.length, number as u64));
                if event.op == Op::Write { assert!(frame.content_of(event) == asked.content()); }
                number += 1;
            }
            Ok(true)
        }).unwrap();
        prop_assert_eq!(number, requests.len());
        for disk in 0..2 {
            prop_assert!(image_of(&recording, disk, &Instant::End) == model(&requests, disk));
        }
    }

    #[test]
    fn the_image_at_any_instant_is_what_had_completed(requests in prop::collection::vec(asked(), 1..40), part in 0.0..1.0f64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        write(&path, &requests);
        let recording = Recording::open(&path).unwrap();
        let count = (part * requests.len() as f64) as usize;
        let expected = model(&requests[..count], 0);
        prop_assert!(image_of(&recording, 0, &Instant::Events(count as u64)) == expected);
        if count > 0 {
            prop_assert!(image_of(&recording, 0, &Instant::CompletedBy(count as u64 - 1)) == expected);
        }
    }

    #[test]
    fn a_cut_file_is_readable_up_to_its_last_complete_frame(requests in prop::collection::vec(asked(), 1..60), part in 0.0..1.0f64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        let whole = write(&path, &requests).file_bytes;
        let length = (part * whole as f64) as u64;
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        match Recording::open(&path) {
            Err(error) => {
                prop_assert_eq!(error.kind, ErrorKind::Format);
                prop_assert!(length < 64 + 2 * 64);
            }
            Ok(recording) => {
                let is_cut = matches!(recording.end(), End::Cut { .. });
                prop_assert!(is_cut, "{:?}", recording.end());
                let mut number = 0;
                recording.for_each_frame(true, |_, frame| {
                    for event in frame.events.iter() {
                        assert_eq!(event.offset, requests[number].offset);
                        number += 1;
                    }
                    Ok(true)
                }).unwrap();
                prop_assert!(image_of(&recording, 1, &Instant::End) == model(&requests[..number], 1));
            }
        }
    }

    /// No byte of a recording may change unseen: every flipped bit is an error or damage that
    /// verify names, never a panic and never a
    /// wrong answer.
    #[test]
    fn a_flipped_bit_is_found(requests in prop::collection::vec(asked(), 1..20), part in 0.0..1.0f64, bit in 0..8u8) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        let whole = write(&path, &requests).file_bytes;
        let at = ((part * whole as f64) as u64).min(whole - 1);
        let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        byte[0] ^= 1 << bit;
        file.write_all_at(&byte, at).unwrap();
        if let Ok(recording) = Recording::open(&path) {
            prop_assert!(!verify(&recording).unwrap().is_whole(), "bit {bit} of byte {at} \
                flipped unseen");
        }
    }

    #[test]
    fn a_dm_log_writes_log_brings_back_the_same_disk(requests in prop::collection::vec(asked(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let (path, log, back) = (folder.path().join("r"), folder.path().join("log"), folder.path().join("back"));
        write(&path, &requests);
        let entries = dm_log_writes::export(&Recording::open(&path).unwrap(), 1, Output::create(&log).unwrap()).unwrap();
        prop_assert_eq!(dm_log_writes::import(&log, Output::create(&back).unwrap()).unwrap(), entries);
        let recording = Recording::open(&back).unwrap();
        prop_assert!(verify(&recording).unwrap().is_whole());
        let size = recording.header().disks[0].size_bytes as usize;
        let mut image = vec![0; size];
        recording.image_at(0, &Instant::End).unwrap().read_at(0, &mut image).unwrap();
        let expected = model(&requests, 1);
        prop_assert!(image == expected[..size]);
        prop_assert!(expected[size..].iter().all(|&b| b == 0));
    }

    #[test]
    fn a_mutated_dm_log_writes_log_never_panics(requests in prop::collection::vec(asked(), 1..10), bytes in prop::collection::vec((0.0..1.0f64, any::<u8>()), 1..20)) {
        let folder = tempfile::tempdir().unwrap();
        let (path, log, back) = (folder.path().join("r"), folder.path().join("log"), folder.path().join("back"));
        write(&path, &requests);
        dm_log_writes::export(&Recording::open(&path).unwrap(), 0, Output::create(&log).unwrap()).unwrap();
        let mut damaged = fs::read(&log).unwrap();
        for (part, byte) in bytes {
            let at = (part * damaged.len() as f64) as usize;
            damaged[at] = byte;
        }
        fs::write(&log, damaged).unwrap();
        let _ = dm_log_writes::import(&log, Output::create(&back).unwrap());
    }
}

#[test]
fn what_was_written_is_read_back_while_recording() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&folder.path().join("r"), &header(1)).unwrap();
    let mut places = Vec::new();
    for number in 0..600u64 {
        let length = 4096 * (1 + number % 60);
        let asked = Asked {
            op: Op::Write,
            disk: 0,
            offset: 0,
            length,
            seed: number as u8,
        };
        writer.space()[..length as usize].copy_from_slice(&asked.content());
        places.push((
            writer
                .append(event(Op::Write, 0, 0, length, number))
                .unwrap(),
            asked,
        ));
        // The newest is in the open frame, the oldest long since stored.
        for back in [0, 1, 9, 40, 300] {
            if let Some((location, asked)) = places
                .len()
                .checked_sub(1 + back)
                .and_then(|i| places.get(i))
            {
                let mut bytes = vec![0; asked.length as usize];
                writer.read(*location, &mut bytes).unwrap();
                assert!(bytes == asked.content(), "write {number}, {back} back");
            }
        }
    }
    writer.finish().unwrap();
}

#[test]
fn a_packed_recording_says_the_same_in_fewer_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (path, packed) = (folder.path().join("r"), folder.path().join("p"));
    let write_of = |seed: u8| Asked {
        op: Op::Write,
        disk: 0,
        offset: 4096 * u64::from(seed),
        length: 65536,
        seed,
    };
    let requests: Vec<_> = (0..60).map(write_of).collect();
    write(&path, &requests);
    let recording = Recording::open(&path).unwrap();
    let mut packer = Packer::new(&recording, Output::create(&packed).unwrap(), 3).unwrap();
    let add = |_, frame: &Frame| packer.add(&mut frame.clone()).map(|()| true);
    recording.for_each_frame(true, add).unwrap();
    let summary = packer.finish().unwrap();
    assert!(summary.file_bytes < fs::metadata(&path).unwrap().len() * 3 / 4);
    let packed = Recording::open(&packed).unwrap();
    let (before, after) = (verify(&recording).unwrap(), verify(&packed).unwrap());
    assert!(after.is_whole());
    assert_eq!((before.events, before.totals), (after.events, after.totals));
    assert!(image_of(&packed, 0, &Instant::End) == model(&requests, 0));
}

#[test]
fn marks_divide_the_requests_into_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let mut writer = Writer::create(&path, &header(1)).unwrap();
    for (number, name) in ["mkfs", "clone", "end"].iter().enumerate() {
        let at = number as u64 * 10;
        let mark = Mark {
            name: (*name).into(),
            detail: serde_json::json!({"kernel": number}),
        };
        writer.mark(&mark, at).unwrap();
        if *name != "end" {
            writer
                .append(event(Op::WriteZeroes, 0, 0, 4096 << number, at + 1))
                .unwrap();
        }
    }
    writer.finish().unwrap();
    let recording = Recording::open(&path).unwrap();
    let found: Vec<_> = intervals(&recording)
        .unwrap()
        .iter()
        .map(|i| (i.mark.name.clone(), i.totals[0].zero_bytes))
        .collect();
    assert_eq!(
        found,
        [
            ("before".into(), 0),
            ("mkfs".into(), 4096),
            ("clone".into(), 8192),
            ("end".into(), 0)
        ]
    );
    assert_eq!(recording.marks().unwrap()[1].1.detail["kernel"], 1);
    let at_clone = recording
        .image_at(0, &Instant::Mark("clone".into()))
        .unwrap();
    assert!(at_clone.content_bytes() == 0);
    assert_eq!(
        recording
            .image_at(0, &Instant::Mark("none".into()))
            .err()
            .unwrap()
            .kind,
        ErrorKind::Invalid
    );
}

#[test]
fn impossible_requests_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&folder.path().join("r"), &header(1)).unwrap();
    for wrong in [
        event(Op::Write, 0, 100, 512, 0),
        event(Op::Write, 0, 0, 100, 0),
        event(Op::Write, 0, DISK_BYTES, 512, 0),
        event(Op::Discard, 0, u64::MAX - 511, 512, 0),
        event(Op::Write, 1, 0, 512, 0),
    ] {
        assert_eq!(
            writer.append(wrong).unwrap_err().kind,
            ErrorKind::Invalid,
            "{wrong:?}"
        );
    }
    assert_eq!(writer.requests(), 0);
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    fs::write(&path, "precious").unwrap();
    assert!(Writer::create(&path, &header(1)).is_err());
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[test]
fn other_files_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    for (content, words) in [
        (&b""[..], "too short"),
        (&[0; 4096], "not a recording"),
        (b"FSCOSTRC\x02\0", "too short"),
    ] {
        fs::write(&path, content).unwrap();
        let error = Recording::open(&path).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Format);
        assert!(error.to_string().contains(words), "{error}");
    }
    assert_eq!(
        Recording::open(folder.path()).unwrap_err().kind,
        ErrorKind::Format
    );
}

/// The bytes of docs/recording-format.md, counted by hand: a change of the format is a change of
/// this test and of the version.
#[test]
fn the_bytes_are_those_of_the_document() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let mut writer = Writer::create(&path, &header(1)).unwrap();
    let content: Vec<u8> = (0..512u32)
        .map(|i| crc32c::crc32c(&i.to_le_bytes()) as u8)
        .collect();
    writer.space()[..512].copy_from_slice(&content);
    let write = Event {
        submit_ns: 5,
        complete_ns: 7,
        fua: true,
        ..event(Op::Write, 0, 1024, 512, 0)
    };
    writer.append(write).unwrap();
    writer.finish().unwrap();
    let bytes = fs::read(&path).unwrap();
    let u16_at = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let crc_with_zero = |from: usize, to: usize, zero: usize| {
        let mut part = bytes[from..to].to_vec();
        part[zero - from..zero - from + 4].fill(0);
        crc32c::crc32c(&part)
    };
    assert_eq!(&bytes[..8], b"FSCOSTRC");
    assert_eq!((u16_at(8), u16_at(10), u32_at(12)), (2, 1, 128));
    assert_eq!(u64_at(16), 1_700_000_000_000_000_000);
    assert_eq!(u32_at(60), crc_with_zero(0, 128, 60));
    assert_eq!(&bytes[64..70], b"disk0\0");
    assert_eq!(
        (u64_at(96), u32_at(104), u32_at(108)),
        (DISK_BYTES, 512, 4096)
    );
    let frame = 128;
    assert_eq!(&bytes[frame..frame + 5], b"FRAM\x01");
    assert_eq!((u32_at(frame + 8), u32_at(frame + 12)), (0, 1));
    let events_bytes = u32_at(frame + 16) as usize;
    assert_eq!(
        (u32_at(frame + 20), u32_at(frame + 24), u32_at(frame + 28)),
        (512, 512, 1)
    );
    assert_eq!((u64_at(frame + 32), u64_at(frame + 40)), (7, 7));
    let (table, events, stored) = (frame + 64, frame + 72, frame + 72 + events_bytes);
    assert_eq!(u32_at(frame + 48), crc32c::crc32c(&bytes[table..stored]));
    assert_eq!(u32_at(frame + 60), crc_with_zero(frame, table, frame + 60));
    assert_eq!(
        (u32_at(table), u32_at(table + 4)),
        (512, crc32c::crc32c(&content))
    );
    assert_eq!(&bytes[stored..stored + 512], content);
    let event = zstd::bulk::decompress(&bytes[events..stored], 1000).unwrap();
    let expected = [
        &5u64.to_le_bytes()[..],
        &7u64.to_le_bytes(),
        &1024u64.to_le_bytes(),
        &512u64.to_le_bytes(),
        &0u32.to_le_bytes(),
        &0u16.to_le_bytes(),
        &[1, 1],
    ];
    assert_eq!(event, expected.concat());
    let end = stored + 512;
    assert_eq!(
        (&bytes[end..end + 5], u32_at(end + 8), bytes.len()),
        (&b"FRAM\x02"[..], 1, end + 64)
    );
}
