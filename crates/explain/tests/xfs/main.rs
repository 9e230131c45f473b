//! xfs: our answers against those of xfs's own tools, and causes against what was done. Needs root,
//! xfs and a built fscost; skipped aloud without.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod blocks;
#[path = "../common/conserved.rs"]
mod conserved;
mod hostile;
mod images;
mod log;
#[path = "../common/marks.rs"]
mod marks;
mod recorded;
mod tools;

use conserved::assert_conserved;
use fscost_explain::{Cause, Causes, Explained, Row, Structure, explain};
use fscost_recording::Recording;
use recorded::{Cell, rows_of};

/// Causes of the log's inode items, and of inodes at home, between a mark and the next.
fn inode_causes(recording: &Recording, explained: &Explained, name: &str) -> [String; 2] {
    let rows = rows_of(recording, explained, name);
    let all = |home: bool| {
        let of_inodes = rows.iter().filter(|r| match home {
            true => r.structure == Structure::InodeChunk,
            false => r.home == Some(Structure::InodeChunk),
        });
        let free = Causes::one(Cause::Allocation);
        of_inodes
            .map(|r| r.causes)
            .filter(|c| *c != free)
            .fold(Causes::NONE, Causes::and)
            .to_string()
    };
    [all(false), all(true)]
}

#[test]
fn causes_are_what_was_done() {
    let steps = [
        (
            "create",
            "mkdir d e; for n in $(seq 99); do echo $n >d/f$n; done",
        ),
        ("atime", "cat d/* >/dev/null"),
        ("mode", "chmod 600 d/f1"),
        ("times", "touch -m d/f7"),
        ("size", "echo more >>d/f8"),
        ("link", "ln d/f9 e/linked"),
        ("remove", "rm d/f10"),
        (
            "replace",
            "dd if=/dev/zero of=d/f8 bs=1 count=1 conv=notrunc status=none",
        ),
    ];
    let Some(cell) = Cell::record("xfs -o strictatime", &steps) else {
        return;
    };
    let recording = cell.recording();
    let explained = explain(&recording).unwrap();
    let of = |name| inode_causes(&recording, &explained, name);
    assert_eq!(
        of("create"),
        ["directory_entries+links_or_mode+new_inode"; 2]
    );
    assert_eq!(of("atime"), ["atime"; 2]);
    assert_eq!(of("mode"), ["links_or_mode"; 2]);
    assert_eq!(of("times"), ["times"; 2]);
    assert_eq!(of("size"), ["size_or_extents"; 2]);
    // A directory that is in its inode; the other's names are in a block.
    assert_eq!(of("link"), ["directory_entries+links_or_mode"; 2]);
    assert_eq!(of("remove"), ["times+inode_removed"; 2]);
    assert_eq!(of("replace"), ["times"; 2]);
}

#[test]
fn an_external_log_is_read_where_it_is() {
    let steps = [
        (
            "create",
            "mkdir d; for n in $(seq 99); do echo $n >d/f$n; done",
        ),
        ("remove", "rm d/f1"),
    ];
    let Some(cell) = Cell::record("xfs -l logdev={disk.journal}", &steps) else {
        return;
    };
    let recording = cell.recording();
    let explained = explain(&recording).unwrap();
    assert_conserved(&recording, &explained);
    assert_eq!(explained.families, [Some("xfs"); 2]);
    for row in &explained.rows {
        let is_log = row.structure == Structure::Log;
        let is_expected = is_log == (row.disk == 1) || row.structure == Structure::Unused;
        assert!(is_expected, "{row:?}");
    }
    assert_eq!(
        inode_causes(&recording, &explained, "remove"),
        ["times+inode_removed"; 2]
    );
    log::check(&cell, &recording, &explained);
    log::check_recovery(&cell, &recording, "create", 8);
}

#[test]
fn a_log_is_followed_around_its_end() {
    let files = "mkdir d; for n in $(seq 10000); do : >d/$n; done; sync -f .";
    let touch = "for n in $(seq 32); do chmod $((n % 2 + 600)) d/*; sync -f .; done";
    let Some(cell) = Cell::record("xfs -l size=64m", &[("create", files), ("mode", touch)]) else {
        return;
    };
    let recording = cell.recording();
    let explained = explain(&recording).unwrap();
    assert_conserved(&recording, &explained);
    let rows = rows_of(&recording, &explained, "mode");
    let log: u64 = rows
        .iter()
        .filter(|r| r.structure == Structure::Log)
        .map(|r| r.length)
        .sum();
    assert!(log > 70 << 20, "{log} bytes of log");
    // Every change of every file is found: core and format with their headers are 256 bytes.
    let of_files = rows
        .iter()
        .filter(|r| r.home == Some(Structure::InodeChunk));
    let of_files = of_files.filter(|r| {
        r.path
            .is_some_and(|path| explained.paths.text(path).starts_with("/d/"))
    });
    let (mode, other): (Vec<&Row>, Vec<&Row>) =
        of_files.partition(|r| r.causes == Causes::one(Cause::LinksOrMode));
    assert!(other.is_empty(), "{:?}", other.first());
    // One header more where an item goes on in the next record.
    let more = mode.iter().map(|r| r.length).sum::<u64>() - 32 * 10_000 * 256;
    assert!(
        more.is_multiple_of(12) && more / 12 < log / (32 << 10),
        "{more}"
    );
    log::check_recovery(&cell, &recording, "mode", 6);
}

/// Bytes that went to the disk in a phase, and those of them that were there for nothing but access
/// times.
fn bytes(profile: &str, steps: &[(&str, &str)], phase: &str) -> Option<(u64, u64)> {
    let cell = Cell::record(profile, steps)?;
    let recording = cell.recording();
    let explained = explain(&recording).unwrap();
    assert_conserved(&recording, &explained);
    let rows = rows_of(&recording, &explained, phase);
    let sum = |of: &dyn Fn(&Row) -> bool| rows.iter().filter(|r| of(r)).map(|r| r.length).sum();
    Some((sum(&|_| true), sum(&|r| r.causes.is_atime_alone())))
}

fn check_saving(steps: &[(&str, &str)], phase: &str) {
    let (Some((with, atime)), Some((without, none))) = (
        bytes("xfs -o strictatime", steps, phase),
        bytes("xfs -o noatime", steps, phase),
    ) else {
        return;
    };
    assert_eq!(none, 0);
    let saving = (with - without) as f64;
    let ratio = atime as f64 / saving;
    assert!(
        (0.95..1.05).contains(&ratio),
        "{atime} bytes of access times; noatime saves {saving}"
    );
}

#[test]
fn access_times_are_what_noatime_saves() {
    let files = "mkdir d; for n in $(seq 900); do echo $n >d/f$n; done";
    check_saving(&[("create", files), ("read", "cat d/* >/dev/null")], "read");
}

#[test]
fn access_times_are_what_noatime_saves_beside_fsync() {
    let files = "mkdir d; for n in $(seq 900); do echo $n >d/f$n; done; echo >log; sync -f .";
    let work = "for n in $(seq 90); do cat d/f*$n >/dev/null; dd if=/dev/zero of=log bs=4k \
        count=1 oflag=append conv=notrunc,fsync status=none; done";
    check_saving(&[("create", files), ("read", work)], "read");
}
