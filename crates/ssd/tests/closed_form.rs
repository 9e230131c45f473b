//! The models beside published closed forms. See the crate's documentation for the sources.
#![allow(missing_docs, clippy::unwrap_used, clippy::float_cmp)]

mod common;

use common::{assert_close, choices, fifo, fill, greedy, page_map, steady, uniform, write_units};
use fastrand::Rng;
use fscost_ssd::{
    Association, BlockMap, Collection, Counters, Geometry, LogBlockMap, LogBlocks, NoCharges,
    Translation, Wear, Write,
};

const SPARES: [f64; 4] = [0.07, 0.12, 0.28, 0.5];
const BLOCKS: u32 = 4096;

/// The stationary state is reached slowly where little is spare.
fn fills(spare: f64) -> (u64, u64) {
    if spare < 0.1 { (12, 20) } else { (6, 40) }
}

fn uniform_steady(blocks: u32, b: u32, spare: f64, collection: Collection) -> f64 {
    let (warm_up, measured) = fills(spare);
    steady(
        &mut page_map(blocks, b, 1.0 - spare, collection),
        warm_up,
        measured,
        uniform(7),
    )
}

#[test]
fn closed_form_greedy_under_uniform_writes() {
    for spare in SPARES {
        assert_close(
            &format!("b = 64, spare {spare}"),
            uniform_steady(BLOCKS, 64, spare, Collection::Greedy),
            greedy(1.0 - spare, 64),
            2e-3,
        );
    }
    assert_close(
        "b = 256, spare 0.28",
        uniform_steady(BLOCKS, 256, 0.28, Collection::Greedy),
        greedy(0.72, 256),
        2e-3,
    );
}

#[test]
fn closed_form_fifo_under_uniform_writes() {
    for spare in SPARES {
        assert_close(
            &format!("spare {spare}"),
            uniform_steady(BLOCKS, 64, spare, Collection::Fifo),
            fifo(1.0 - spare, &[(1.0, 1.0)]),
            2e-3,
        );
    }
}

#[test]
fn closed_form_random_under_uniform_writes() {
    for spare in SPARES {
        assert_close(
            &format!("spare {spare}"),
            uniform_steady(2 * BLOCKS, 64, spare, Collection::Random),
            1.0 / spare,
            2e-3,
        );
    }
}

#[test]
fn closed_form_d_choices_under_uniform_writes() {
    for d in [2, 10] {
        for spare in SPARES {
            let measured = uniform_steady(2 * BLOCKS, 64, spare, Collection::Choices(d as u32));
            assert_close(
                &format!("d = {d}, spare {spare}"),
                measured,
                choices(1.0 - spare, 64, d),
                2e-3,
            );
        }
    }
}

/// Frankie et al.: a share q of the requests trims a random unit in use, which lowers the
/// utilisation.
#[test]
fn closed_form_trim_is_spare_space() {
    for q in [0.1, 0.2, 0.3] {
        let mut device = page_map(BLOCKS, 64, 0.9, Collection::Greedy);
        let units = device.geometry().logical_units;
        fill(&mut device);
        let mut rng = Rng::with_seed(11);
        let mut in_use: Vec<u32> = (0..units).collect();
        let mut place: Vec<u32> = (0..units).collect();
        let mut run = |requests: u64| {
            let before = device.counters();
            for _ in 0..requests {
                if rng.f64() < q {
                    let at = rng.usize(..in_use.len());
                    let unit = in_use.swap_remove(at);
                    if let Some(&moved) = in_use.get(at) {
                        place[moved as usize] = at as u32;
                    }
                    place[unit as usize] = u32::MAX;
                    device.trim(unit, 1, 0);
                } else {
                    let unit = rng.u32(..units);
                    if place[unit as usize] == u32::MAX {
                        place[unit as usize] = in_use.len() as u32;
                        in_use.push(unit);
                    }
                    device.write_all(&[Write {
                        first: unit,
                        count: 1,
                        tag: 0,
                        stream: 0,
                    }]);
                }
            }
            (device.counters() - before).write_amplification().unwrap()
        };
        run(12 * u64::from(units));
        let measured = run(24 * u64::from(units));
        assert_close(
            &format!("q = {q}"),
            measured,
            greedy(0.9 * (1.0 - 2.0 * q) / (1.0 - q), 64),
            2e-3,
        );
    }
}

