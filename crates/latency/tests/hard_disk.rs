//! Hard disks against closed forms.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{assert_near, closed_loop, mean, model, request};
use fscost_latency::{Device, Model, Op, Request};

const TIB: u64 = 1 << 40;
const REVOLUTION_NS: f64 = 60e9 / 7200.0;

const DISK: &str = "model = 'hard-disk'
capacity_bytes = 1099511627776
rpm = 7200
heads = 4
outer_track_bytes = 1000000
head_switch_us = 800
track_seek_us = 1000
full_seek_us = 15060
interface_bytes_per_s = 300000000
";

/// One zone, so that places that are uniform in bytes are uniform in cylinders.
fn one_zone(more: &str) -> Model {
    model(&format!("{DISK}inner_track_bytes = 1000000\n{more}"))
}

fn random_reads(count: u64, seed: u64) -> impl Iterator<Item = Request> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count).map(move |id| request(id, Op::Read, random.u64(0..TIB / 4096) * 4096, 4096))
}

/// Uniform random places: the distance x has density 2(1 − x), so a seek of a + b√x takes a + 8b/15
/// on average, with variance 11b²/225; the rotation adds T/2, with variance T²/12.
#[test]
fn closed_form_random_reads_take_a_seek_and_half_a_rotation() {
    let mut device = Device::new(&one_zone("command_us = 100"), TIB, 1);
    let ran = closed_loop(&mut device, 0, 1, random_reads(200_000, 7));
    let latency: Vec<f64> = ran.iter().map(|ran| ran.latency_ns() as f64).collect();
    let (a, b) = (1e6, 14.06e6);
    let transfer_ns = 4096.0 / 1e6 * REVOLUTION_NS;
    let expected = 1e5 + a + 8.0 * b / 15.0 + REVOLUTION_NS / 2.0 + transfer_ns;
    let found = mean(latency.iter().copied());
    assert_near(found, expected, 0.003);
    let variance = mean(latency.iter().map(|ns| (ns - found).powi(2)));
    let expected = 11.0 * b * b / 225.0 + REVOLUTION_NS.powi(2) / 12.0;
    assert_near(variance, expected, 0.01);
}

/// Zeroes are data, however many a request has.
#[test]
fn closed_form_zeroes_take_as_long_as_writes() {
    const GIB: u64 = 1 << 30;
    for length in [64 << 20, GIB, 2 * GIB] {
        let mut device = Device::new(&one_zone(""), TIB, 1);
        let zeroes = [request(0, Op::WriteZeroes, 0, length)];
        let ran = closed_loop(&mut device, 0, 1, zeroes);
        let cylinder_ns = 3.0 * 8e5 + 1e6 + 4.0 * REVOLUTION_NS;
        let transfer_ns = length as f64 / 300e6 * 1e9;
        let expected = transfer_ns + length as f64 / 4e6 * cylinder_ns;
        assert_near(ran[0].latency_ns() as f64, expected, 0.04);
    }
}

/// Hitachi Deskstar 7K500 specification, 4.4.4: sustained rate = A ÷ (B + C + D), with A the bytes
/// of a cylinder, B = (heads − 1) × head switch time, C the cylinder change time and D = heads ×
/// revolution.
#[test]
fn closed_form_sequential_throughput_per_zone() {
    let text = one_zone(
        "zones = 5\nread_segments = 16\nread_segment_bytes = 2097152\nread_ahead_bytes = 2097152",
    );
    assert_ne!(text, Model::default());
    let zoned = model(&format!(
        "{DISK}inner_track_bytes = 500000\nzones = 5\nqueue_depth = 32\nread_segments = 16\n\
         read_segment_bytes = 2097152\nread_ahead_bytes = 2097152\n\
         write_cache_bytes = 16777216"
    ));
    let shares = [1.0, 0.875, 0.75, 0.625, 0.5];
    let mut first_share = 0.0;
    for share in shares {
        let track = 1e6 * share;
        let cylinder_ns = 3.0 * 8e5 + 1e6 + 4.0 * REVOLUTION_NS;
        let expected = 4.0 * track / cylinder_ns * 1e9;
        // The middle of the zone: each has as many cylinders.
        let zone_bytes = TIB as f64 * share / 3.75;
        let first = ((TIB as f64 * first_share / 3.75 + zone_bytes / 2.0) / 4096.0) as u64 * 4096;
        first_share += share;
        for (op, depth, length) in [
            (Op::Read, 1, 128 << 10),
            (Op::Read, 1, 1 << 20),
            (Op::Read, 32, 64 << 10),
            (Op::Write, 1, 256 << 10),
            (Op::Write, 32, 64 << 10),
        ] {
            let mut device = Device::new(&zoned, TIB, 3);
            let bytes = 1u64 << 30;
            let requests =
                (0..bytes / length).map(|id| request(id, op, first + id * length, length));
            let ran = closed_loop(&mut device, 0, depth, requests);
            let flushed = closed_loop(
                &mut device,
                ran.last().unwrap().completed_ns,
                1,
                [request(0, Op::Flush, 0, 0)],
            );
            let rate = bytes as f64 / (flushed[0].completed_ns - ran[0].completed_ns) as f64 * 1e9;
            assert_near(rate, expected, 0.01);
        }
    }
}

