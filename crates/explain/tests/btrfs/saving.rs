//! Bytes attributed to access times equal the savings of `noatime`, in cells recorded on a real
//! system.

use crate::conserved::assert_conserved;
use crate::marks::marks;
use crate::recorded::Cell;
use fscost_explain::{Cause, explain};

/// Bytes of the step `read`.
#[derive(Debug, Default)]
struct Bytes {
    all: u64,
    /// Bytes for which access times were the only cause.
    alone: u64,
}

fn bytes(profile: &str, steps: &[(&str, &str)]) -> Option<Bytes> {
    let cell = Cell::record(profile, steps)?;
    let recording = cell.recording();
    let explained = explain(&recording).unwrap();
    assert_conserved(&recording, &explained);
    let marks = marks(&recording);
    let begin = marks.iter().position(|(_, name)| name == "read").unwrap();
    let step = marks[begin].0..marks.get(begin + 1).map_or(u64::MAX, |m| m.0);
    let mut bytes = Bytes::default();
    for row in explained.rows.iter().filter(|r| step.contains(&r.event)) {
        bytes.all += row.length;
        if row.causes.only() == Some(Cause::Atime) {
            bytes.alone += row.length;
        }
    }
    Some(bytes)
}

/// Measures the step with and without access times.
fn both(read: &str) -> Option<(Bytes, u64)> {
    let files = "mkdir d; for n in $(seq 900); do echo $n >d/f$n; done; echo >log; sync -f .";
    let steps = [("create", files), ("read", read)];
    // Periodic commits would make the result depend on the test's speed.
    let with = bytes("btrfs -o strictatime,commit=300", &steps)?;
    let without = bytes("btrfs -o noatime,commit=300", &steps)?;
    assert_eq!(without.alone, 0);
    let saving = with.all - without.all;
    Some((with, saving))
}

#[test]
fn access_times_are_what_noatime_saves() {
    let Some((with, saving)) = both("cat d/* >/dev/null") else {
        return;
    };
    let ratio = with.alone as f64 / saving as f64;
    assert!((0.95..1.05).contains(&ratio), "{with:?}, saved {saving}");
}
