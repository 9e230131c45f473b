//! Makes a large recording from a real one, for `benches/classify.py`: the original requests, then
//! more writes to the locations of its file data. The added content is zeros, which a recording
//! stores compressed. `enlarge RECORDING OUT GIB REQUEST_KIB random
//!
//! sequential`.

#![allow(clippy::unwrap_used)]

use fscost_explain::{Structure, explain};
use fscost_recording::{Event, Op, Recording, Writer};
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, out, gib, request_kib, order] = &arguments[..] else {
        panic!("enlarge RECORDING OUT GIB REQUEST_KIB random|sequential");
    };
    let recording = Recording::open(Path::new(from)).unwrap();
    let length = request_kib.parse::<u64>().unwrap() << 10;
    let places = places(&recording, length);
    assert!(!places.is_empty(), "no file data as long as a request");
    let mut writer = Writer::create(Path::new(out), recording.header()).unwrap();
    let mut now_ns = 0;
    let walk = recording.for_each_frame(true, |_, frame| {
        for event in &frame.events {
            now_ns = event.complete_ns;
            if event.op == Op::Mark {
                writer.mark(&frame.mark_of(event)?, now_ns)?;
                continue;
            }
            let content = frame.content_of(event);
            writer.space()[..content.len()].copy_from_slice(content);
            writer.append(*event)?;
        }
        Ok(true)
    });
    walk.unwrap();
    let mut random = 1u64;
    for number in 0..(gib.parse::<u64>().unwrap() << 30) / length {
        // Knuth's MMIX generator: the same recording each time.
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let place = if order == "random" {
            (random >> 33) as usize
        } else {
            number as usize
        };
        now_ns += 10_000;
        writer.space()[..length as usize].fill(0);
        let event = Event {
            submit_ns: now_ns,
            complete_ns: now_ns,
            offset: places[place % places.len()],
            length,
            content_offset: 0,
            disk: 0,
            op: Op::Write,
            fua: false,
        };
        writer.append(event).unwrap();
    }
    println!("{} bytes", writer.finish().unwrap().file_bytes);
}

/// Locations of file data on the first disk, in pieces of `length`.
fn places(recording: &Recording, length: u64) -> Vec<u64> {
    let rows = explain(recording).unwrap().rows;
    let data = rows
        .iter()
        .filter(|r| r.disk == 0 && r.structure == Structure::FileData);
    let pieces = data.flat_map(|r| {
        let first = r.offset.next_multiple_of(length);
        let end = (r.offset + r.length) / length * length;
        (first..end).step_by(length as usize)
    });
    let mut places: Vec<_> = pieces.collect();
    places.sort_unstable();
    places.dedup();
    places
}
