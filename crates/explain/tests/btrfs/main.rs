//! btrfs: explanations compared with the output of btrfs's own tools, and causes compared with the
//! operations performed. The tests need root and btrfs, and are skipped with a message otherwise.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../common/conserved.rs"]
mod conserved;
mod dump;
#[path = "../common/marks.rs"]
mod marks;
#[allow(dead_code)]
#[path = "../xfs/recorded.rs"]
mod recorded;
mod saving;
mod states;

use conserved::assert_conserved;
use dump::dump;
use fscost_explain::{Cause, Causes, Explained, Row, Structure, explain};
use fscost_recording::Recording;
use marks::marks;
use recorded::{Cell, rows_of};
use states::{States, state_name};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Groups the rows by state.
fn by_state<'a>(recording: &Recording, explained: &'a Explained) -> HashMap<String, Vec<&'a Row>> {
    let marks = marks(recording);
    let mut found: HashMap<String, Vec<&Row>> = HashMap::new();
    for row in &explained.rows {
        let (_, name) = marks
            .iter()
            .rev()
            .find(|(first, _)| *first <= row.event)
            .unwrap();
        found.entry(name.clone()).or_default().push(row);
    }
    found
}

/// Maps each 4 KiB block to the row that wrote it last, up to the end of a state.
fn last_writers<'a>(rows: impl Iterator<Item = &'a Row>) -> HashMap<u64, &'a Row> {
    rows.flat_map(|row| {
        (row.offset / 4096..(row.offset + row.length).div_ceil(4096)).map(move |block| (block, row))
    })
    .collect()
}

/// Numbers of compared blocks and blocks of data, and the trees whose logs were seen.
#[derive(Default)]
struct Compared {
    blocks: usize,
    extents: usize,
    logs: BTreeSet<u64>,
}

impl Compared {
    /// Compares the last writer of each block in the tool's dump of `image` with its owner there.
    fn compare(&mut self, image: &Path, last: &HashMap<u64, &Row>) {
        let dump = dump(image);
        for (offset, owner, logged) in &dump.blocks {
            let Some(row) = last.get(&(offset / 4096)) else {
                panic!("{offset} of {image:?}, {owner}: never written")
            };
            assert_eq!(
                row.structure.name(),
                dump::structure(owner),
                "{} of {image:?}: {row:?}",
                offset
            );
            if let Some(tree) = logged {
                assert_eq!(row.tree, *tree, "{offset} of {image:?}: {row:?}");
                self.logs.insert(*tree);
            }
            self.blocks += 1;
        }
        for &(offset, bytes, inode) in &dump.extents {
            for block in offset / 4096..(offset + bytes) / 4096 {
                // The space was allocated but not written.
                let Some(row) = last.get(&block) else {
                    continue;
                };
                let is_data =
                    [Structure::FileData, Structure::FreeSpaceCache].contains(&row.structure);
                assert!(
                    is_data && row.inode == inode,
                    "{} of {image:?} is of inode {inode}: {row:?}",
                    block * 4096
                );
                self.extents += 1;
            }
        }
    }
}

fn check_against_tools(mount_options: &str, mkfs_flags: &[&str]) {
    let Some(states) = States::make(mount_options, mkfs_flags) else {
        return;
    };
    let recording = states.recording();
    let explained = explain(&recording).unwrap();
    assert_conserved(&recording, &explained);
    let unknown: Vec<_> = explained
        .rows
        .iter()
        .filter(|r| r.structure == Structure::Unknown || r.causes.has(Cause::Unknown))
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    let by_state = by_state(&recording, &explained);
    let mut compared = Compared::default();
    let mut until = Vec::new();
    for image in &states.images {
        until.extend(
            by_state
                .get(&state_name(image))
                .into_iter()
                .flatten()
                .copied(),
        );
        compared.compare(image, &last_writers(until.iter().copied()));
    }
    let Compared {
        blocks,
        extents,
        logs,
    } = compared;
    assert!(
        blocks > 200 && extents > 1000,
        "{blocks} blocks, {extents} blocks of data compared"
    );
    assert_eq!(logs.len(), 2);
    for row in explained.rows.iter().filter(|r| r.inode >= 256) {
        let Some(path) = row.path else {
            panic!("no path: {row:?}")
        };
        let path = explained.paths.text(path).to_owned();
        assert!(
            row.tree == 1 || states.names.contains(&(row.inode, path.clone())),
            "{path}: {row:?}"
        );
    }
}

