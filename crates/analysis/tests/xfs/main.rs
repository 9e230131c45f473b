//! xfs: our answers against those of xfs's own tools, and causes against what was done. Needs root, xfs and a built fscost; skipped aloud without.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod hostile;
mod recorded;
mod tools;

use fscost_analysis::classify::{Cause, Causes, Explained, NO_INODE, Row, Structure, explain};
use fscost_recording::{Instant, Recording};
use recorded::{Cell, assert_conserved, marks, rows_of};
use std::collections::{BTreeMap, HashMap};

const MANY: &str = "mkdir d e; for n in $(seq 120); do head -c $((n * 700)) /dev/urandom >d/f$n; done; \
    head -c 3000000 /dev/urandom >e/big; ln -s $(printf x%.0s $(seq 900)) e/link; for n in $(seq 2000); do : >e/with-a-long-name-$n; done; \
    for n in $(seq 400); do dd if=/dev/urandom of=e/holes bs=4k count=1 seek=$((n * 2)) conv=notrunc status=none; done; \
    python3 -c 'import os; [os.setxattr(\"d/f1\", f\"user.{n}\", b\"y\" * n) for n in (500, 900, 2000, 20000)]'; cp --reflink=auto e/big e/same";
const AGAIN: &str = "rm d/f1? e/with-a-long-name-1*; head -c 200000 /dev/urandom >d/new; \
    dd if=/dev/urandom of=e/big bs=4k count=3 seek=9 conv=notrunc status=none; for n in $(seq 20); do head -c 9000 /dev/urandom >e/more$n; done";

/// The row that wrote each unit of a disk last, before an event.
fn last_writers(explained: &Explained, unit: u64, before: u64) -> BTreeMap<u64, &Row> {
    let rows = explained.rows.iter();
    rows.filter(|r| r.disk == 0 && r.event < before && r.structure != Structure::Log)
        .flat_map(|r| {
            (r.offset / unit..(r.offset + r.length).div_ceil(unit)).map(move |at| (at * unit, r))
        })
        .collect()
}

/// The first bytes of what a row wrote.
fn begin_of(recording: &Recording, row: &Row) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let mut image = recording
        .image_at(row.disk, &Instant::Events(row.event + 1))
        .unwrap();
    image.read_at(row.offset, &mut bytes).unwrap();
    bytes
}

fn kinds_of(structure: Structure) -> &'static [&'static str] {
    match structure {
        Structure::FileData => &["data", "rldata"],
        Structure::Superblock | Structure::SuperblockBackup => &["sb"],
        Structure::Agf => &["agf"],
        Structure::Agi => &["agi"],
        Structure::Agfl => &["agfl"],
        Structure::FreeSpaceBtree => &["btbno", "btcnt"],
        Structure::InodeBtree => &["btino"],
        Structure::FreeInodeBtree => &["btfino"],
        Structure::RmapBtree => &["btrmap"],
        Structure::RefcountBtree => &["btrefcnt"],
        Structure::InodeChunk => &["inode"],
        Structure::Directory | Structure::DirectoryIndex => &["dir"],
        // It calls blocks of an extent tree what the tree's extents are.
        Structure::ExtentMap => &["data", "dir", "attr"],
        Structure::Xattr => &["attr"],
        Structure::Symlink => &["symlink"],
        Structure::Quota => &["quota"],
        Structure::Realtime => &["rtbitmap", "rtsum"],
        _ => &[],
    }
}

fn check_against_tools(profile: &str, block_bytes: u64) {
    let steps = [
        ("create", MANY),
        ("read", "cat d/* e/big e/holes >/dev/null"),
        ("again", AGAIN),
        ("last", "mv d/f2 e/moved"),
    ];
    let Some(cell) = Cell::record(profile, &steps) else {
        return;
    };
    let recording = cell.recording();
    let explained = explain(&recording).unwrap();
    assert_conserved(&recording, &explained);
    let is_unknown = |r: &&Row| {
        let unknown = [r.structure, r.home.unwrap_or(r.structure)].contains(&Structure::Unknown);
        unknown || r.causes.has(Cause::Unknown)
    };
    let unknown: Vec<_> = explained.rows.iter().filter(is_unknown).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    let mut compared: HashMap<Structure, usize> = HashMap::new();
    let marks = marks(&recording);
    for (event, name) in marks
        .iter()
        .filter(|(_, name)| cell.steps[1..].contains(name) || name == "end")
    {
        let image = cell.image(&recording, &Instant::Mark(name.clone()));
        let writers = last_writers(&explained, block_bytes, *event);
        let offsets: Vec<u64> = writers.keys().copied().collect();
        for used in tools::block_uses(&image, &offsets) {
            let row = writers[&used.offset];
            // Freed since, never used, or headers of several kinds in one block.
            let several = row.length < block_bytes
                && ["sb", "agf", "agi", "agfl"].contains(&used.kind.as_str());
            if used.kind.starts_with("free") || row.structure == Structure::Unused || several {
                continue;
            }
            let agreed = kinds_of(row.structure).contains(&used.kind.as_str());
            assert!(
                agreed,
                "{name}: {used:?}: {row:?}\n{:x?}",
                begin_of(&recording, row)
            );
            *compared.entry(row.structure).or_default() += 1;
            let (Some(inode), Some(path)) = (used.inode, &used.name) else {
                continue;
            };
            // Shared blocks have two owners.
            if path.ends_with("same") || path.ends_with("big") || row.inode == NO_INODE {
                assert_ne!(row.inode, NO_INODE, "{name}: {used:?}: {row:?}");
                continue;
            }
            assert_eq!(row.inode, inode, "{name}: {used:?}: {row:?}");
            let ours = row.path.map_or("none", |path| explained.paths.text(path));
            assert!(
                path == "e/moved" || ours.trim_start_matches('/') == path,
                "{name}: {used:?}: {ours}"
            );
        }
    }
    let count = |structure| compared.get(&structure).copied().unwrap_or(0);
    assert!(count(Structure::FileData) > 2000, "{compared:?}");
    for structure in [
        Structure::Directory,
        Structure::DirectoryIndex,
        Structure::InodeChunk,
        Structure::ExtentMap,
    ] {
        assert!(count(structure) > 0, "{structure:?}: {compared:?}");
    }
    check_log(&cell, &recording, &explained);
}