#[test]
fn closed_form_degenerate_streams_are_exact() {
    for collection in [
        Collection::Greedy,
        Collection::Fifo,
        Collection::Random,
        Collection::Choices(3),
    ] {
        let mut device = page_map(256, 64, 0.8, collection);
        fill(&mut device);
        assert_eq!(
            device.counters().erases,
            0,
            "{collection:?}: written once, there is room for all of it"
        );
        if matches!(collection, Collection::Greedy | Collection::Fifo) {
            for _ in 0..20 {
                fill(&mut device);
            }
            assert_eq!(
                device.counters().copied_units,
                0,
                "{collection:?}: sequential"
            );
        }
        let units = device.geometry().logical_units;
        device.trim(0, units, 0);
        let before = device.counters();
        fill(&mut device);
        if matches!(collection, Collection::Greedy | Collection::Fifo) {
            assert_eq!(
                (device.counters() - before).copied_units,
                0,
                "{collection:?}: everything had been trimmed"
            );
        }
    }
    let mut device = page_map(256, 64, 0.5, Collection::Greedy);
    assert_eq!(
        write_units(&mut device, 1_000_000, || 5).copied_units,
        0,
        "one hot unit"
    );
}

#[test]
fn closed_form_sequential_overwrites_wear_evenly() {
    let mut device = page_map(256, 64, 0.8, Collection::Fifo);
    for _ in 0..40 {
        fill(&mut device);
    }
    let wear = Wear::of(device.erases());
    assert!(wear.max_erases - wear.min_erases <= 1, "{wear:?}");
}

#[test]
fn closed_form_wear_of_fifo_and_random() {
    let mut device = page_map(2048, 64, 0.8, Collection::Fifo);
    steady(&mut device, 1, 20, uniform(2));
    let wear = Wear::of(device.erases());
    assert!(wear.max_erases - wear.min_erases <= 1, "{wear:?}");

    let mut device = page_map(8192, 64, 0.8, Collection::Random);
    steady(&mut device, 1, 20, uniform(2));
    let wear = Wear::of(device.erases());
    assert_close(
        "random victims: variance ÷ mean",
        wear.variance / wear.mean_erases,
        1.0,
        0.05,
    );
}

const BLOCK_UNITS: u32 = 64;

fn block_geometry(data_blocks: u32, extra_blocks: u32, units_per_block: u32) -> Geometry {
    Geometry {
        unit_bytes: 2048,
        units_per_page: 1,
        units_per_block,
        blocks: data_blocks + extra_blocks + 2,
        logical_units: data_blocks * units_per_block,
    }
}

fn random_units(device: &mut impl Translation, writes: u64) -> Counters {
    let units = device.geometry().logical_units;
    let mut rng = Rng::with_seed(13);
    fill(device);
    write_units(device, writes / 4, || rng.u32(..units));
    write_units(device, writes, || rng.u32(..units))
}

/// Pure block map: each write copies its block, of 32, 512 or 1,024 units of 4 KiB (128 KiB, 2 MiB
/// and 4 MiB). A whole aligned block is a switch.
#[test]
fn closed_form_block_map() {
    for units in [32, BLOCK_UNITS, 512, 1024] {
        let geometry = block_geometry(256, 0, units);
        let mut device = BlockMap::new(geometry, 0, NoCharges).unwrap();
        let did = random_units(&mut device, 2_000);
        assert_eq!(did.write_amplification(), Some(f64::from(units)));
        let before = device.counters();
        device.write_all(&[Write {
            first: 2 * units,
            count: units,
            tag: 0,
            stream: 0,
        }]);
        let did = device.counters() - before;
        assert_eq!(did.write_amplification(), Some(1.0));
    }
}

fn log_blocks(
    data_blocks: u32,
    log_blocks: u32,
    association: Association,
    writes: u64,
) -> Counters {
    let options = LogBlocks {
        association,
        log_blocks,
    };
    let geometry = block_geometry(data_blocks, log_blocks, BLOCK_UNITS);
    random_units(
        &mut LogBlockMap::new(geometry, options, NoCharges).unwrap(),
        writes,
    )
}