/// Teorey and Pinkerton (CACM 1972): an elevator over n queued random requests moves 1/(n + 1) of
/// the stroke for each and waits half a revolution. A drive that knows the angle is faster, but no
/// faster than the least of n rotations. It chooses when a request completes, before the host can
/// send another: of `depth` requests, n = depth − 1 are queued.
#[test]
fn closed_form_queueing_beats_the_elevator() {
    let mut last_ns = f64::INFINITY;
    for depth in [1u32, 3, 5, 9, 17, 32] {
        let text = one_zone(&format!("queue_depth = {depth}"));
        let mut device = Device::new(&text, TIB, 1);
        let ran = closed_loop(&mut device, 0, depth as usize, random_reads(20_000, 7));
        let end_ns = ran.iter().map(|ran| ran.completed_ns).max().unwrap();
        let service_ns = end_ns as f64 / ran.len() as f64;
        let n = f64::from(depth.max(2) - 1);
        let transfer_ns = 4096.0 / 1e6 * REVOLUTION_NS;
        let elevator_ns = 1e6 + 14.06e6 / (n + 1.0).sqrt() + REVOLUTION_NS / 2.0 + transfer_ns;
        assert!(
            service_ns < elevator_ns,
            "{depth}: {service_ns} {elevator_ns}"
        );
        assert!(service_ns > REVOLUTION_NS / (n + 1.0) + transfer_ns);
        assert!(service_ns < last_ns, "deeper queues are faster");
        last_ns = service_ns;
    }
}

/// A block that is appended and flushed again and again waits for a whole revolution each time: 120
/// a second at 7200 rpm.
#[test]
fn closed_form_an_append_and_flush_takes_a_revolution() {
    let mut device = Device::new(&one_zone("write_cache_bytes = 16777216"), TIB, 1);
    let requests = (0..400).map(|id| match id % 2 {
        0 => request(id, Op::Write, id * 2048, 4096),
        _ => request(id, Op::Flush, 0, 0),
    });
    let ran = closed_loop(&mut device, 0, 1, requests);
    let span_ns = (ran[399].completed_ns - ran[1].completed_ns) as f64;
    // The place moves on by 4 KiB each time; 199 appends lie on one track.
    assert_near(span_ns / 199.0, REVOLUTION_NS * (1.0 + 4096.0 / 1e6), 0.001);
    assert!(
        ran[0].latency_ns() < 50_000,
        "a write completes in the cache"
    );
}

/// FUA and a drive without a write cache: each write waits for the medium.
#[test]
fn closed_form_a_write_through_takes_what_a_read_takes_and_the_settling() {
    for (more, fua) in [("", false), ("write_cache_bytes = 16777216\n", true)] {
        let text = one_zone(&format!("{more}write_settle_us = 1000"));
        let mut device = Device::new(&text, TIB, 1);
        let writes = random_reads(50_000, 9).map(|request| Request {
            op: Op::Write,
            fua,
            ..request
        });
        let ran = closed_loop(&mut device, 0, 1, writes);
        let interface_ns = 4096.0 / 0.3;
        let expected =
            interface_ns + 2e6 + 8.0 * 14.06e6 / 15.0 + REVOLUTION_NS * (0.5 + 4096.0 / 1e6);
        assert_near(
            mean(ran.iter().map(|ran| ran.latency_ns() as f64)),
            expected,
            0.01,
        );
    }
}

#[test]
fn a_full_cache_slows_random_writes_to_the_speed_of_the_medium() {
    let text = one_zone("write_cache_bytes = 1048576\nqueue_depth = 32");
    let mut device = Device::new(&text, TIB, 1);
    let writes = random_reads(4_000, 9).map(|request| Request {
        op: Op::Write,
        ..request
    });
    let ran = closed_loop(&mut device, 0, 1, writes);
    assert!(ran[..200].iter().all(|ran| ran.latency_ns() < 1_000_000));
    let later = mean(ran[1000..].iter().map(|ran| ran.latency_ns() as f64));
    // 256 writes sorted by place and angle: above the least rotation, below one random access.
    assert!((1e6..12e6).contains(&later), "{later}");
}

#[test]
fn a_read_of_what_the_buffer_holds_does_not_move_the_arm() {
    let text = one_zone(
        "write_cache_bytes = 1048576\nread_segments = 4\nread_segment_bytes = 1048576\n\
         read_ahead_bytes = 1048576",
    );
    let mut device = Device::new(&text, TIB, 1);
    let ran = closed_loop(
        &mut device,
        0,
        1,
        [
            request(0, Op::Read, TIB / 2, 4096),
            request(1, Op::Read, TIB / 2, 4096),
            request(2, Op::Read, 0, 4096),
            request(3, Op::Read, TIB / 2, 4096),
            request(4, Op::Write, TIB / 2, 4096),
            request(5, Op::Read, TIB / 2, 4096),
            request(6, Op::Read, TIB / 4, 4096),
        ],
    );
    let quick: Vec<bool> = ran.iter().map(|ran| ran.latency_ns() < 100_000).collect();
    assert_eq!(quick, [false, true, false, true, true, true, false]);
}

#[test]
fn a_flush_waits_for_what_was_written_before_it() {
    let mut device = Device::new(&one_zone("write_cache_bytes = 1048576"), TIB, 1);
    let idle = closed_loop(&mut device, 0, 1, [request(0, Op::Flush, 0, 0)]);
    assert_eq!(idle[0].latency_ns(), 0, "there is nothing to write");
    let requests = (0..17).map(|id| match id {
        16 => request(id, Op::Flush, 0, 0),
        _ => request(id, Op::Write, id * (TIB / 16), 4096),
    });
    let ran = closed_loop(&mut device, 1_000_000, 1, requests);
    // Sixteen places over the whole disk, in one sweep: 2/15 of a full stroke at most for each.
    assert!(ran[16].latency_ns() > 15 * 3_000_000, "{ran:?}");
    assert!(ran[16].latency_ns() < 17 * 16_000_000, "{ran:?}");
}
