//! Writes that prefer some addresses, and the spread of wear: the models beside published formulas
//! and values. See the crate's documentation for the sources.
#![allow(missing_docs, clippy::unwrap_used, clippy::float_cmp)]

mod common;

use common::{
    assert_close, by_class, fifo, fifo_by_unit, fill, page_map, steady, uniform, write_units,
};
use fastrand::Rng;
use fscost_ssd::{
    Collection, Geometry, NoCharges, PageMap, PageMapOptions, Separation, Translation, Wear, Write,
};

const BLOCKS: u32 = 4096;
const TWENTY_EIGHTY: [(f64, f64); 2] = [(0.2, 0.8), (0.8, 0.2)];
const TEN_NINETY: [(f64, f64); 2] = [(0.1, 0.9), (0.9, 0.1)];
/// Enterprise classes: 50 % of the accesses to 5 % of the space, 30 % to 15 %, 20 % to 80 %.
const JESD219: [(f64, f64); 3] = [(0.05, 0.5), (0.15, 0.3), (0.8, 0.2)];

#[test]
fn closed_form_fifo_under_classes() {
    let published = [
        (&TWENTY_EIGHTY[..], [7.6817, 2.3173]),
        (&TEN_NINETY, [8.3582, 2.7266]),
        (&JESD219, [8.0215, 2.4736]),
    ];
    for (classes, values) in published {
        for (spare, published) in [0.07, 0.28].into_iter().zip(values) {
            let expected = fifo(1.0 - spare, classes);
            assert_close("formula", expected, published, 1e-4);
            let mut device = page_map(BLOCKS, 64, 1.0 - spare, Collection::Fifo);
            let measured = steady(&mut device, 24, 36, by_class(3, classes));
            let what = format!("{classes:?}, spare {spare}");
            assert_close(&what, measured, expected, 1e-3);
        }
    }
}

#[test]
fn closed_form_fifo_under_zipf() {
    for (theta, published) in [(0.99, 2.9349), (0.8, 2.5249)] {
        let weights = |units: u32| {
            let ranks = 1..=units;
            ranks
                .map(move |rank| f64::from(rank).powf(-theta))
                .collect()
        };
        let of_publication: Vec<f64> = weights(377_487);
        assert_close(
            "formula",
            fifo_by_unit(0.72, &of_publication),
            published,
            1e-4,
        );

        let mut device = page_map(2048, 64, 0.72, Collection::Fifo);
        let weights: Vec<f64> = weights(device.geometry().logical_units);
        let mut total = 0.0;
        let cumulative: Vec<f64> = weights
            .iter()
            .map(|weight| {
                total += weight;
                total
            })
            .collect();
        let mut rng = Rng::with_seed(5);
        let measured = steady(&mut device, 30, 60, move |units| {
            let at = rng.f64() * total;
            (cumulative.partition_point(|&sum| sum <= at) as u32).min(units - 1)
        });
        let expected = fifo_by_unit(0.72, &weights);
        assert_close(&format!("zipf {theta}"), measured, expected, 1e-3);
    }
}

/// There is no formula. The values are of a simulation that shares no code with this one and
/// compacts victims in place, where this one copies them behind what the host writes. With 90 % of
/// the writes to a tenth of the units, ten choices are as good as greedy.
#[test]
fn closed_form_greedy_under_classes_equals_another_simulation() {
    let ten = Collection::Choices(10);
    let values = [
        (&TWENTY_EIGHTY[..], Collection::Greedy, 2.2768),
        (&TEN_NINETY, Collection::Greedy, 2.6833),
        (&TEN_NINETY, ten, 2.6825),
        (&JESD219, Collection::Greedy, 2.4122),
    ];
    for (classes, collection, published) in values {
        let mut device = page_map(BLOCKS, 64, 0.72, collection);
        let measured = steady(&mut device, 24, 36, by_class(3, classes));
        assert_close(
            &format!("{classes:?}, {collection:?}"),
            measured,
            published,
            5e-3,
        );
    }
}

