//! How fast the page map takes writes: `write_speed [CAPACITY_GIB] [random|extents|naive]
//! [plain|charged] [FILLS]`.
//! 28 % over-provisioning, 4 KiB units, 1,024 units a block, greedy collection. `benches/wear.py`
//! runs it.
//! Times are CPU time of the thread, so that a busy machine changes them little.

use fastrand::Rng;
use fscost_ssd::{
    Charge, ChargesByTag, Error, Geometry, NoCharges, PageMap, PageMapOptions, Translation, Write,
};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{HashMap, HashSet};

const UNITS_PER_BLOCK: u32 = 1024;
const EXTENT_UNITS: u32 = 256;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let capacity_gib: u64 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(256);
    let kind = arguments.next().unwrap_or_default();
    let extents = kind == "extents";
    let charged = arguments.next().is_some_and(|word| word == "charged");
    let fills: f64 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1.0);
    let over_provisioning = 0.28;
    let spare = over_provisioning / (1.0 + over_provisioning);
    let logical_units = (capacity_gib << 30) / 4096;
    let blocks = logical_units as f64 / (1.0 - spare) / f64::from(UNITS_PER_BLOCK);
    let geometry = Geometry {
        unit_bytes: 4096,
        units_per_page: 1,
        units_per_block: UNITS_PER_BLOCK,
        blocks: blocks.round() as u32,
        logical_units: u32::try_from(logical_units).unwrap_or(u32::MAX),
    };
    if kind == "naive" {
        naive(&geometry);
        return Ok(());
    }
    if charged {
        run(
            geometry,
            extents,
            fills,
            ChargesByTag::new(geometry.physical_units()),
        )
    } else {
        run(geometry, extents, fills, NoCharges)
    }
}

#[allow(clippy::print_stdout)] // the result
fn run<C: Charge>(geometry: Geometry, extents: bool, fills: f64, charges: C) -> Result<(), Error> {
    let mut device = PageMap::new(geometry, PageMapOptions::default(), charges)?;
    let units = geometry.logical_units;
    let count = if extents { EXTENT_UNITS } else { 1 };
    let mut rng = Rng::with_seed(1);
    let mut time = |fills: f64, device: &mut PageMap<C>, random: bool| {
        let before = device.counters();
        let began = cpu_seconds();
        let mut batch = Vec::with_capacity(4096);
        let mut next = 0;
        let mut left = (fills * f64::from(units / count)) as u64;
        while left > 0 {
            batch.clear();
            for _ in 0..left.min(4096) {
                let place = if random {
                    rng.u32(..units / count)
                } else {
                    next % (units / count)
                };
                next += 1;
                batch.push(Write {
                    first: place * count,
                    count,
                    tag: (place % 1000) as u16,
                    stream: 0,
                });
            }
            device.write_all(&batch);
            left -= batch.len() as u64;
        }
        let seconds = cpu_seconds() - began;
        let did = device.counters() - before;
        println!(
            "{}: {:.2} M units/s of the host, {:.2} M units/s of NAND, write amplification {:.4}",
            if random { "random" } else { "sequential" },
            did.host_units as f64 / seconds / 1e6,
            did.programmed_units() as f64 / seconds / 1e6,
            did.write_amplification().unwrap_or_default(),
        );
    };
    time(1.0, &mut device, false);
    time(1.0, &mut device, false);
    time(fills, &mut device, true);
    time(fills, &mut device, true);
    println!(
        "{:.2} bytes for each physical unit",
        peak_bytes() / geometry.physical_units() as f64
    );
    Ok(())
}

/// What one would write first: a hash map, lists of valid units by block, and a scan of all blocks
/// for the victim.
#[allow(clippy::print_stdout)] // the result
fn naive(geometry: &Geometry) {
    let (units, size) = (geometry.logical_units, geometry.units_per_block);
    let mut map: HashMap<u32, (usize, u32)> = HashMap::new();
    let mut held: Vec<HashSet<u32>> = vec![HashSet::new(); geometry.blocks as usize];
    let mut used = vec![0u32; geometry.blocks as usize];
    let mut free: Vec<usize> = (0..held.len()).rev().collect();
    let (mut open, mut rng) = (free.pop().unwrap_or_default(), Rng::with_seed(1));
    let (began, writes) = (cpu_seconds(), 2 * u64::from(units));
    for number in 0..writes {
        let sequential = u32::try_from(number).ok().filter(|&unit| unit < units);
        let mut pending = vec![sequential.unwrap_or_else(|| rng.u32(..units))];
        while let Some(unit) = pending.pop() {
            if used[open] == size {
                if free.len() <= 1 {
                    let full = (0..held.len()).filter(|&at| used[at] == size && at != open);
                    let victim = full.min_by_key(|&at| held[at].len()).unwrap_or_default();
                    pending.extend(held[victim].drain());
                    used[victim] = 0;
                    free.insert(0, victim);
                }
                open = free.pop().unwrap_or_default();
            }
            if let Some((block, _)) = map.insert(unit, (open, used[open])) {
                held[block].remove(&unit);
            }
            held[open].insert(unit);
            used[open] += 1;
        }
    }
    println!(
        "naive {:.3} M units/s",
        writes as f64 / (cpu_seconds() - began) / 1e6
    );
}

/// CPU time of this thread.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The most memory that this process had (proc(5), VmHWM).
fn peak_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) * 1024.0
}
