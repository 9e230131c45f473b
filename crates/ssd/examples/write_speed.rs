//! How fast the page map takes writes: `write_speed [CAPACITY_GIB] [random|extents] [plain|charged]`.
//! 28 % over-provisioning, 4 KiB units, 1,024 units a block, greedy collection. `benches/ssd.py` runs it.

use fastrand::Rng;
use fscost_ssd::{
    Charge, ChargesByTag, Error, Geometry, NoCharges, PageMap, PageMapOptions, Translation, Write,
};
use std::time::Instant;

const UNITS_PER_BLOCK: u32 = 1024;
const EXTENT_UNITS: u32 = 256;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let capacity_gib: u64 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(256);
    let extents = arguments.next().is_some_and(|word| word == "extents");
    let charged = arguments.next().is_some_and(|word| word == "charged");
    let over_provisioning = 0.28;
    let spare = over_provisioning / (1.0 + over_provisioning);
    let geometry = Geometry::with_spare(capacity_gib << 30, spare, 4096, 1, UNITS_PER_BLOCK)?;
    if charged {
        run(
            geometry,
            extents,
            ChargesByTag::new(geometry.physical_units()),
        )
    } else {
        run(geometry, extents, NoCharges)
    }
}

#[allow(clippy::print_stdout)] // the result
fn run<C: Charge>(geometry: Geometry, extents: bool, charges: C) -> Result<(), Error> {
    let mut device = PageMap::new(geometry, PageMapOptions::default(), charges)?;
    let units = geometry.logical_units;
    let count = if extents { EXTENT_UNITS } else { 1 };
    let mut rng = Rng::with_seed(1);
    let mut time = |fills: u64, device: &mut PageMap<C>, random: bool| {
        let before = device.counters();
        let began = Instant::now();
        let mut batch = Vec::with_capacity(4096);
        let mut next = 0;
        let mut left = fills * u64::from(units / count);
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
        let seconds = began.elapsed().as_secs_f64();
        let did = device.counters() - before;
        println!(
            "{} {} units/s of the host, {:.0} units/s of NAND, write amplification {:.4}",
            if random { "random" } else { "sequential" },
            (did.host_units as f64 / seconds) as u64,
            did.programmed_units() as f64 / seconds,
            did.write_amplification().unwrap_or_default(),
        );
    };
    time(1, &mut device, false);
    time(2, &mut device, true);
    time(1, &mut device, true);
    Ok(())
}