#[test]
fn blocks_and_extents_are_what_the_tools_say() {
    check_against_tools("space_cache=v2", &[]);
}

#[test]
fn blocks_and_extents_are_what_the_tools_say_small_nodes_mixed_groups() {
    check_against_tools(
        "space_cache=v2,compress-force=zstd",
        &["--mixed", "--nodesize", "4096"],
    );
}

#[test]
fn blocks_and_extents_are_what_the_tools_say_free_space_cache() {
    check_against_tools(
        "space_cache=v1",
        &[
            "-R",
            "^free-space-tree,quota",
            "-m",
            "single",
            "--csum",
            "xxhash",
        ],
    );
}

/// Every block of the files names its file, so owners are known without parsing the file system.
#[test]
fn data_is_of_the_file_that_its_content_names() {
    let Some(states) = States::make("space_cache=v2", &[]) else {
        return;
    };
    let recording = states.recording();
    let explained = explain(&recording).unwrap();
    let by_state = by_state(&recording, &explained);
    for (state, least) in [("15-tagged", 500), ("16-tagged-again", 30)] {
        let writes = states.writes_of(state);
        let mut found = 0;
        for row in by_state[state]
            .iter()
            .filter(|r| r.structure == Structure::FileData)
        {
            for at in (row.offset..row.offset + row.length).step_by(4096) {
                let block = writes
                    .iter()
                    .find_map(|(offset, bytes)| bytes.get(at.checked_sub(*offset)? as usize..))
                    .unwrap();
                if block.starts_with(b"/tag/") {
                    let named = String::from_utf8_lossy(&block[..14]);
                    assert_eq!(explained.paths.text(row.path.unwrap()), named);
                    found += 1;
                }
            }
        }
        assert!(found > least, "{found} blocks in {state}");
    }
}

/// Data written by fsync is attributed to its files even if no commit follows.
#[test]
fn data_is_of_the_file_that_a_log_says() {
    let Some(mut states) = States::make("space_cache=v2", &[]) else {
        return;
    };
    let last = states
        .images
        .iter()
        .position(|i| state_name(i) == "11-logs");
    states.images.truncate(last.unwrap() + 1);
    let recording = states.recording();
    let explained = explain(&recording).unwrap();
    let rows = by_state(&recording, &explained).remove("11-logs").unwrap();
    let data = rows.iter().filter(|r| r.structure == Structure::FileData);
    let owners = data.filter_map(|r| Some((explained.paths.text(r.path?), r.tree)));
    let owners: BTreeSet<_> = owners.collect();
    let expected = [("/e/second", 5), ("/e/synced", 5), ("/shot/d/synced", 256)];
    // A state's writes begin and end with the previous content.
    assert!(owners.is_superset(&expected.into()), "{owners:?}");
}

/// Collects the causes of subvolume leaves.
fn causes(rows: &[&Row], structure: Structure) -> Causes {
    let leaves = rows
        .iter()
        .filter(|r| r.structure == structure)
        .map(|r| r.causes);
    leaves
        .filter(|&c| c != Causes::one(Cause::Accounting))
        .fold(Causes::NONE, Causes::and)
}

