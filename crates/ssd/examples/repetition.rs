//! Prints the write amplification of short traces that are repeated, beside that of a
//! long one, as a table in Markdown (docs/wear.md).
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/repetition.rs"]
mod traces;

use common::{fifo, greedy};
use fscost_ssd::{Collection, Repeat};
use traces::{TEN_NINETY, UNIFORM, amplification, spec, trace, utilisation};

const DEVICES: [f64; 8] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0];
/// Device writes of the long trace.
const LONG: f64 = 60.0;

fn main() {
    let heads = DEVICES.map(|each| format!(" {each} |")).concat();
    println!("| device writes in the trace |{heads} long |");
    println!("|---|{}--:|", "--:|".repeat(DEVICES.len()));
    let (small, large) = (
        spec(0.09, Collection::Greedy),
        spec(0.28, Collection::Greedy),
    );
    let (rho, block) = utilisation(&small);
    row(
        "uniform, greedy, spare 9 %",
        &small,
        &UNIFORM,
        false,
        greedy(rho, block),
    );
    let aged = spec(0.28, Collection::Fifo);
    let skewed = fifo(utilisation(&aged).0, &TEN_NINETY);
    row("90/10, FIFO, spare 28 %", &aged, &TEN_NINETY, false, skewed);
    let long = |is_scattered| {
        amplification(
            &large,
            &trace(LONG, &TEN_NINETY, is_scattered),
            Repeat::Exact,
        )
    };
    row(
        "90/10, greedy, spare 28 %",
        &large,
        &TEN_NINETY,
        false,
        long(false),
    );
    row(
        "90/10 scattered, greedy, spare 28 %",
        &large,
        &TEN_NINETY,
        true,
        long(true),
    );
}

fn row(
    name: &str,
    spec: &fscost_ssd::Spec,
    classes: &[(f64, f64)],
    is_scattered: bool,
    expected: f64,
) {
    for (how, repeat) in [("", Repeat::Varied), (", exact", Repeat::Exact)] {
        let found = DEVICES.map(|devices| {
            let workload = trace(devices, classes, is_scattered);
            format!(" {:.2} |", amplification(spec, &workload, repeat))
        });
        println!("| {name}{how} |{} {expected:.2} |", found.concat());
    }
}
