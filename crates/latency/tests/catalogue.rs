//! The devices of the catalogue against the figures that their makers and others published.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Ran, assert_near, closed_loop, mean, request};
use fscost_latency::{Device, Model, Op, Request};
use std::path::Path;

fn device(name: &str) -> Device {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/fscost/devices/catalogue");
    let text = std::fs::read_to_string(folder.join(name).with_extension("toml")).unwrap();
    Device::new(&Model::parse(name, &text).unwrap(), SPAN, 1)
}

/// Bytes of a device that the tests use.
const SPAN: u64 = 64 << 30;

fn random(count: u64, op: Op) -> impl Iterator<Item = Request> {
    let mut random = fastrand::Rng::with_seed(3);
    (0..count).map(move |id| request(id, op, random.u64(0..SPAN / 4096) * 4096, 4096))
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
            // Random writes of a fresh drive end at the speed of the controller, too.
            assert_near(run(name, depth, random(100_000, op)), deep, 0.16);
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