#[test]
fn causes_are_what_was_done() {
    let Some(states) = States::make("space_cache=v2", &[]) else {
        return;
    };
    let recording = states.recording();
    let explained = explain(&recording).unwrap();
    let by_state = by_state(&recording, &explained);
    let of = |state: &str, structure| causes(&by_state[state], structure).to_string();
    let path = |state: &str, structure| {
        let rows = by_state[state].iter().filter(|r| r.structure == structure);
        rows.filter_map(|r| Some((explained.paths.text(r.path?), r.tree)))
            .next_back()
    };
    assert_eq!(of("00-mkfs", Structure::FsTree), "format");
    assert!(of("01-create", Structure::FsTree).ends_with("directory_entries+new_inode"));
    // The entire commit is caused by the reads.
    assert!(
        by_state["02-atime"]
            .iter()
            .all(|r| r.causes == Causes::one(Cause::Atime)),
        "{:#?}",
        by_state["02-atime"]
    );
    assert_eq!(of("03-mode", Structure::FsTree), "links_or_mode");
    assert_eq!(path("03-mode", Structure::FsTree), Some(("/d/f1", 5)));
    assert_eq!(of("04-names", Structure::FsTree), "times+directory_entries");
    assert_eq!(of("05-times", Structure::FsTree), "times");
    assert_eq!(path("05-times", Structure::FsTree), Some(("/d/f7", 5)));
    assert_eq!(of("06-size", Structure::FsTree), "size_or_extents");
    assert_eq!(path("06-size", Structure::FileData), Some(("/e/big", 5)));
    assert_eq!(of("07-snapshot", Structure::FsTree), "directory_entries");
    assert_eq!(of("08-in-snapshot", Structure::FsTree), "size_or_extents");
    assert_eq!(
        path("08-in-snapshot", Structure::FileData),
        Some(("/shot/d/f20", 256))
    );
    assert_eq!(of("09-log", Structure::LogTree), "new_inode");
    assert_eq!(path("09-log", Structure::FileData), Some(("/d/logged", 5)));
    assert_eq!(of("10-log-again", Structure::LogTree), "size_or_extents");
    assert_eq!(
        of("11-commit", Structure::FsTree),
        "directory_entries+new_inode"
    );
    assert_eq!(
        path("13-in-place", Structure::FileData),
        Some(("/e/inplace", 5))
    );
    assert_eq!(
        of("14-remove", Structure::FsTree),
        "directory_entries+inode_removed"
    );
}

#[test]
fn leaves_that_balance_only_moves_are_unchanged() {
    let steps = [
        (
            "create",
            "mkdir d; for n in $(seq 40); do head -c 9000 /dev/urandom >d/f$n; done",
        ),
        ("balance", "btrfs -q balance start -m . >/dev/null"),
    ];
    let Some(cell) = Cell::record("btrfs -o noatime", &steps) else {
        return;
    };
    let recording = cell.recording();
    let explained = explain(&recording).unwrap();
    let rows = rows_of(&recording, &explained, "balance");
    for structure in [Structure::CsumTree, Structure::UuidTree] {
        assert_eq!(causes(&rows, structure).to_string(), "unchanged");
    }
}

/// A recording with randomly damaged metadata is still explained, byte for byte.
#[test]
fn damaged_metadata_is_explained_without_a_panic() {
    let Some(states) = States::make("space_cache=v2", &[]) else {
        return;
    };
    // A private generator, so that the damage is the same each time.
    let mut seed = 1u64;
    let mut random = move || {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        seed >> 33
    };
    for round in 0..12 {
        let recording = states.recording_with(&format!("damaged{round}"), |content| {
            // Only metadata is damaged; blocks and superblocks begin with a checksum and an id.
            for block in content.chunks_mut(4096) {
                for _ in 0..random() % 4 {
                    let at = match random() % 3 {
                        0 => 48 + random() as usize % 53,
                        1 => 101 + random() as usize % 400,
                        _ => random() as usize % block.len(),
                    };
                    block[at] = match random() % 3 {
                        0 => 0,
                        1 => 0xff,
                        _ => random() as u8,
                    };
                }
            }
        });
        assert_conserved(&recording, &explain(&recording).unwrap());
        fscost_explain::recovery(&recording, 0, &[]).unwrap();
    }
}
