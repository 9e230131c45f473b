//! Flash devices against closed forms.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{assert_near, closed_loop, mean, model, request};
use fscost_latency::{Device, Model, Op, Request};

const GIB: u64 = 1 << 30;

const SSD: &str = "model = 'flash'
queue_depth = 32
interface_bytes_per_s = 500000000
command_us = 10
read_us = 20
write_us = 12
discard_us = 30
flush_us = 400
channels = 4
dies_per_channel = 2
channel_bytes_per_s = 400000000
page_bytes = 16384
page_read_us = 60
program_bytes = 65536
program_us = 600
";

fn ssd(more: &str) -> Device {
    Device::new(&model(&format!("{SSD}{more}")), GIB, 1)
}

fn random(count: u64, op: Op) -> impl Iterator<Item = Request> {
    let mut random = fastrand::Rng::with_seed(5);
    (0..count).map(move |id| request(id, op, random.u64(0..GIB / 4096) * 4096, 4096))
}

fn span_ns(ran: &[common::Ran]) -> f64 {
    ran.iter().map(|ran| ran.completed_ns).max().unwrap() as f64
}

#[test]
fn closed_form_a_lone_request_takes_the_sum_of_its_parts() {
    // A read: controller, firmware, page, channel (the interface moves less than the channel).
    let read = 10_000 + 20_000 + 60_000 + 10_240;
    // A write into the buffer: controller, interface, firmware.
    let write = 10_000 + 8_192 + 12_000;
    for (op, expected) in [(Op::Read, read), (Op::Write, write), (Op::Discard, 40_000)] {
        let ran = closed_loop(&mut ssd("buffer_bytes = 1048576"), 0, 1, random(1, op));
        assert_eq!(ran[0].latency_ns(), expected, "{op:?}");
    }
}

/// Little's law: with n requests always in flight and the controller as the bottleneck, each takes
/// n × its service time.
#[test]
fn closed_form_littles_law_on_a_saturated_controller() {
    for depth in [16usize, 32, 64, 128] {
        let more = "dies_per_channel = 64\n";
        let text = SSD.replace("dies_per_channel = 2\n", more);
        let text = text.replace(
            "channel_bytes_per_s = 400000000",
            "channel_bytes_per_s = 1000000000",
        );
        let text = text.replace("queue_depth = 32", "queue_depth = 64");
        let mut device = Device::new(&model(&text), GIB, 1);
        let ran = closed_loop(&mut device, 0, depth, random(100_000, Op::Read));
        let latency = mean(ran[1000..].iter().map(|ran| ran.latency_ns() as f64));
        assert_near(latency, depth as f64 * 10_000.0, 0.01);
        assert_near(span_ns(&ran) / ran.len() as f64, 10_000.0, 0.01);
    }
}

/// The same with the dies as the bottleneck: whole rounds over all dies keep each of them busy.
#[test]
fn closed_form_littles_law_on_saturated_dies() {
    let text = SSD.replace("command_us = 10", "command_us = 0");
    let text = text.replace("interface_bytes_per_s = 5", "interface_bytes_per_s = 50");
    let text = text.replace(
        "channel_bytes_per_s = 400000000",
        "channel_bytes_per_s = 4000000000",
    );
    let mut device = Device::new(&model(&text), GIB, 1);
    let pages = (0..80_000).map(|id| request(id, Op::Read, id % 1000 * 16_384, 4096));
    let ran = closed_loop(&mut device, 0, 32, pages);
    let latency = mean(ran[1000..].iter().map(|ran| ran.latency_ns() as f64));
    assert_near(latency, 32.0 * 60_000.0 / 8.0, 0.01);
    assert_near(span_ns(&ran) / ran.len() as f64, 60_000.0 / 8.0, 0.01);
}

#[test]
fn closed_form_sustained_writes_run_at_the_speed_of_the_slowest_part() {
    // Dies: each moves and programs 64 KiB, and erases 1 MiB after sixteen of them.
    let (move_ns, program_ns) = (65_536.0 / 0.4, 1_200_000.0);
    let die_ns = move_ns + program_ns + 3_200_000.0 / 16.0;
    let dies = 8.0 * 65_536.0 / die_ns * 1e9;
    for (more, expected) in [
        ("buffer_bytes = 4194304\nerase_us = 3200", dies),
        (
            "buffer_bytes = 4194304\nerase_us = 3200\npower_loss_protection = true",
            dies,
        ),
    ] {
        for depth in [1, 8] {
            let writes = (0..4096).map(|id| request(id, Op::Write, id * 262_144 % GIB, 262_144));
            let text = SSD.replace("program_us = 600", "program_us = 1200");
            let model = model(&format!("{text}{more}"));
            let mut device = Device::new(&model, GIB, 1);
            let ran = closed_loop(&mut device, 0, depth, writes);
            let (begin, end) = (ran[512].completed_ns, ran[4095].completed_ns);
            let rate = (4095 - 512) as f64 * 262_144.0 / (end - begin) as f64 * 1e9;
            assert_near(rate, expected, 0.01);
        }
    }
    // Fast dies: the interface is the slowest.
    let text = SSD.replace("program_us = 600", "program_us = 60");
    let text = text.replace(
        "channel_bytes_per_s = 400000000",
        "channel_bytes_per_s = 1000000000",
    );
    let mut device = Device::new(&model(&format!("{text}buffer_bytes = 4194304")), GIB, 1);
    let writes = (0..4096).map(|id| request(id, Op::Write, id * 262_144 % GIB, 262_144));
    let ran = closed_loop(&mut device, 0, 8, writes);
    assert_near(4096.0 * 262_144.0 / span_ns(&ran) * 1e9, 5e8, 0.01);
}

