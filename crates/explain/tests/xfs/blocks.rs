//! Kind and owner of every block, compared with `xfs_db` on the image of that instant, for file
//! systems that mkfs can make.

use crate::conserved::assert_conserved;
use crate::marks::marks;
use crate::recorded::{Cell, fill};
use crate::{log, tools};
use fscost_explain::{Cause, Explained, Row, Structure, explain};
use fscost_recording::{Instant, Recording};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The row that wrote each unit of a disk last, before an event.
pub fn last_writers(explained: &Explained, unit: u64, before: u64) -> BTreeMap<u64, &Row> {
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

/// Asserts that no row is unknown.
pub fn assert_known(explained: &Explained) {
    let is_unknown = |r: &&Row| {
        let unknown = [r.structure, r.home.unwrap_or(r.structure)].contains(&Structure::Unknown);
        unknown || r.causes.has(Cause::Unknown)
    };
    let unknown: Vec<_> = explained.rows.iter().filter(is_unknown).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// Compare what was written last before an event with what the image says; how many blocks of each
/// structure there were.
pub fn compare(
    explained: &Explained,
    recording: &Recording,
    image: &Path,
    event: u64,
) -> HashMap<Structure, usize> {
    let block_bytes = tools::Shape::of(image).block_bytes;
    let mut compared = HashMap::new();
    let writers = last_writers(explained, block_bytes, event);
    let offsets: Vec<u64> = writers.keys().copied().collect();
    let text = |row: &Row| row.path.map_or("none", |path| explained.paths.text(path));
    for used in tools::block_uses(image, &offsets) {
        let row = writers[&used.offset];
        // Freed since, never used, or headers of several kinds in one block.
        let several =
            row.length < block_bytes && ["sb", "agf", "agi", "agfl"].contains(&used.kind.as_str());
        if used.kind.starts_with("free") || row.structure == Structure::Unused || several {
            continue;
        }
        let agreed = kinds_of(row.structure).contains(&used.kind.as_str());
        assert!(agreed, "{used:?}: {row:?}\n{:x?}", begin_of(recording, row));
        *compared.entry(row.structure).or_default() += 1;
        let (Some(inode), Some(path)) = (used.inode, &used.name) else {
            continue;
        };
        let ours = text(row);
        // Shared blocks have two owners, and the tool names one.
        if ["e/same", "e/big"].contains(&path.as_str()) {
            assert!(
                ["/e/same", "/e/big"].contains(&ours),
                "{used:?}: {row:?} {ours}"
            );
            continue;
        }
        assert_eq!(row.inode, inode, "{used:?}: {row:?}");
        // An image is written by offset: a block may come before the name of its file, and then it
        // has none.
        assert!(
            ours == "none"
                || path == "e/moved"
                || ours.trim_start_matches('/') == path
                || ours == "/d/f3",
            "{used:?}: {ours}"
        );
    }
    compared
}

fn check_against_tools(profile: &str) {
    let (create, again) = (fill("create"), fill("again"));
    let steps = [
        ("create", create.as_str()),
        ("read", "cat d/* e/big e/holes >/dev/null"),
        ("again", &again),
        ("last", "mv d/f2 e/moved"),
    ];
    let Some(cell) = Cell::record(profile, &steps) else {
        return;
    };
    let recording = cell.recording();
    let explained = explain(&recording).unwrap();
    assert_conserved(&recording, &explained);
    assert_known(&explained);
    let mut compared: HashMap<Structure, usize> = HashMap::new();
    let marks = marks(&recording);
    for (event, name) in marks
        .iter()
        .filter(|(_, name)| ["read", "again", "last", "end"].contains(&name.as_str()))
    {
        let image = cell.image(&recording, 0, &Instant::Mark(name.clone()));
        for (structure, count) in compare(&explained, &recording, &image, *event) {
            *compared.entry(structure).or_default() += count;
        }
    }
    let count = |structure| compared.get(&structure).copied().unwrap_or(0);
    assert!(count(Structure::FileData) > 2000, "{compared:?}");
    for structure in [
        Structure::Directory,
        Structure::DirectoryIndex,
        Structure::InodeChunk,
        Structure::ExtentMap,
        Structure::Xattr,
        Structure::Symlink,
    ] {
        // No target is too long for inodes of that size.
        if structure == Structure::Symlink && profile.contains("-i size=2048") {
            continue;
        }
        assert!(count(structure) > 0, "{structure:?}: {compared:?}");
    }
    log::check(&cell, &recording, &explained);
    check_home_transactions(&explained);
}

/// A block that is written home names the log's transaction that changed it last.
fn check_home_transactions(explained: &Explained) {
    let rows = || explained.rows.iter();
    let logged: std::collections::BTreeSet<u64> = rows()
        .filter(|r| r.structure == Structure::Log && r.home.is_some())
        .filter_map(|r| r.transaction)
        .collect();
    let home = || rows().filter(|r| r.structure != Structure::Log);
    for row in home() {
        assert!(
            row.transaction.is_none_or(|t| logged.contains(&t)),
            "{row:?}"
        );
    }
    for structure in [
        Structure::InodeChunk,
        Structure::Directory,
        Structure::ExtentMap,
        Structure::Agf,
        Structure::FreeSpaceBtree,
    ] {
        let named = home().filter(|r| r.structure == structure && r.transaction.is_some());
        assert!(named.count() > 0, "{structure:?}");
    }
}

macro_rules! profiles {
    ($($name:ident $profile:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            check_against_tools($profile);
        })*
    };
}

profiles! {
    what_mkfs_makes_by_itself "xfs",
    reverse_mappings "xfs -m rmapbt=1",
    all_features "xfs -m rmapbt=1,reflink=1,finobt=1,bigtime=1,inobtcount=1 -i nrext64=1",
    no_features "xfs -m rmapbt=0,reflink=0,finobt=0,bigtime=0,inobtcount=0 -i sparse=0",
    small_blocks "xfs -b size=1k -s size=512 -i size=512",
    large_inodes_many_groups "xfs -i size=2048 -d agcount=6",
    large_inodes_in_small_blocks "xfs -b size=2k -i size=1024 -n size=4k",
    large_directory_blocks "xfs -n size=16k -o logbsize=256k",
    blocks_beyond_a_page "xfs -b size=8k",
    striped "xfs -d su=64k,sw=2,agcount=6 -l su=32k,size=64m",
}

#[test]
fn a_replayed_log_is_explained() {
    let steps = [
        (
            "create",
            "mkdir d; for n in $(seq 99); do echo $n >d/f$n; done",
        ),
        (
            "crash",
            "rm d/f1*; ln d/f20 d/linked; for n in $(seq 99); do echo $n >d/g$n; done; xfs_io -x \
            -c 'shutdown -f' .",
        ),
        ("after", "echo again >d/new; rm d/f3*"),
    ];
    let Some(cell) = Cell::record("xfs -m rmapbt=1", &steps) else {
        return;
    };
    let recording = cell.recording();
    let explained = explain(&recording).unwrap();
    assert_conserved(&recording, &explained);
    assert_known(&explained);
    let replayed = crate::recorded::rows_of(&recording, &explained, "crash");
    // Nothing went home before the shutdown: the next mount wrote what the log had.
    for structure in [Structure::Directory, Structure::InodeChunk] {
        let home = replayed.iter().filter(|r| r.structure == structure);
        assert!(home.count() > 0, "{structure:?}");
    }
    let image = cell.image(&recording, 0, &Instant::End);
    let compared = compare(&explained, &recording, &image, u64::MAX);
    assert!(compared[&Structure::FileData] > 50, "{compared:?}");
}

#[test]
fn a_file_with_several_names_keeps_its_first_until_that_is_gone() {
    let steps = [
        (
            "create",
            "mkdir b; for n in $(seq 50); do : >b/$n; done; echo >kept",
        ),
        ("link", "ln kept b/second; ln kept a-third"),
        (
            "write",
            "dd if=/dev/zero of=a-third bs=4k count=1 conv=notrunc status=none",
        ),
        ("unlink", "rm kept"),
        (
            "write-again",
            "dd if=/dev/zero of=a-third bs=4k count=1 conv=notrunc status=none",
        ),
    ];
    let Some(cell) = Cell::record("xfs", &steps) else {
        return;
    };
    let recording = cell.recording();
    let explained = explain(&recording).unwrap();
    let paths = |phase| -> Vec<&str> {
        let rows = crate::recorded::rows_of(&recording, &explained, phase);
        let data = rows.iter().filter(|r| r.structure == Structure::FileData);
        data.map(|r| r.path.map_or("none", |path| explained.paths.text(path)))
            .collect()
    };
    assert_eq!(paths("write"), ["/kept"]);
    assert_eq!(paths("write-again"), ["/b/second"]);
}
