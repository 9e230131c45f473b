//! Strips a recording with a key of zeros, and proves that the explanation is the same: `strip IN
//! OUT [keep|extensions]`.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/strip/same.rs"]
mod same;

use fscost_recording::Recording;
use fscost_strip::{Names, strip};

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let names = match arguments.get(2).map(String::as_str) {
        Some("keep") => Names::Keep,
        Some("extensions") => Names::Extensions,
        _ => Names::Replace,
    };
    let recording = Recording::open(arguments[0].as_ref()).unwrap();
    let summary = strip(
        &recording,
        fscost_recording::Output::create(arguments[1].as_ref()).unwrap(),
        names,
        &[0; 32],
    )
    .unwrap();
    println!("{} bytes", summary.file_bytes);
    let stripped = Recording::open(arguments[1].as_ref()).unwrap();
    same::assert_same_explanation(&recording, &stripped);
}
