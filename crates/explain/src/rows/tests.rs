use super::*;
use crate::{Cause, Causes, NO_INODE, PathId, Shift, Structure};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet};

const SMALL: Limits = Limits {
    kept_rows: 2 * pages::PAGE_ROWS,
    // Longer than the part of a run that a reader has in memory.
    run_rows: 4 * pages::PAGE_ROWS,
};

fn row(event: u64, offset: u64) -> Row {
    Row {
        event,
        disk: (event % 3) as u16,
        offset,
        length: 4096,
        structure: Structure::ALL[event as usize % Structure::ALL.len()],
        home: event.is_multiple_of(5).then_some(Structure::Unknown),
        home_offset: event.is_multiple_of(5).then_some(offset + 1),
        causes: Causes::one(Cause::ALL[event as usize % Cause::ALL.len()]),
        inode: NO_INODE,
        tree: event % 2,
        path: event
            .is_multiple_of(7)
            .then(|| PathId::from_index(event as u32)),
        shift: event
            .is_multiple_of(3)
            .then(|| Shift::between(offset, 8192)),
        transaction: event.is_multiple_of(11).then_some(u64::MAX - event),
        copy: (event % 4) as u8,
        is_doubtful: event.is_multiple_of(13),
    }
}

/// Reference model: all rows in memory, sorted at the end.
fn model(mut rows: Vec<Row>) -> Vec<Row> {
    rows.iter_mut().for_each(|row| *row = row.finished());
    rows.sort_by_key(|r| (r.event, r.offset));
    rows.dedup_by(|row, before| before.absorb(row));
    rows
}

fn read(sorted: &SortedRows) -> Vec<Row> {
    sorted.iter().collect::<Result<_>>().unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    Push { event: u64, block: u64 },
    Complete { number: usize, inode: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let push = (0..40u64, 0..64u64).prop_map(|(event, block)| Step::Push { event, block });
    let complete =
        (any::<usize>(), 0..3u64).prop_map(|(number, inode)| Step::Complete { number, inode });
    prop::collection::vec(prop_oneof![4 => push, 1 => complete], 0..5000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn rows_that_went_through_the_file_are_those_that_stayed_in_memory(steps in steps()) {
        let mut rows = Rows::with_limits(SMALL);
        let (mut all, mut written) = (Vec::new(), HashSet::new());
        for step in steps {
            match step {
                Step::Push { event, block } => {
                    // Events come nearly in order, as from a recording.
                    let event = all.len() as u64 / 16 + event;
                    // Rows of one write do not overlap.
                    if written.insert((event, block)) {
                        prop_assert_eq!(rows.push(row(event, block * 4096)), all.len());
                        all.push(row(event, block * 4096));
                    }
                }
                Step::Complete { number, inode } if !all.is_empty() => {
                    let number = number % all.len();
                    all[number].inode = inode;
                    rows.get_mut(number).unwrap().inode = inode;
                }
                Step::Complete { .. } => {}
            }
        }
        let (sorted, _) = rows.into_sorted().unwrap();
        let cause_sets: BTreeSet<_> = all.iter().map(|r| r.causes).collect();
        prop_assert!(sorted.cause_sets().iter().eq(&cause_sets));
        let expected = model(all);
        prop_assert_eq!(&read(&sorted), &expected);
        // Each reader begins at the first row, whatever others have read.
        let mut first = sorted.iter();
        first.next();
        prop_assert_eq!(&read(&sorted), &expected);
        prop_assert_eq!(first.count(), expected.len().saturating_sub(1));
    }
}

#[test]
fn what_is_beyond_the_limit_is_in_the_file() {
    let mut rows = Rows::with_limits(SMALL);
    let mut all: Vec<_> = (0..10_000).map(|event| row(event, 0)).collect();
    for row in &all {
        rows.push(*row);
    }
    // These rows are completed after they were moved to the file, and each goes back there for the
    // next.
    for number in (0..9_000).step_by(999) {
        assert!(rows.pages.is_in_file(number / pages::PAGE_ROWS));
        rows.get_mut(number).unwrap().length = 512;
        all[number].length = 512;
    }
    let (sorted, _) = rows.into_sorted().unwrap();
    assert_eq!(read(&sorted), model(all));
}

#[test]
fn without_space_for_the_file_there_is_an_error_that_names_the_folder() {
    let mut rows = Rows::with_limits(SMALL);
    // Every write to this file fails as on a full disk.
    rows.pages.use_file(
        std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/full")
            .unwrap(),
    );
    for event in 0..10_000 {
        rows.push(row(event, 0));
    }
    assert!(rows.get_mut(0).is_none());
    let error = rows.check().unwrap_err();
    assert_eq!(error.kind, fscost_recording::ErrorKind::HostDiskFull);
    let folder = std::env::temp_dir();
    assert!(error.context.contains(folder.to_str().unwrap()), "{error}");
}
