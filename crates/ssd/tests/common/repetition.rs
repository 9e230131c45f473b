//! Short traces of known distributions, repeated on a small page-mapped device.

use fastrand::Rng;
use fscost_ssd::{
    Collection, Mapping, Options, PageMapOptions, Part, Repeat, Replay, Spec, Workload, replay,
};
use std::sync::atomic::AtomicBool;

pub const UNITS: u32 = 65536;
pub const UNIT_BYTES: u64 = 4096;
/// One class: (share of the units, share of the writes).
pub const UNIFORM: [(f64, f64); 1] = [(1.0, 1.0)];
pub const TEN_NINETY: [(f64, f64); 2] = [(0.1, 0.9), (0.9, 0.1)];

/// A device of 256 blocks or more, whatever the size of the disk.
pub fn spec(spare: f64, collection: Collection) -> Spec {
    Spec {
        capacity_bytes: 1 << 40,
        spare,
        unit_bytes: UNIT_BYTES as u32,
        page_bytes: UNIT_BYTES as u32,
        block_bytes: 64 << 20,
        mapping: Mapping::Page(PageMapOptions {
            collection,
            seed: 1,
            ..PageMapOptions::default()
        }),
        buffer_bytes: 0,
        is_power_loss_protected: false,
    }
}

/// Writes `devices` times as many units as the disk has. The classes lie side by side, or are
/// scattered over the disk.
pub fn trace(devices: f64, classes: &[(f64, f64)], is_scattered: bool) -> Workload {
    let mut rng = Rng::with_seed(3);
    let mut places: Vec<u32> = (0..UNITS).collect();
    if is_scattered {
        rng.shuffle(&mut places);
    }
    let mut workload = empty();
    for _ in 0..(devices * f64::from(UNITS)) as u64 {
        let mut drawn = rng.f64();
        let mut begin = 0.0;
        let mut size = 0.0;
        for &(units, writes) in classes {
            (begin, size) = (begin + size, units);
            if drawn < writes {
                break;
            }
            drawn -= writes;
        }
        let at = ((begin + rng.f64() * size) * f64::from(UNITS)) as usize;
        write(&mut workload, places[at.min(places.len() - 1)]);
    }
    workload
}

/// A disk without requests.
pub fn empty() -> Workload {
    Workload::new(UNIT_BYTES as u32, u64::from(UNITS) * UNIT_BYTES)
}

/// Writes one unit.
pub fn write(workload: &mut Workload, unit: u32) {
    workload.write(Part::Cycle, u64::from(unit) * UNIT_BYTES, [(UNIT_BYTES, 0)]);
}

/// Replays a trace on a full device.
pub fn replayed(spec: &Spec, workload: &Workload, repeat: Repeat) -> Replay {
    let options = Options {
        fill: 1.0,
        max_rounds: 64,
        by_tag: false,
        repeat,
        seed: 7,
    };
    replay(spec, workload, &options, &AtomicBool::new(false)).unwrap()
}

/// Write amplification of a trace that is repeated.
pub fn amplification(spec: &Spec, workload: &Workload, repeat: Repeat) -> f64 {
    let found = replayed(spec, workload, repeat);
    found.counted.write_amplification().unwrap()
}

/// Logical ÷ physical units of the scaled device, without its reserved block, and the units of a
/// block.
pub fn utilisation(spec: &Spec) -> (f64, u32) {
    let scaled = spec
        .scaled(u64::from(UNITS) * UNIT_BYTES, fscost_ssd::Extent::Part)
        .unwrap();
    let geometry = scaled.geometry;
    let physical = (geometry.blocks - 1) * geometry.units_per_block;
    let rho = f64::from(geometry.logical_units) / f64::from(physical);
    (rho, geometry.units_per_block)
}
