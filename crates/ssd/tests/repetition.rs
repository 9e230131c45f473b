//! Short traces of known distributions, repeated: write amplification must be that of a long
//! trace. `examples/repetition.rs` prints the whole table.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;
#[path = "common/repetition.rs"]
mod traces;

use common::{assert_close, fifo, greedy};
use fastrand::Rng;
use fscost_ssd::{Collection, Options, Part, Repeat, Workload, replay};
use std::sync::atomic::AtomicBool;
use traces::{
    TEN_NINETY, UNIFORM, UNIT_BYTES, UNITS, amplification, empty, replayed, spec, trace,
    utilisation, write,
};

#[test]
fn closed_form_short_uniform_traces() {
    let spec = spec(0.09, Collection::Greedy);
    let (rho, block) = utilisation(&spec);
    let expected = greedy(rho, block);
    for devices in [0.1, 0.5, 2.0] {
        let workload = trace(devices, &UNIFORM, false);
        let found = amplification(&spec, &workload, Repeat::Varied);
        assert_close(&format!("{devices} devices"), found, expected, 0.02);
    }
    // Blocks are freed whole if the same units are written in the same order.
    let exact = amplification(&spec, &trace(0.25, &UNIFORM, false), Repeat::Exact);
    assert_close("exact", exact, 1.0, 1e-3);
}

#[test]
fn closed_form_short_skewed_traces() {
    let spec = spec(0.28, Collection::Fifo);
    let (rho, _) = utilisation(&spec);
    let expected = fifo(rho, &TEN_NINETY);
    for is_scattered in [false, true] {
        for devices in [0.5, 5.0] {
            let workload = trace(devices, &TEN_NINETY, is_scattered);
            let found = amplification(&spec, &workload, Repeat::Varied);
            let what = format!("{devices} devices, scattered: {is_scattered}");
            assert_close(&what, found, expected, 0.03);
        }
    }
}

/// A database with a journal and a superblock, on a part of the disk.
#[test]
fn a_database_is_as_one_that_goes_on() {
    let of = |devices: f64| {
        let (mut rng, mut workload) = (Rng::with_seed(3), empty());
        for number in 0..(devices * f64::from(UNITS) / 2.0) as u32 {
            write(&mut workload, 4096 + number % 2048);
            write(&mut workload, rng.u32(30_000..46_384));
            workload.flush(Part::Cycle, 0);
            if number % 50 == 0 {
                write(&mut workload, 3);
            }
        }
        workload
    };
    let spec = spec(0.09, Collection::Greedy);
    let expected = amplification(&spec, &of(20.0), Repeat::Exact);
    let found = amplification(&spec, &of(0.25), Repeat::Varied);
    assert_close("database", found, expected, 0.03);
}

/// Writes and removes small files, each after the one before it in free space, beside a journal.
fn allocator(devices: f64) -> Workload {
    let (mut rng, mut workload) = (Rng::with_seed(3), empty());
    let mut is_used = vec![false; UNITS as usize];
    let mut files: Vec<Vec<u32>> = Vec::new();
    let (mut at, mut written) = (1024, 0);
    while f64::from(written) < devices * f64::from(UNITS) {
        let mut file = Vec::new();
        while file.len() < rng.usize(1..17) {
            if !is_used[at as usize] {
                write(&mut workload, at);
                is_used[at as usize] = true;
                file.push(at);
            }
            at = (at + 1).max(1024) % UNITS;
        }
        write(&mut workload, written % 512);
        written += file.len() as u32 + 1;
        files.push(file);
        // A pass is a small part of what the disk holds.
        if files.len() > 400 {
            for unit in files.swap_remove(rng.usize(0..400)) {
                is_used[unit as usize] = false;
            }
        }
    }
    workload
}

#[test]
fn an_allocator_lies_between_places_that_stay_and_places_that_roam() {
    let spec = spec(0.09, Collection::Greedy);
    let of = |devices, repeat| amplification(&spec, &allocator(devices), repeat);
    let [stays, roams] = [Repeat::Varied, Repeat::Roaming].map(|repeat| of(0.1, repeat));
    let truth = of(20.0, Repeat::Exact);
    assert!(
        stays * 1.2 < truth && truth < roams,
        "{stays} {truth} {roams}"
    );
}

/// A drive that is never full, because it receives TRIM, has free space for what roams.
#[test]
fn what_roams_leaves_the_drive_as_full_as_it_is() {
    let spec = spec(0.09, Collection::Greedy);
    let mut workload = empty();
    for at in 0..120 {
        write(&mut workload, 1024 + at / 4 * 64 + at % 4);
        workload.flush(Part::Cycle, 0);
    }
    let held = |fill| {
        let options = Options {
            fill,
            max_rounds: 16,
            by_tag: false,
            repeat: Repeat::Roaming,
            seed: 1,
        };
        let found = replay(&spec, &workload, &options, &AtomicBool::new(false)).unwrap();
        assert!(found.roaming_units > 0);
        let copies = found.counted.copied_units as f64 / found.counted.written_units as f64;
        (found.mapped_units, copies)
    };
    let [fifth, half, whole] = [0.2, 0.5, 1.0].map(held);
    let units = u64::from(UNITS);
    assert_eq!([fifth.0, half.0, whole.0], [units / 5, units / 2, units]);
    assert!(
        fifth.1 < half.1 && half.1 < whole.1,
        "{fifth:?} {half:?} {whole:?}"
    );
}

/// Extents that fill blocks, and whatever is trimmed, are written again as they were.
#[test]
fn streams_and_trimmed_files_stay_in_place() {
    let mut streams = empty();
    for at in (0..8 << 20).step_by(16384) {
        for stream in 0..6 {
            streams.write(Part::Cycle, stream * (16 << 20) + at, [(16384, 0)]);
        }
    }
    let mut files = trace(0.25, &UNIFORM, false);
    files.trim(Part::Cycle, 0, u64::from(UNITS) * UNIT_BYTES, 0);
    let spec = spec(0.09, Collection::Greedy);
    for workload in [streams, files] {
        let [varied, exact] =
            [Repeat::Varied, Repeat::Exact].map(|repeat| replayed(&spec, &workload, repeat));
        assert_eq!(varied.varied_units, 0);
        assert_eq!(varied.erases, exact.erases);
    }
}
