//! The published formulas, and streams of writes to compare the models with. Sources:
//! `fscost-ssd`'s documentation.
#![allow(dead_code, missing_docs, clippy::unwrap_used)] // each test program uses a part

use fastrand::Rng;
use fscost_ssd::{
    Collection, Counters, Geometry, NoCharges, PageMap, PageMapOptions, Translation, Write,
};

/// Finds where `f` changes its sign between `low` and `high`.
pub fn bisect(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let positive = f(low) > 0.0;
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if (f(middle) > 0.0) == positive {
            low = middle
        } else {
            high = middle
        }
    }
    f64::midpoint(low, high)
}

fn harmonic(n: u32) -> f64 {
    (1..=n).map(|i| 1.0 / f64::from(i)).sum()
}

/// Write amplification of FIFO collection with one frontier; `classes` are (share of the units,
/// share of the writes).
pub fn fifo(rho: f64, classes: &[(f64, f64)]) -> f64 {
    let a = 1.0 / rho;
    let each = |t: f64| {
        classes
            .iter()
            .map(|(units, writes)| writes / (writes * t / units).exp_m1())
            .sum::<f64>()
    };
    a / bisect(|t| a / t - 1.0 - each(t), 1e-9, a)
}

/// FIFO collection where unit number i of `units` is written with probability `weights[i]` ÷ their
/// sum.
pub fn fifo_by_unit(rho: f64, weights: &[f64]) -> f64 {
    let total = weights.iter().sum::<f64>();
    let physical = weights.len() as f64 / rho;
    let each = |tau: f64| {
        weights
            .iter()
            .map(|w| {
                let p = w / total;
                p / (p * tau).exp_m1()
            })
            .sum::<f64>()
    };
    physical / bisect(|tau| physical / tau - 1.0 - each(tau), 1e-6, physical)
}

/// Write amplification of greedy collection under uniform writes, with `b` units in a block.
pub fn greedy(rho: f64, b: u32) -> f64 {
    let blocks = f64::from(b);
    (0..b)
        .find_map(|m| {
            let c = rho * blocks / f64::from(m + 1);
            let q = (blocks - f64::from(m) - rho * blocks * (harmonic(b) - harmonic(m + 1)) - c)
                / (1.0 - c);
            (0.0..1.0)
                .contains(&q)
                .then(|| blocks / (blocks - f64::from(m) - q))
        })
        .unwrap()
}

/// Write amplification of d-choices collection under uniform writes.
pub fn choices(rho: f64, b: u32, d: i32) -> f64 {
    let blocks = f64::from(b);
    let tails = |lambda: f64| {
        let mut s = vec![0.0; b as usize + 2];
        for i in (1..=b as usize).rev() {
            let c = i as f64 * lambda / (rho * blocks);
            let above = s[i + 1];
            s[i] = bisect(|x| c * (x - above) + x.powi(d) - 1.0, above, 1.0);
        }
        s[1..=b as usize].iter().sum::<f64>()
    };
    blocks
        / bisect(
            |lambda| tails(lambda) - rho * blocks,
            1e-6 * blocks,
            blocks * (1.0 - 1e-12),
        )
}

/// A page-mapped device whose physical units, without the reserved block, are `blocks`·`b`, and
/// `rho` of them logical.
pub fn page_map(blocks: u32, b: u32, rho: f64, collection: Collection) -> PageMap<NoCharges> {
    let options = PageMapOptions {
        collection,
        seed: 1,
        ..PageMapOptions::default()
    };
    let logical_units = (rho * f64::from(blocks) * f64::from(b)).round() as u32;
    let geometry = Geometry {
        unit_bytes: 4096,
        units_per_page: 1,
        units_per_block: b,
        blocks: blocks + 1,
        logical_units,
    };
    PageMap::new(geometry, options, NoCharges).unwrap()
}

pub fn fill(device: &mut impl Translation) {
    let units = device.geometry().logical_units;
    device.write_all(&[Write {
        first: 0,
        count: units,
        tag: 0,
        stream: 0,
    }]);
}

/// `writes` writes of one unit each, chosen by `unit`. Returns what they did.
pub fn write_units(
    device: &mut impl Translation,
    writes: u64,
    mut unit: impl FnMut() -> u32,
) -> Counters {
    let before = device.counters();
    let mut left = writes;
    let mut batch = Vec::with_capacity(1024);
    while left > 0 {
        let now = left.min(1024);
        batch.clear();
        batch.extend((0..now).map(|_| Write {
            first: unit(),
            count: 1,
            tag: 0,
            stream: 0,
        }));
        device.write_all(&batch);
        left -= now;
    }
    device.counters() - before
}

/// Write amplification after a sequential fill, `warm_up` random fills, and `measured` more.
pub fn steady(
    device: &mut impl Translation,
    warm_up: u64,
    measured: u64,
    mut unit: impl FnMut(u32) -> u32,
) -> f64 {
    let units = device.geometry().logical_units;
    fill(device);
    write_units(device, warm_up * u64::from(units), || unit(units));
    write_units(device, measured * u64::from(units), || unit(units))
        .write_amplification()
        .unwrap()
}

pub fn uniform(seed: u64) -> impl FnMut(u32) -> u32 {
    let mut rng = Rng::with_seed(seed);
    move |units| rng.u32(..units)
}

/// Asserts that `measured` is within `tolerance` (a share) of `expected`.
#[track_caller]
pub fn assert_close(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    assert!(
        error.abs() <= tolerance,
        "{what}: {measured:.4}, expected {expected:.4}: {:+.3} %",
        error * 100.0
    );
}

/// Units by classes of (share of the units, share of the writes), uniform within each.
pub fn by_class(seed: u64, classes: &[(f64, f64)]) -> impl FnMut(u32) -> u32 {
    let mut rng = Rng::with_seed(seed);
    let classes = classes.to_vec();
    move |units| {
        let (mut below, mut of_writes) = (0.0, rng.f64());
        for &(share, writes) in &classes {
            if of_writes < writes || below + share > 0.999 {
                return ((below + share * rng.f64()) * f64::from(units)) as u32;
            }
            below += share;
            of_writes -= writes;
        }
        unreachable!("the shares add up to 1")
    }
}
