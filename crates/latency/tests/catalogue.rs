//! The devices of the catalogue against the figures that their makers and others published.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Ran, assert_near, closed_loop, mean, request};
use fscost_latency::{Device, Model, Op, Request};
use std::path::Path;

fn device(name: &str) -> Device {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/fscost/devices/catalogue");
    let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
    Device::new(&Model::parse(name, &text).unwrap(), SPAN, 1)
}

/// Bytes of a device that the tests use.
const SPAN: u64 = 64 << 30;

fn random(count: u64, op: Op) -> impl Iterator<Item = Request> {
    let mut random = fastrand::Rng::with_seed(3);
    (0..count).map(move |id| request(id, op, random.u64(0..SPAN / 4096) * 4096, 4096))
}

/// Requests of 4 KiB at random places of the first `span` bytes.
fn within(span: u64, count: u64, op: Op) -> impl Iterator<Item = Request> {
    let mut random = fastrand::Rng::with_seed(3);
    (0..count).map(move |id| request(id, op, random.u64(0..span / 4096) * 4096, 4096))
}

fn megabytes_per_s(name: &str, depth: usize, op: Op) -> f64 {
    run(name, depth, sequential(1024, op, 1 << 20)) * f64::from(1 << 20) / 1e6
}

fn sequential(count: u64, op: Op, bytes: u64) -> impl Iterator<Item = Request> {
    (0..count).map(move |id| request(id, op, id * bytes, bytes))
}

fn per_second(ran: &[Ran]) -> f64 {
    let end_ns = ran.iter().map(|each| each.completed_ns).max().unwrap();
    ran.len() as f64 / end_ns as f64 * 1e9
}

fn run(name: &str, depth: usize, requests: impl Iterator<Item = Request>) -> f64 {
    per_second(&closed_loop(&mut device(name), 0, depth, requests))
}

#[test]
fn sata_and_nvme_drives_reach_their_data_sheets() {
    // Reads and writes a second at queue depth 1, then at depth 32 or 128; MB/s of writes.
    for (name, lone, deep, depth, megabytes) in [
        ("samsung-870-evo-1tb", [13e3, 36e3], [98e3, 88e3], 32, 530.0),
        (
            "samsung-970-evo-plus-1tb",
            [19e3, 60e3],
            [600e3, 550e3],
            128,
            3300.0,
        ),
    ] {
        for (op, lone, deep) in [(Op::Read, lone[0], deep[0]), (Op::Write, lone[1], deep[1])] {
            assert_near(run(name, 1, random(20_000, op)), lone, 0.03);
            assert_near(run(name, depth, random(100_000, op)), deep, 0.03);
        }
        let writes = run(name, 8, sequential(16_384, Op::Write, 1 << 20));
        assert_near(writes * f64::from(1 << 20) / 1e6, megabytes, 0.06);
    }
}

#[test]
fn cards_and_sticks_write_as_fast_as_measured() {
    let writes = |name| run(name, 1, sequential(512, Op::Write, 1 << 20)) * f64::from(1 << 20);
    assert_near(writes("sd-card-32gb") / 1e6, 11.2, 0.02);
    assert_near(writes("emmc-8gb") / 1e6, 40.0, 0.03);
    // A stick that keeps one unit open has written all of it when it goes on to the next.
    assert_near(writes("usb-stick") / 1e6, 7.73, 0.02);
    // Random writes within the five open units of the card: 1.20 MB/s.
    let mut random = fastrand::Rng::with_seed(3);
    let places = (0..2000).map(|id| request(id, Op::Write, random.u64(0..5 * 1024) * 4096, 4096));
    assert_near(run("sd-card-32gb", 1, places) * 4096.0 / 1e6, 1.20, 0.02);
    // Writes over the whole card: each copies a unit, which takes up to half a second.
    let everywhere = 1.0 / run("sd-card-32gb", 1, self::random(100, Op::Write));
    assert!((0.3..0.5).contains(&everywhere), "{everywhere}");
    // Random reads: 1,500 a second (class A1), and 0.65 ms of a stick.
    assert_near(
        run("sd-card-32gb", 1, self::random(500, Op::Read)),
        1500.0,
        0.1,
    );
    assert_near(
        run("usb-stick", 1, self::random(500, Op::Read)),
        1.0 / 650e-6,
        0.15,
    );
}

#[test]
fn the_hard_disk_seeks_and_turns_as_its_specification_says() {
    // The whole disk: 8.5 ms of seek, half a revolution and the command.
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/fscost/devices/catalogue");
    let text = std::fs::read_to_string(folder.join("hdd-7200.toml")).unwrap();
    let capacity = 1_000_204_886_016;
    let mut whole = Device::new(&Model::parse("hdd", &text).unwrap(), capacity, 1);
    let mut random = fastrand::Rng::with_seed(3);
    let places =
        (0..20_000).map(|id| request(id, Op::Read, random.u64(0..capacity / 4096) * 4096, 4096));
    let ran = closed_loop(&mut whole, 0, 1, places);
    let found = mean(ran.iter().map(|each| each.latency_ns() as f64)) / 1e6;
    // More bytes lie on the outer cylinders, so seeks are a little shorter than over cylinders.
    assert_near(found, 8.5 + 4.17 + 0.1, 0.03);
    // 135 MB/s at the outer edge.
    let reads = run("hdd-7200", 1, sequential(1024, Op::Read, 1 << 20)) * f64::from(1 << 20);
    assert_near(reads / 1e6, 135.0, 0.02);
}

