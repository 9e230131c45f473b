//! All targets in one binary, which runs the one that its own file name names.
//!
//! A fuzzer links dead code too, so a binary for each target would be the same code every time.

#![no_main]

use fscost_fuzz::{TARGETS, Target};
use std::path::Path;
use std::sync::LazyLock;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default();
    let found = TARGETS.iter().find(|(target, _)| name == *target);
    found
        .unwrap_or_else(|| panic!("{}: no target has this name", name.display()))
        .1
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| TARGET(input));