#[test]
fn closed_form_a_flush_programs_what_the_buffer_holds() {
    let write_and_flush = |more: &str, writes: u64| {
        let requests = (0..=writes).map(|id| match id {
            last if last == writes => request(id, Op::Flush, 0, 0),
            _ => request(id, Op::Write, id * 4096, 4096),
        });
        let ran = closed_loop(&mut ssd(more), 0, 1, requests);
        ran.last().unwrap().latency_ns()
    };
    let buffered = "buffer_bytes = 1048576";
    let program = 65_536 * 10 / 4 + 600_000;
    assert_eq!(
        write_and_flush(buffered, 0),
        410_000,
        "there is nothing to program"
    );
    assert_eq!(write_and_flush(buffered, 1), 410_000 + program);
    assert_eq!(
        write_and_flush(buffered, 15),
        410_000 + program,
        "one program takes all"
    );
    // The first sixteen began before the flush; the seventeenth waits for another die.
    assert_eq!(write_and_flush(buffered, 17), 410_000 + program);
    let protected = "buffer_bytes = 1048576\npower_loss_protection = true";
    assert_eq!(write_and_flush(protected, 15), 410_000);
}

#[test]
fn closed_form_fua_and_a_device_without_a_buffer_wait_for_the_program() {
    let program = 65_536 * 10 / 4 + 600_000;
    let write = 10_000 + 8_192 + 12_000;
    for (more, fua, expected) in [
        ("", false, write + program),
        ("buffer_bytes = 1048576", true, write + program),
        (
            "buffer_bytes = 1048576\npower_loss_protection = true",
            true,
            write,
        ),
    ] {
        let requests = random(1, Op::Write).map(|request| Request { fua, ..request });
        let ran = closed_loop(&mut ssd(more), 0, 1, requests);
        assert_eq!(ran[0].latency_ns(), expected, "{more}");
    }
}

#[test]
fn reads_overtake_programs_that_wait() {
    let mut device = ssd("buffer_bytes = 67108864");
    let writes = (0..128).map(|id| request(id, Op::Write, id * 262_144, 262_144));
    let ran = closed_loop(&mut device, 0, 32, writes);
    let now_ns = span_ns(&ran) as u64;
    let reads = closed_loop(&mut device, now_ns, 1, random(64, Op::Read));
    // At most one program is in the way.
    let most = 10_000 + 20_000 + 60_000 + 10_240 + 600_000 + 163_840;
    assert!(
        reads.iter().all(|ran| ran.latency_ns() <= most),
        "{reads:?}"
    );
    assert!(
        reads.iter().any(|ran| ran.latency_ns() > 200_000),
        "none is in the way"
    );
}

#[test]
fn a_flush_runs_alone_unless_it_is_queued() {
    for (more, is_queued) in [("", false), ("queued_flush = true\n", true)] {
        let mut device = ssd(&format!("{more}buffer_bytes = 1048576"));
        for (id, op) in [(0, Op::Flush), (1, Op::Read)] {
            device.submit(0, request(id, op, 0, 4096));
        }
        let mut done = Vec::new();
        device.advance(u64::MAX / 4, &mut done);
        let order: Vec<u64> = done.iter().map(|each| each.id).collect();
        assert_eq!(order, if is_queued { [1, 0] } else { [0, 1] });
    }
}

/// A card that keeps two units of 4 MiB open; closing an empty one takes 400 ms.
fn card() -> Model {
    model(&format!(
        "{SSD}unit_bytes = 4194304\nopen_units = 2\nunit_close_us = 400000\nout_of_order_us = 3000"
    ))
}

#[test]
fn closed_form_a_write_outside_the_open_units_copies_what_is_missing() {
    let mut device = Device::new(&card(), GIB, 1);
    let unit = 4 << 20;
    let places = [0, unit, 4096, unit + 4096, 2 * unit, 2 * unit + 8192, 0];
    let writes = places
        .iter()
        .map(|&place| request(0, Op::Write, place, 4096));
    let ran = closed_loop(&mut device, 0, 1, writes);
    let plain = ran[0].latency_ns();
    let extra: Vec<u64> = ran.iter().map(|ran| ran.latency_ns() - plain).collect();
    // Units 0 and 1 have two of 1024 parts when unit 2 and then unit 0 displace them.
    let close = 400_000_000 - 2 * 400_000_000 / 1024;
    assert_eq!(extra, [0, 0, 0, 0, close, 3_000_000, close]);
}

