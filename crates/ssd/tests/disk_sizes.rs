//! The answer must not depend on the size of the recorded disk.
#![allow(missing_docs, clippy::unwrap_used)]

use fscost_ssd::{Association, LogBlocks, Mapping, Options, Part, Repeat, Spec, Workload, replay};
use std::sync::atomic::AtomicBool;

const MIB: u64 = 1 << 20;
const BLOCK_BYTES: u64 = MIB;

/// A small eMMC.
const SPEC: Spec = Spec {
    capacity_bytes: 2048 * MIB,
    spare: 0.07,
    unit_bytes: 4096,
    page_bytes: 4096,
    block_bytes: BLOCK_BYTES,
    mapping: Mapping::Log(LogBlocks {
        association: Association::Block,
        log_blocks: 8,
    }),
    buffer_bytes: 0,
    is_power_loss_protected: false,
};

/// Six interleaved streams of 16 KiB, each over `blocks` whole blocks.
fn streams(disk_bytes: u64, blocks: u64) -> Workload {
    let mut workload = Workload::new(SPEC.unit_bytes, disk_bytes);
    let stream_bytes = blocks * BLOCK_BYTES;
    for at in (0..stream_bytes).step_by(16384) {
        for stream in 0..6 {
            workload.write(Part::Cycle, stream * stream_bytes + at, [(16384, 0)]);
        }
    }
    workload
}

const OPTIONS: Options = Options {
    fill: 1.0,
    max_rounds: 8,
    by_tag: false,
    repeat: Repeat::Varied,
    seed: 1,
};

/// Each stream fills a log block in order, which then replaces the data block (a switch merge, Kim
/// et al. 2002): nothing is copied while there are more log blocks than streams.
#[test]
fn streams_keep_their_log_blocks_on_a_small_disk() {
    for disk_mib in [32, 128, 512, 2048] {
        let workload = streams(disk_mib * MIB, 4);
        let found = replay(&SPEC, &workload, &OPTIONS, &AtomicBool::new(false)).unwrap();
        let amplification = found.counted.write_amplification().unwrap();
        assert!(
            (amplification - 1.0).abs() < 1e-3,
            "{disk_mib} MiB: {amplification}"
        );
    }
}

/// A pass that trims all units and writes one would be repeated for a quarter of the units.
#[test]
fn rounds_are_bounded_by_trimmed_units() {
    let mut workload = Workload::new(SPEC.unit_bytes, 16 * MIB);
    workload.trim(Part::Cycle, 0, 16 * MIB, 0);
    workload.write(Part::Cycle, 0, [(4096, 0)]);
    let found = replay(&SPEC, &workload, &OPTIONS, &AtomicBool::new(false)).unwrap();
    let turns = found.passes * workload.units() / found.scaled.geometry.physical_units();
    assert!(turns <= 5 * u64::from(OPTIONS.max_rounds), "{turns}");
}

/// Without an open block left, each of two far writes copies the rest of its block.
#[test]
fn rounds_are_bounded_by_copied_units() {
    let spec = Spec {
        mapping: Mapping::Block { open_blocks: 1 },
        ..SPEC
    };
    let mut workload = Workload::new(spec.unit_bytes, 256 * MIB);
    for offset in [0, 128 * MIB] {
        workload.write(Part::Cycle, offset, [(4096, 0)]);
    }
    let found = replay(&spec, &workload, &OPTIONS, &AtomicBool::new(false)).unwrap();
    assert!(found.is_steady);
    // The last write's block is still open.
    let whole = found.counted.host_units * 256;
    let programmed = found.counted.programmed_units();
    assert!(
        (whole - 255..=whole).contains(&programmed),
        "{programmed} of {whole}"
    );
    // Spare blocks and the two that are written take turns. Counters lag behind by a batch of 1,024
    // writes a round.
    let taking_part = found.scaled.geometry.physical_units() - found.filled_units;
    let bound = 5 * (5 * taking_part + 1024 * 256);
    assert!(programmed <= bound, "{programmed} of {bound}");
}

/// Random writes to the first 16 MiB. All spare blocks of the device take turns, as at real size.
#[test]
fn erases_do_not_depend_on_the_size_of_the_disk() {
    let log = |association| {
        Mapping::Log(LogBlocks {
            association,
            log_blocks: 8,
        })
    };
    let mappings = [
        Mapping::Block { open_blocks: 4 },
        log(Association::Block),
        log(Association::Full),
    ];
    for mapping in mappings {
        let spec = Spec { mapping, ..SPEC };
        let of_disk = |disk_mib: u64| {
            let mut workload = Workload::new(spec.unit_bytes, disk_mib * MIB);
            let mut random = fastrand::Rng::with_seed(1);
            for _ in 0..512 {
                workload.write(Part::Cycle, random.u64(0..4096) * 4096, [(4096, 0)]);
            }
            let found = replay(&spec, &workload, &OPTIONS, &AtomicBool::new(false)).unwrap();
            let most = found.erases.iter().max().copied().unwrap();
            (
                found.counted.write_amplification().unwrap(),
                f64::from(most) / found.passes as f64,
                found.effective_spare,
            )
        };
        let real = of_disk(2048);
        for disk_mib in [16, 64, 512] {
            let (amplification, most, spare) = of_disk(disk_mib);
            assert!(
                (amplification / real.0 - 1.0).abs() < 0.01,
                "{mapping:?}, {disk_mib}"
            );
            assert!(
                (most / real.1 - 1.0).abs() < 0.05,
                "{mapping:?}, {disk_mib} MiB: {most}"
            );
            assert!((spare - real.2).abs() < 1e-9);
        }
    }
}
