//! ext2, ext3 and ext4 on stored recordings, intact and damaged. Tests that need root are in
//! `tests/analysis/ext`.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "common/conserved.rs"]
mod conserved;

use conserved::assert_conserved;
use fscost_explain::{Cause, Row, Structure, explain};
use fscost_recording::{Event, Mark, Op, Recording, Writer};
use proptest::prelude::*;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Lists recordings of 8 MiB disks on which files were created, changed, read (strictatime) and
/// removed. `tests/analysis/ext/corpus.py` made them.
fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ext");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().path());
    let mut found: Vec<_> = files
        .filter(|f| f.extension().is_some_and(|e| e == "fscost"))
        .collect();
    found.sort();
    assert!(found.len() >= 3);
    found
}

#[test]
fn nothing_is_unknown() {
    for path in recordings() {
        let recording = Recording::open(&path).unwrap();
        let explained = explain(&recording).unwrap();
        assert_conserved(&recording, &explained);
        let unknown = |row: &&Row| {
            row.structure == Structure::Unknown
                || row.home == Some(Structure::Unknown)
                || row.causes.has(Cause::Unknown)
        };
        let unknown: Vec<_> = explained.rows.iter().filter(unknown).collect();
        assert!(unknown.is_empty(), "{}: {unknown:#?}", path.display());
    }
}

/// Change of one write's content: number of the write (among those after formatting), offset, new
/// bytes.
type Change = (usize, usize, Vec<u8>);

/// Returns the recording with these changes and without its last `leave_out` events.
fn damaged(path: &Path, changes: &[Change], leave_out: usize, folder: &Path) -> Recording {
    let original = Recording::open(path).unwrap();
    let copy = folder.join("damaged.fscost");
    let mut writer = Writer::create(&copy, original.header()).unwrap();
    let total: usize = original
        .frames()
        .iter()
        .map(|f| f.event_count as usize)
        .sum();
    let (mut number, mut writes) = (0, 0);
    let by_write: BTreeMap<usize, &Change> = changes.iter().map(|c| (c.0, c)).collect();
    let walk = original.for_each_frame(true, |_, frame| {
        for event in &frame.events {
            number += 1;
            if number + leave_out > total {
                return Ok(false);
            }
            if event.op == Op::Mark {
                let Mark { name, detail } = frame.mark_of(event)?;
                writer.mark(&Mark { name, detail }, event.complete_ns)?;
                continue;
            }
            let content = frame.content_of(event);
            let space = writer.space();
            space[..content.len()].copy_from_slice(content);
            if event.op == Op::Write {
                writes += 1;
                if let Some((_, at, bytes)) = by_write.get(&writes) {
                    for (number, byte) in bytes.iter().enumerate() {
                        space[(at + number) % content.len()] = *byte;
                    }
                }
            }
            writer.append(Event {
                content_offset: 0,
                ..*event
            })?;
        }
        Ok(true)
    });
    walk.unwrap();
    writer.finish().unwrap();
    Recording::open(&copy).unwrap()
}

fn change() -> impl Strategy<Value = Change> {
    // Fields are at the beginning of blocks and structures; the numbers that break parsers are
    // small or large.
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..64),
        prop::collection::vec(prop::sample::select(vec![0u8, 1, 0xFF, 0x7F]), 1..64),
    ];
    let at = prop_oneof![0..64usize, 0..1024usize, 0..65536usize];
    (0..400usize, at, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_recording_is_explained_to_the_last_byte(
        which in 0..64usize,
        changes in prop::collection::vec(change(), 1..40),
        leave_out in prop_oneof![Just(0usize), 0..200usize],
    ) {
        let all = recordings();
        let folder = tempfile::tempdir().unwrap();
        let recording = damaged(&all[which % all.len()], &changes, leave_out, folder.path());
        assert_conserved(&recording, &explain(&recording).unwrap());
    }
}