/// A log that is rewritten in place leaves the rest of its unit to be copied.
#[test]
fn closed_form_rewrites_do_not_fill_a_unit() {
    let unit = 4 << 20;
    let closing_ns = |places: &[u64]| {
        let mut device = Device::new(&card(), GIB, 1);
        let last = [unit, 2 * unit];
        let writes = places.iter().chain(&last);
        let writes = writes.map(|&place| request(0, Op::Write, place, 8192));
        let ran = closed_loop(&mut device, 0, 1, writes);
        ran.last().unwrap().latency_ns() - ran[0].latency_ns()
    };
    let close_ns = |written: u64| 400_000_000 - 400_000_000 * written / 1024;
    assert_eq!(closing_ns(&[0]), close_ns(2));
    assert_eq!(closing_ns(&[0; 2048]), close_ns(2));
    // Of five writes, two overlap others, one joins its neighbours, and one is apart.
    let places = [4096, 0, 16384, 8192, 1 << 20];
    assert_eq!(closing_ns(&places), close_ns(8));
}

/// Bytes a second of writes in order, from `first` on, at an instant.
fn written_per_s(device: &mut Device, now_ns: u64, first: u64, bytes: u64) -> f64 {
    let piece = 1 << 20;
    let writes = (0..bytes / piece).map(|id| request(id, Op::Write, first + id * piece, piece));
    let ran = closed_loop(device, now_ns, 8, writes);
    bytes as f64 / (span_ns(&ran) - now_ns as f64) * 1e9
}

#[test]
fn closed_form_writes_slow_down_when_the_slc_cache_is_full_and_recover_while_idle() {
    const CACHE: u64 = 512 << 20;
    let device = |more: &str| {
        let slow = SSD.replace("program_us = 600", "program_us = 3000");
        Device::new(
            &model(&format!("{slow}buffer_bytes = 1048576\n{more}")),
            GIB,
            1,
        )
    };
    let slow_rate = written_per_s(&mut device(""), 0, 0, CACHE);
    let all = "slc_bytes = 1099511627776\nslc_program_us = 100";
    let fast_rate = written_per_s(&mut device(all), 0, 0, CACHE);
    assert!(fast_rate > 2.0 * slow_rate, "{fast_rate} {slow_rate}");
    let mut device =
        device("slc_bytes = 536870912\nslc_program_us = 100\nslc_fold_bytes_per_s = 100000000");
    assert_near(written_per_s(&mut device, 0, 0, CACHE), fast_rate, 0.01);
    let second = 1_000_000_000;
    // The cache is full. What has left it in the meantime, and nothing more, is written fast again.
    let found = written_per_s(&mut device, 3 * second, CACHE, CACHE);
    let folded = 100e6 * (3.0 - CACHE as f64 / fast_rate);
    let expected_s = folded / fast_rate + (CACHE as f64 - folded) / slow_rate;
    assert_near(found, CACHE as f64 / expected_s, 0.02);
    // After seconds of idleness, all of it is free.
    let now_ns = 60 * second;
    device.advance(now_ns, &mut Vec::new());
    let found = written_per_s(&mut device, now_ns, 0, CACHE);
    assert_near(found, fast_rate, 0.02);
}

#[test]
fn closed_form_reads_beyond_the_cached_map_read_its_page_first() {
    // 64 KiB of map cover 64 MiB.
    let latency_ns = |device: &mut Device, place| {
        closed_loop(device, 0, 1, [request(0, Op::Read, place, 4096)])[0].latency_ns()
    };
    let whole = latency_ns(&mut ssd(""), 0);
    let mut device = ssd("map_bytes = 65536");
    let missed = latency_ns(&mut device, 0);
    assert!(missed > whole + 60_000, "{missed} {whole}");
    let mib = 1 << 20;
    let mut device = ssd("map_bytes = 65536");
    let times = |device: &mut Device, span: u64| {
        let mut random = fastrand::Rng::with_seed(5);
        let places =
            (0..2000).map(|id| request(id, Op::Read, random.u64(0..span) / 4096 * 4096, 4096));
        let ran = closed_loop(device, 0, 1, places);
        mean(ran.iter().map(|each| each.latency_ns() as f64))
    };
    // At most 16 of 2000 reads miss.
    assert_near(times(&mut device, 64 * mib), whole as f64, 0.01);
    // 64 MiB of 1 GiB are held: fifteen of sixteen reads miss.
    let expected = whole as f64 + 15.0 / 16.0 * (missed - whole) as f64;
    assert_near(
        times(&mut ssd("map_bytes = 65536"), 1024 * mib),
        expected,
        0.02,
    );
}
