//! Speed of the array model: `array_speed LEVEL MEMBERS random
//!
//! sequential`. `benches/raid.py` runs it. Chunks of 64 KiB; times are CPU time of the thread.

use fscost_raid::{Array, Geometry, Level, Load, WritePath};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;

const MEMBER_BYTES: u64 = 64 << 30;
const RANDOM_BYTES: u64 = 4 << 10;
const SEQUENTIAL_BYTES: u64 = 1 << 20;
/// Requests between two settlings, as a queue that is unplugged.
const BATCH: u64 = 32;

#[allow(clippy::print_stdout)] // the result
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let level = arguments.next().unwrap_or_default();
    let members: usize = arguments.next().unwrap_or_default().parse()?;
    let is_random = arguments.next().as_deref() == Some("random");
    let (level, layout) = match level.as_str() {
        "raid0" => (Level::Raid0, 2),
        "raid1" => (Level::Raid1, 0),
        "raid5" => (Level::Raid5, 2),
        "raid6" => (Level::Raid6, 2),
        "raid10" => (Level::Raid10, 0x102),
        other => return Err(format!("no level {other:?}").into()),
    };
    let geometry = Geometry {
        level,
        layout,
        chunk_bytes: 64 << 10,
        member_bytes: vec![MEMBER_BYTES; members],
    };
    let mut array = Array::new(&geometry, WritePath::default())?;
    let (bytes, requests) = match is_random {
        true => (RANDOM_BYTES, 4_000_000),
        false => (SEQUENTIAL_BYTES, 100_000),
    };
    let places = array.size_bytes() / bytes;
    let mut loads = vec![Load::default(); members];
    let mut out = Vec::new();
    let mut state = 1_u64;
    let began = cpu_seconds();
    for number in 0..requests {
        // Knuth's generator (MMIX): its high bits are random enough for places.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let place = if is_random {
            (state >> 20) % places
        } else {
            number % places
        };
        array.write(place * bytes, bytes, &mut out)?;
        if number % BATCH == BATCH - 1 {
            array.settle(&mut out);
        }
        for request in out.drain(..) {
            loads[request.member].add(&request);
        }
    }
    let seconds = cpu_seconds() - began;
    let written: u64 = loads.iter().map(|load| load.write_bytes).sum();
    println!(
        "{:.3} M requests/s, {:.3} GiB/s of the host, {:.4} bytes written for each of the host",
        requests as f64 / seconds / 1e6,
        (requests * bytes) as f64 / seconds / f64::from(1 << 30),
        written as f64 / (requests * bytes) as f64,
    );
    Ok(())
}

/// CPU time of this thread.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