/// Devices from 2015 on against their class or data sheet: MB/s of reads and writes in order,
/// random reads and writes a second, the depth of the latter and the bytes over which they go.
#[test]
fn devices_of_today_reach_their_class_or_data_sheet() {
    const WHOLE: u64 = SPAN;
    const TEST: u64 = 100 << 20;
    // Within what a host memory buffer maps.
    const MAPPED: u64 = 1 << 30;
    for (name, [read, write], [reads, writes], depth, span) in [
        // Class A1: 1,500 and 500 IOPS, 10 MB/s. Class A2: 4,000 and 2,000 IOPS with a queue.
        ("sd-card-a1-32gb", [0.0, 10.0], [1500.0, 500.0], 1, WHOLE),
        ("sd-card-a2-64gb", [0.0, 10.0], [4000.0, 2000.0], 32, WHOLE),
        (
            "sd-card-high-endurance-128gb",
            [100.0, 40.0],
            [0.0; 2],
            1,
            WHOLE,
        ),
        ("emmc-5.1-64gb", [250.0, 125.0], [11e3, 13e3], 32, WHOLE),
        ("ufs-3.0-512gb", [2100.0, 410.0], [63e3, 68e3], 32, WHOLE),
        (
            "usb-stick-3.0-128gb",
            [136.3, 98.1],
            [1010.5, 141.4],
            1,
            TEST,
        ),
        (
            "wd-blue-sn580-1tb",
            [4150.0, 4150.0],
            [600e3, 750e3],
            256,
            MAPPED,
        ),
        (
            "solidigm-p41-plus-1tb",
            [4125.0, 3000.0],
            [390e3, 540e3],
            256,
            MAPPED,
        ),
        (
            "samsung-pm9d3a-7680gb",
            [12e3, 6800.0],
            [2e6, 250e3],
            256,
            MAPPED,
        ),
    ] {
        for (op, megabytes, deep) in [(Op::Read, read, reads), (Op::Write, write, writes)] {
            let count = if depth > 32 { 100_000 } else { 2_000 };
            let in_order = if depth == 1 { 1 } else { 32 };
            for (found, published) in [
                (megabytes_per_s(name, in_order, op), megabytes),
                (run(name, depth, within(span, count, op)), deep),
            ] {
                let off = found / published - 1.0;
                assert!(
                    published == 0.0 || off.abs() < MARGIN,
                    "{name}: {op:?}: {found} against {published}"
                );
            }
        }
    }
    // A host memory buffer of 128 MiB maps 128 GiB; 64 MiB map 64 GiB.
    assert_near(
        run("samsung-pm9d3a-7680gb", 1, random(2000, Op::Read)),
        1.0 / 65e-6,
        MARGIN,
    );
}

#[test]
fn a_drive_of_large_units_reaches_its_published_figures() {
    const NAME: &str = "solidigm-d5-p5336-15360gb";
    for (op, megabytes, deep) in [(Op::Read, 7e3, 1005e3), (Op::Write, 3300.0, 38e3)] {
        assert_near(megabytes_per_s(NAME, 32, op), megabytes, MARGIN);
        assert_near(run(NAME, 256, random(100_000, op)), deep, MARGIN);
    }
    // Random writes of whole units of 16 KiB.
    let mut random = fastrand::Rng::with_seed(3);
    let units = (0..100_000).map(|id| {
        let unit = random.u64(0..SPAN >> 14);
        request(id, Op::Write, unit << 14, 1 << 14)
    });
    assert_near(run(NAME, 256, units), 38e3, MARGIN);
}

/// Relative distance from the published figures that the models may have.
const MARGIN: f64 = 0.05;

/// Sustained writes fall off a cliff when the cache of SLC is full.
#[test]
fn the_caches_of_slc_have_the_size_and_the_cliff_that_reviews_measured() {
    for (name, cache, after) in [
        ("wd-blue-sn580-1tb", 341e9, 450.0),
        ("solidigm-p41-plus-1tb", 120e9, 262.0),
    ] {
        let piece = 64 << 20;
        let mut device = device(name);
        let writes = (0..8000).map(|id| request(id, Op::Write, id % 1000 * piece, piece));
        let ran = closed_loop(&mut device, 0, 2, writes);
        let rate = |from: usize, to: usize| {
            let ns = ran[to].completed_ns - ran[from].completed_ns;
            (to - from) as f64 * piece as f64 / ns as f64 * 1e3
        };
        let full = (cache / piece as f64) as usize;
        assert!(rate(full / 2, full - 20) > 2500.0, "{name}");
        assert_near(rate(full + 20, full + 200), after, MARGIN);
    }
}
