//! The models beside published closed forms. See the crate's documentation for the sources.
#![allow(missing_docs, clippy::unwrap_used, clippy::float_cmp)]

mod common;

use common::{
    assert_close, choices, fifo, fifo_by_unit, fill, greedy, page_map, steady, uniform, write_units,
};
use fastrand::Rng;
use fscost_ssd::{
    Association, BlockMap, Collection, Geometry, LogBlockMap, LogBlocks, NoCharges, Translation,
    Wear, Write,
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
fn closed_form_the_formulas_give_the_published_table() {
    for (spare, rho) in [(0.07, 0.93), (0.28, 0.72)] {
        let table = if spare == 0.07 {
            [7.3177, 6.6155, 7.1240, 9.6354, 6.8939]
        } else {
            [1.9916, 1.9425, 1.9791, 2.5732, 1.9932]
        };
        let computed = [
            fifo(rho, &[(1.0, 1.0)]),
            greedy(rho, 64),
            greedy(rho, 256),
            choices(rho, 64, 2),
            choices(rho, 64, 10),
        ];
        for (computed, published) in computed.into_iter().zip(table) {
            assert_close("formula", computed, published, 1e-4);
        }
    }
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

/// Enterprise classes of JESD219: 50 % of the accesses to 5 % of the space, 30 % to 15 %, 20 % to
/// 80 %.
#[test]
fn closed_form_fifo_under_jesd219_classes() {
    let classes = [(0.05, 0.5), (0.15, 0.3), (0.8, 0.2)];
    for spare in [0.07, 0.28] {
        let mut rng = Rng::with_seed(3);
        let draw = move |units: u32| {
            let (mut below, mut of_writes) = (0.0, rng.f64());
            for (share, writes) in classes {
                if of_writes < writes || below + share > 0.999 {
                    return ((below + share * rng.f64()) * f64::from(units)) as u32;
                }
                below += share;
                of_writes -= writes;
            }
            unreachable!()
        };
        let measured = steady(
            &mut page_map(BLOCKS, 64, 1.0 - spare, Collection::Fifo),
            24,
            36,
            draw,
        );
        assert_close(
            &format!("spare {spare}"),
            measured,
            fifo(1.0 - spare, &classes),
            1e-3,
        );
    }
}

#[test]
fn closed_form_fifo_under_zipf() {
    let mut device = page_map(2048, 64, 0.72, Collection::Fifo);
    let units = device.geometry().logical_units;
    let weights: Vec<f64> = (1..=units)
        .map(|rank| f64::from(rank).powf(-0.99))
        .collect();
    let cumulative: Vec<f64> = weights
        .iter()
        .scan(0.0, |sum, w| {
            *sum += w;
            Some(*sum)
        })
        .collect();
    let mut rng = Rng::with_seed(5);
    let total = cumulative[cumulative.len() - 1];
    let measured = steady(&mut device, 30, 60, move |units| {
        let at = rng.f64() * total;
        (cumulative.partition_point(|&sum| sum <= at) as u32).min(units - 1)
    });
    assert_close("zipf 0.99", measured, fifo_by_unit(0.72, &weights), 1e-3);
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

fn block_geometry(data_blocks: u32, extra_blocks: u32) -> Geometry {
    let units_per_block = 64;
    Geometry {
        unit_bytes: 2048,
        units_per_page: 1,
        units_per_block,
        blocks: data_blocks + extra_blocks + 2,
        logical_units: data_blocks * units_per_block,
    }
}

fn random_units(device: &mut impl Translation, writes: u64) -> fscost_ssd::Counters {
    let units = device.geometry().logical_units;
    let mut rng = Rng::with_seed(13);
    fill(device);
    write_units(device, writes / 4, || rng.u32(..units));
    write_units(device, writes, || rng.u32(..units))
}

/// Pure block map: each write copies its block. A whole aligned block is a switch.
#[test]
fn closed_form_block_map() {
    let mut device = BlockMap::new(block_geometry(256, 0), 0, NoCharges).unwrap();
    assert_eq!(
        random_units(&mut device, 10_000).write_amplification(),
        Some(64.0)
    );
    let before = device.counters();
    device.write_all(&[Write {
        first: 128,
        count: 64,
        tag: 0,
        stream: 0,
    }]);
    assert_eq!(
        (device.counters() - before).write_amplification(),
        Some(1.0)
    );
}

#[test]
fn closed_form_bast() {
    for log_blocks in [8, 64, 256] {
        let options = LogBlocks {
            association: Association::Block,
            log_blocks,
        };
        let mut device =
            LogBlockMap::new(block_geometry(1024, log_blocks), options, NoCharges).unwrap();
        let did = random_units(&mut device, 200_000);
        let hit = f64::from(log_blocks) / 1024.0;
        assert_close(
            &format!("L = {log_blocks}"),
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

#[test]
fn closed_form_fast() {
    for log_blocks in [8, 64, 256] {
        let options = LogBlocks {
            association: Association::Full,
            log_blocks,
        };
        let mut device =
            LogBlockMap::new(block_geometry(1024, log_blocks), options, NoCharges).unwrap();
        let did = random_units(&mut device, 400_000);
        let (b, m) = (64.0, 1024.0);
        let expected = 1.0 + b * m / (m + f64::from(log_blocks) * b - (b - 1.0) / 2.0);
        assert_close(
            &format!("L = {log_blocks}"),
            did.write_amplification().unwrap(),
            expected,
            1.5e-2,
        );
    }
}