/// Every item of the log has as many bytes for us as for `xfs_logprint`.
fn check_log(cell: &Cell, recording: &Recording, explained: &Explained) {
    let theirs = tools::log_bytes(&cell.image(recording, &Instant::End));
    let ours = explained
        .rows
        .iter()
        .filter(|r| r.structure == Structure::Log && r.home.is_some());
    let mut inodes: HashMap<u64, u64> = HashMap::new();
    let mut others = 0;
    for row in ours {
        match row.home {
            Some(Structure::InodeChunk) if row.inode != NO_INODE => {
                *inodes.entry(row.inode).or_default() += row.length
            }
            _ => others += row.length,
        }
    }
    let of = |kind: &str| theirs.kinds.get(kind).copied().unwrap_or(0);
    assert_eq!(
        inodes.values().sum::<u64>(),
        of("INODE"),
        "{:?}",
        theirs.kinds
    );
    let their_others = theirs.kinds.values().sum::<u64>() - of("INODE") - of("own") - of("TRAN");
    assert_eq!(others, their_others, "{:?}", theirs.kinds);
    let different = theirs
        .inodes
        .iter()
        .filter(|(inode, bytes)| inodes.get(inode) != Some(bytes));
    assert!(different.count() <= theirs.nameless);
    assert!(theirs.inodes.len() > 1000);
}

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
    assert_eq!(of("create"), ["names+links_or_mode+new_inode"; 2]);
    assert_eq!(of("atime"), ["atime"; 2]);
    assert_eq!(of("mode"), ["links_or_mode"; 2]);
    assert_eq!(of("times"), ["times"; 2]);
    assert_eq!(of("size"), ["size_or_map"; 2]);
    // A directory that is in its inode; the other's names are in a block.
    assert_eq!(of("link"), ["names+links_or_mode"; 2]);
    assert_eq!(of("remove"), ["times+inode_removed"; 2]);
    assert_eq!(of("replace"), ["times"; 2]);
}

#[test]
fn blocks_and_log_items_are_what_the_tools_say() {
    check_against_tools("xfs -m rmapbt=1", 4096);
}

#[test]
fn blocks_and_log_items_are_what_the_tools_say_small_blocks() {
    check_against_tools("xfs -b size=1k -s size=512 -i size=512", 1024);
}

#[test]
fn blocks_and_log_items_are_what_the_tools_say_large_directory_blocks() {
    check_against_tools("xfs -n size=16k -o logbsize=256k", 4096);
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
    let is_log = |r: &Row| r.structure == Structure::Log;
    assert!(
        explained
            .rows
            .iter()
            .all(|r| is_log(r) == (r.disk == 1) || r.structure == Structure::Unused)
    );
    assert_eq!(
        inode_causes(&recording, &explained, "remove"),
        ["times+inode_removed"; 2]
    );
}

#[test]
fn a_log_is_followed_around_its_end() {
    let files = "mkdir d; for n in $(seq 10000); do : >d/$n; done; sync";
    let touch = "for n in $(seq 32); do chmod $((n % 2 + 600)) d/*; sync; done";
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
}

/// Bytes that went to the disk in a phase, and those of them that were there for nothing but access times.
fn bytes(profile: &str, steps: &[(&str, &str)], phase: &str) -> Option<(u64, u64)> {
    let cell = Cell::record(profile, steps)?;
    let recording = cell.recording();
    let explained = explain(&recording).unwrap();
    assert_conserved(&recording, &explained);
    let rows = rows_of(&recording, &explained, phase);
    let sum = |of: &dyn Fn(&Row) -> bool| rows.iter().filter(|r| of(r)).map(|r| r.length).sum();
    Some((
        sum(&|_| true),
        sum(&|r| r.causes.only() == Some(Cause::Atime)),
    ))
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
    let files = "mkdir d; for n in $(seq 900); do echo $n >d/f$n; done; echo >log; sync";
    let work = "for n in $(seq 90); do cat d/f*$n >/dev/null; dd if=/dev/zero of=log bs=4k count=1 oflag=append conv=notrunc,fsync status=none; done";
    check_saving(&[("create", files), ("read", work)], "read");
}