/// Two streams that the host separates, with greedy collection: better than one frontier
/// (2.2768), and close to the minimum over all divisions of the spare units with FIFO. With FIFO
/// alone, streams change nothing: all blocks live equally long.
#[test]
fn closed_form_separated_streams_lie_above_the_bound_of_perfect_separation() {
    let (rho, bound, mixed) = (0.72, 1.5629, 2.2768);
    let geometry = Geometry {
        unit_bytes: 4096,
        units_per_page: 1,
        units_per_block: 64,
        blocks: BLOCKS + 2,
        logical_units: (rho * f64::from(BLOCKS) * 64.0) as u32,
    };
    let options = PageMapOptions {
        collection: Collection::Greedy,
        streams: 2,
        seed: 1,
        ..PageMapOptions::default()
    };
    let mut device = PageMap::new(geometry, options, NoCharges).unwrap();
    let units = geometry.logical_units;
    let hot_units = units / 5;
    fill(&mut device);
    let mut draw = by_class(3, &TWENTY_EIGHTY);
    let mut amplification = 0.0;
    for _ in 0..2 {
        let before = device.counters();
        for _ in 0..20 * u64::from(units) {
            let first = draw(units);
            device.write_all(&[Write {
                first,
                count: 1,
                tag: 0,
                stream: u8::from(first >= hot_units),
            }]);
        }
        amplification = (device.counters() - before).write_amplification().unwrap();
    }
    assert!(amplification > bound * 0.95, "{amplification}");
    assert!(amplification < mixed * 0.9, "{amplification}");
}

/// Copies in blocks of their own: what survived a collection is cold, so that hot and cold data
/// part without being told. Under 90/10 much of what mixing costs is saved, and no more than
/// perfect separation saves (facts/ftl.md §3.2: 2.6833 mixed, 1.2573 parted, FIFO).
#[test]
fn closed_form_collected_copies_part_hot_data_from_cold() {
    let (rho, bound, mixed) = (0.72, 1.2573, 2.6833);
    let geometry = Geometry {
        unit_bytes: 4096,
        units_per_page: 1,
        units_per_block: 64,
        blocks: BLOCKS + 2,
        logical_units: (rho * f64::from(BLOCKS) * 64.0) as u32,
    };
    let options = PageMapOptions {
        separation: Separation::Collected,
        seed: 1,
        ..PageMapOptions::default()
    };
    let mut device = PageMap::new(geometry, options, NoCharges).unwrap();
    let measured = steady(&mut device, 24, 24, by_class(3, &TEN_NINETY));
    assert!(measured > bound * 0.98, "{measured}");
    assert!(measured < mixed * 0.9, "{measured}");
}

/// Variance ÷ mean of erases after 60 fills.
#[test]
fn closed_form_spread_of_wear() {
    let values = [
        (0.12, Collection::Greedy, 0.067),
        (0.28, Collection::Greedy, 0.034),
        (0.12, Collection::Choices(10), 0.084),
        (0.12, Collection::Choices(2), 0.417),
        (0.28, Collection::Choices(2), 0.388),
    ];
    for (spare, collection, published) in values {
        let mut device = page_map(8192, 64, 1.0 - spare, collection);
        steady(&mut device, 20, 40, uniform(2));
        let wear = Wear::of(device.erases());
        let spread = wear.variance / wear.mean_erases;
        assert_close(
            &format!("{collection:?}, spare {spare}"),
            spread,
            published,
            0.1,
        );
    }
}

/// If a share `c` of the blocks is never rewritten, the others carry the mean ÷ (1 − c).
#[test]
fn closed_form_blocks_of_cold_data_are_not_worn() {
    let mut device = page_map(1024, 64, 0.8, Collection::Greedy);
    let units = device.geometry().logical_units;
    fill(&mut device);
    let (cold, mut rng) = (units / 2, Rng::with_seed(3));
    write_units(&mut device, 40 * u64::from(units), || rng.u32(cold..units));
    let erases = device.erases();
    let worn: Vec<u32> = erases.iter().copied().filter(|&count| count > 0).collect();
    let share = worn.len() as f64 / erases.len() as f64;
    assert_close("share of worn blocks", share, 0.6, 1e-2);
    let mean = |counts: &[u32]| f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    assert_close("their mean", mean(&worn), mean(erases) / share, 1e-9);
    assert!(
        worn.iter()
            .all(|&count| f64::from(count) > 0.9 * mean(&worn))
    );
}
