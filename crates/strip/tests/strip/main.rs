//! Tests that strip removes private data and keeps everything else.

#![allow(clippy::unwrap_used, missing_docs)]

mod same;

use fscost_recording::{End, Op, Output, Recording, Stripped, verify};
use fscost_strip::{Names, strip};
use proptest::prelude::*;
use same::assert_same_explanation;
use std::path::{Path, PathBuf};

const KEY: [u8; 32] = [42; 32];

/// Recordings of ext; those of xfs and btrfs are the fuzzer's seeds.
fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../explain/tests/data/ext")
}

fn corpus() -> Vec<PathBuf> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let families = [data(), seeds.join("xfs"), seeds.join("btrfs")];
    let files = families.map(|family| std::fs::read_dir(family).unwrap());
    let mut found: Vec<_> = files
        .into_iter()
        .flatten()
        .map(|file| file.unwrap().path())
        .collect();
    found.retain(|path| path.extension().is_some_and(|e| e == "fscost"));
    found.sort();
    assert!(found.len() >= 14, "{found:?}");
    found
}

fn stripped(source: &Path, folder: &Path, names: Names) -> Recording {
    let out = folder.join(format!("{names:?}"));
    strip(
        &Recording::open(source).unwrap(),
        Output::create(&out).unwrap(),
        names,
        &KEY,
    )
    .unwrap();
    Recording::open(&out).unwrap()
}

#[test]
fn the_explanation_stays() {
    for path in corpus() {
        println!("{}", path.display());
        let folder = tempfile::tempdir().unwrap();
        for names in [Names::Replace, Names::Extensions, Names::Keep] {
            let original = Recording::open(&path).unwrap();
            let stripped = stripped(&path, folder.path(), names);
            assert_same_explanation(&original, &stripped);
            assert!(verify(&stripped).unwrap().is_whole());
        }
    }
}

#[test]
fn requests_marks_and_zeros_stay_and_the_header_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for path in corpus() {
        let original = Recording::open(&path).unwrap();
        let stripped = stripped(&path, folder.path(), Names::Replace);
        assert_eq!(stripped.header().stripped, Stripped::NamesReplaced);
        let read = |recording: &Recording| {
            let mut events = Vec::new();
            let each = |_, frame: &fscost_recording::Frame| {
                for event in &frame.events {
                    let content = frame.content_of(event).to_vec();
                    events.push((*event, content));
                }
                Ok(true)
            };
            recording.for_each_frame(true, each).unwrap();
            events
        };
        let (before, after) = (read(&original), read(&stripped));
        assert_eq!(before.len(), after.len());
        for ((old, old_content), (new, new_content)) in before.iter().zip(&after) {
            if old.op == Op::Mark {
                assert_eq!(old_content, new_content);
            }
            let place = |e: &fscost_recording::Event| {
                (e.op, e.offset, e.length, e.submit_ns, e.complete_ns, e.fua)
            };
            assert_eq!(place(old), place(new));
            let is_zero = |sector: &[u8]| sector.iter().all(|&byte| byte == 0);
            for (old, new) in old_content.chunks(512).zip(new_content.chunks(512)) {
                assert!(is_zero(old) || !is_zero(new));
                // Free space of large tree blocks becomes one digest, if not all of it is zero.
                assert!(!is_zero(old) || is_zero(new) || !path.starts_with(data()));
            }
        }
        std::fs::remove_file(stripped.path()).unwrap();
    }
}

/// Names and a mount path of the corpus (`tests/analysis/ext/corpus.py`), in all content, journals
/// included.
#[test]
fn no_name_of_the_original_is_left() {
    let names = ["file-with-a-name-of-some-length", "/media/fs"];
    let found = |recording: &Recording| {
        let mut found = [0; 2];
        let each = |_, frame: &fscost_recording::Frame| {
            for (count, name) in found.iter_mut().zip(names) {
                let places = frame.content.windows(name.len());
                *count += places.filter(|place| *place == name.as_bytes()).count();
            }
            Ok(true)
        };
        recording.for_each_frame(true, each).unwrap();
        found
    };
    for path in corpus() {
        let folder = tempfile::tempdir().unwrap();
        let before = found(&Recording::open(&path).unwrap());
        assert!(before[0] > 0 && (before[1] > 0 || !path.starts_with(data())));
        let stripped = stripped(&path, folder.path(), Names::Replace);
        assert_eq!(found(&stripped), [0; 2], "{}", path.display());
    }
}

#[test]
fn a_cut_recording_becomes_a_cut_one() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(&corpus()[0]).unwrap();
    for cut in [64, bytes.len() / 2] {
        let source = folder.path().join("cut");
        std::fs::write(&source, &bytes[..bytes.len() - cut]).unwrap();
        let stripped = stripped(&source, folder.path(), Names::Replace);
        assert!(matches!(stripped.end(), End::Cut { .. }));
        assert_same_explanation(&Recording::open(&source).unwrap(), &stripped);
        std::fs::remove_file(stripped.path()).unwrap();
    }
}

#[test]
fn what_cannot_be_stripped_whole_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/others");
    for family in ["f2fs", "nilfs2", "exfat"] {
        let source = Recording::open(&seeds.join(format!("{family}.fscost"))).unwrap();
        let out = Output::create(&folder.path().join(family)).unwrap();
        let why = strip(&source, out, Names::Keep, &KEY)
            .unwrap_err()
            .to_string();
        assert!(why.contains(family), "{why}");
    }
}

/// The recording with bytes of writes changed, as it would be of a damaged or hostile file system.
fn mutated(source: &Path, out: &Path, changes: &[(usize, u8)]) {
    let source = Recording::open(source).unwrap();
    let mut writer = fscost_recording::Writer::create(out, source.header()).unwrap();
    let mut at = 0;
    let copy = |_, frame: &fscost_recording::Frame| {
        for event in &frame.events {
            let content = frame.content_of(event);
            if event.op == Op::Mark {
                writer.mark(&frame.mark_of(event)?, event.complete_ns)?;
                continue;
            }
            let space = &mut writer.space()[..content.len()];
            space.copy_from_slice(content);
            for &(place, value) in changes {
                if let Some(byte) = place
                    .checked_sub(at)
                    .and_then(|within| space.get_mut(within))
                {
                    *byte ^= value;
                }
            }
            at += content.len();
            writer.append(*event)?;
        }
        Ok(true)
    };
    source.for_each_frame(true, copy).unwrap();
    writer.finish().unwrap();
}

fn content_bytes(path: &Path) -> usize {
    let frames = Recording::open(path).unwrap();
    frames
        .frames()
        .iter()
        .map(|f| f.content_bytes as usize)
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_recorded_can_be_stripped(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 1..40),
    ) {
        let corpus = corpus();
        let source = which.get(&corpus);
        let folder = tempfile::tempdir().unwrap();
        let (changed, total) = (folder.path().join("changed"), content_bytes(source));
        let changes: Vec<_> = changes.iter().map(|(place, value)| (place.index(total), *value)).collect();
        mutated(source, &changed, &changes);
        let stripped = stripped(&changed, folder.path(), Names::Replace);
        prop_assert_eq!(content_bytes(stripped.path()), total);
        prop_assert!(verify(&stripped).unwrap().is_whole());
    }
}