#[test]
fn closed_form_bast() {
    // With half of the writes hitting a log block, 200,000 would leave a standard error of 0.2 %.
    for (logs, writes) in [
        (8, 200_000),
        (64, 200_000),
        (256, 200_000),
        (512, 2_000_000),
    ] {
        let did = log_blocks(1024, logs, Association::Block, writes);
        let hit = f64::from(logs) / 1024.0;
        assert_close(
            &format!("L = {logs}"),
            did.write_amplification().unwrap(),
            1.0 + 64.0 * (1.0 - hit),
            2e-3,
        );
        assert_close(
            "erases per write",
            did.erases as f64 / did.host_units as f64,
            2.0 * (1.0 - hit),
            1.5e-2,
        );
    }
}

/// facts/ftl.md §3.4: an extent that is one block, written in order, replaces it without a copy. Of
/// a shorter one the rest of the block is copied.
#[test]
fn closed_form_whole_blocks_of_log_blocks_are_switched_without_copies() {
    let b = BLOCK_UNITS;
    let device = |association| {
        let options = LogBlocks {
            association,
            log_blocks: 8,
        };
        LogBlockMap::new(block_geometry(256, 8, b), options, NoCharges).unwrap()
    };
    for association in [Association::Block, Association::Full] {
        let mut device = device(association);
        fill(&mut device);
        let before = device.counters();
        for block in (0..256).chain([5; 100]) {
            device.write_all(&[extent(block * b, b)]);
        }
        // The log blocks that wait are merged by what comes after them.
        assert_eq!(
            (device.counters() - before).copied_units,
            0,
            "{association:?}"
        );
        assert!(
            (device.counters() - before).erases >= 356 - 8,
            "{association:?}"
        );
    }
    // Eight units of each block, from its beginning: a partial merge copies the other 56.
    let mut device = device(Association::Block);
    fill(&mut device);
    let before = device.counters();
    for block in 0..256 {
        device.write_all(&[extent(block * b, 8)]);
    }
    let done = device.counters() - before;
    assert_eq!(done.copied_units, (256 - 8) * u64::from(b - 8));
}

/// A flush after each unit leaves the second half of its page empty, so that log blocks hold half
/// as many units: FAST has the amplification of half the log blocks, each of half the units.
#[test]
fn closed_form_flushes_pad_the_pages_of_log_blocks() {
    let (m, logs) = (1024, 64);
    let options = LogBlocks {
        association: Association::Full,
        log_blocks: logs,
    };
    let geometry = Geometry {
        units_per_page: 2,
        ..block_geometry(m, logs, BLOCK_UNITS)
    };
    let mut device = LogBlockMap::new(geometry, options, NoCharges).unwrap();
    fill(&mut device);
    let mut rng = Rng::with_seed(1);
    let mut random_writes = |count| {
        let before = device.counters();
        for _ in 0..count {
            device.write_all(&[extent(rng.u32(0..geometry.logical_units), 1)]);
            device.flush(0);
        }
        device.counters() - before
    };
    random_writes(10_000);
    let did = random_writes(100_000);
    assert_eq!(did.padded_units, did.host_units);
    let (b, held, m) = (
        f64::from(BLOCK_UNITS),
        f64::from(BLOCK_UNITS) / 2.0,
        f64::from(m),
    );
    let merges = m / (m + f64::from(logs) * held - (held - 1.0) / 2.0);
    assert_close(
        "padded",
        did.write_amplification().unwrap(),
        2.0 + b * merges,
        1.5e-2,
    );
}

fn extent(first: u32, count: u32) -> Write {
    Write {
        first,
        count,
        tag: 0,
        stream: 0,
    }
}

#[test]
fn closed_form_fast() {
    for (data_blocks, logs) in [(1024, 8), (1024, 64), (1024, 256), (16384, 64)] {
        let did = log_blocks(data_blocks, logs, Association::Full, 400_000);
        let (b, m) = (f64::from(BLOCK_UNITS), f64::from(data_blocks));
        let expected = 1.0 + b * m / (m + f64::from(logs) * b - (b - 1.0) / 2.0);
        assert_close(
            &format!("M = {data_blocks}, L = {logs}"),
            did.write_amplification().unwrap(),
            expected,
            1.5e-2,
        );
    }
}
