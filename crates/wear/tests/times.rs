//! Times of recordings and arrays that can be said beforehand.
#![allow(missing_docs, clippy::unwrap_used)]

use fscost_raid::{Geometry, Level, RowCounts, WritePath};
use fscost_recording::{DiskInfo, Event, Header, Op, Recording, Stripped, Writer};
use fscost_ssd::{Collection, Mapping, PageMapOptions, Separation, Spec, Timing};
use fscost_wear::{IntervalTimes, OnArray, times};

const MS: u64 = 1_000_000;
const BLOCK: u64 = 4096;
const CHUNK: u64 = 16 * BLOCK;
const DISK_BYTES: u64 = 16 << 20;

fn event(disk: u16, op: Op, offset: u64, length: u64, times_ms: (u64, u64)) -> Event {
    Event {
        submit_ns: times_ms.0 * MS,
        complete_ns: times_ms.1 * MS,
        offset,
        length,
        content_offset: 0,
        disk,
        op,
        fua: false,
    }
}

/// Returns the times of a recording of these requests, which lie before any mark: a page takes a
/// second to read.
fn played(events: &[Event], array: Option<&OnArray>) -> (IntervalTimes, RowCounts) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let disk = |name: &str| DiskInfo {
        name: name.to_owned(),
        size_bytes: DISK_BYTES,
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
    };
    let header = Header {
        begin_unix_ns: 0,
        stripped: Stripped::No,
        disks: vec![disk("a"), disk("b")],
    };
    let mut writer = Writer::create(&path, &header).unwrap();
    for event in events {
        if event.op == Op::Write {
            writer.space()[..event.length as usize].fill(1);
        }
        writer.append(*event).unwrap();
    }
    writer.finish().unwrap();
    let spec = Spec {
        capacity_bytes: DISK_BYTES,
        spare: 0.1,
        unit_bytes: 4096,
        page_bytes: 4096,
        block_bytes: 65536,
        mapping: Mapping::Page(PageMapOptions {
            reserved_blocks: 1,
            collection: Collection::Greedy,
            separation: Separation::Mixed,
            streams: 1,
            levelling_gap: None,
            seed: 0,
        }),
        buffer_bytes: 1 << 20,
        is_power_loss_protected: false,
    };
    let timing = Timing {
        read_s: 1.0,
        program_s: 2.0,
        erase_s: 0.0,
        parallel_pages: 1,
    };
    let recording = Recording::open(&path).unwrap();
    let (mut intervals, rows) = times(&recording, &spec, timing, array).unwrap();
    (intervals.remove(0), rows)
}

fn on_array(level: Level, members: usize, chunk_bytes: u64) -> OnArray {
    OnArray {
        disk: 0,
        geometry: Geometry {
            level,
            layout: 2,
            chunk_bytes,
            member_bytes: vec![DISK_BYTES; members],
        },
        options: WritePath::default(),
        batch_gap_ns: MS,
    }
}

fn busy_s(found: &IntervalTimes) -> Vec<f64> {
    found.members.iter().map(|member| member.busy_s).collect()
}

#[test]
fn the_pieces_of_a_striped_read_are_in_flight_together() {
    let array = on_array(Level::Raid0, 2, CHUNK);
    let reads = [(0, 1), (2, 3)].map(|times_ms| event(0, Op::Read, 8 * CHUNK, 2 * CHUNK, times_ms));
    let (found, _) = played(&reads, Some(&array));
    assert_eq!(found.elapsed_s, 32.0, "a chunk of each read");
    assert_eq!(busy_s(&found), [32.0, 32.0]);
}

#[test]
fn a_request_waits_for_the_reads_that_had_completed_before_it() {
    let read = |disk, times_ms| event(disk, Op::Read, 0, BLOCK, times_ms);
    let together = [read(0, (0, 2)), read(1, (1, 3))];
    assert_eq!(played(&together, None).0.elapsed_s, 1.0);
    let in_turn = [read(0, (0, 2)), read(1, (2, 3))];
    assert_eq!(played(&in_turn, None).0.elapsed_s, 2.0);
    // The second read waits neither for itself nor for the write.
    let behind = [
        read(0, (0, 1)),
        event(0, Op::Write, 0, BLOCK, (1, 2)),
        read(1, (2, 3)),
    ];
    assert_eq!(played(&behind, None).0.elapsed_s, 2.0);
}

#[test]
fn a_write_with_fua_takes_as_long_as_one_with_a_flush() {
    let write = |fua| Event {
        fua,
        ..event(1, Op::Write, 0, BLOCK, (0, 1))
    };
    let flush = event(1, Op::Flush, 0, 0, (1, 2));
    let (durable, _) = played(&[write(true)], None);
    let flushed = played(&[write(false), flush], None).0;
    assert_eq!(durable.elapsed_s, flushed.elapsed_s);
    assert_eq!(busy_s(&durable), [0.0, 2.0], "a page is programmed");
    // Both members of a mirror program it at once, and what comes later waits for both.
    let both = [0, 1].map(|disk| Event {
        disk,
        ..write(true)
    });
    assert_eq!(played(&both, None).0.elapsed_s, 2.0);
    let read = event(0, Op::Read, 0, BLOCK, (2, 3));
    assert_eq!(played(&[both[1], read], None).0.elapsed_s, 3.0);
}

/// Events come in order of completion, so one that took long has an early submission.
#[test]
fn a_late_completion_does_not_end_a_batch() {
    let array = on_array(Level::Raid5, 3, BLOCK);
    let write = |block, times_us: (u64, u64)| Event {
        submit_ns: times_us.0 * 1000,
        complete_ns: times_us.1 * 1000,
        ..event(0, Op::Write, block * BLOCK, BLOCK, (0, 0))
    };
    let both = [write(0, (9000, 9100)), write(1, (9600, 9700))];
    let late = [both[0], write(20, (0, 9200)), both[1]];
    assert_eq!(played(&both, Some(&array)).1.full, 1);
    assert_eq!(played(&late, Some(&array)).1.full, 1);
}
