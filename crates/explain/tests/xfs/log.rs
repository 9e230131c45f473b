//! Bytes of the log, item by item, against `xfs_logprint`.

use crate::recorded::Cell;
use crate::tools;
use fscost_explain::{Explained, NO_INODE, Recovery, Row, Structure, recovery};
use fscost_recording::{Instant, Op, Recording};
use std::collections::HashMap;

/// Every item of the log has as many bytes for us as for `xfs_logprint`: by inode, and by the place
/// of the block or inode that it describes.
pub fn check(cell: &Cell, recording: &Recording, explained: &Explained) {
    let disks: Vec<_> = (0..recording.header().disks.len() as u16)
        .map(|disk| cell.image(recording, disk, &Instant::End))
        .collect();
    let theirs = tools::log_bytes(&disks[0], disks.get(1).map(|log| log.as_path()));
    let ours = || {
        let rows = explained.rows.iter();
        rows.filter(|r| r.structure == Structure::Log && r.home.is_some())
    };
    let all: u64 = theirs.items.values().sum();
    assert_eq!(ours().map(|r| r.length).sum::<u64>(), all);
    let inodes = sums(
        ours().filter(|r| r.home == Some(Structure::InodeChunk)),
        |r| Some(r.inode).filter(|&inode| inode != NO_INODE),
    );
    let places = sums(ours(), |r| r.home_offset);
    // They do not print the place of an item whose first region is split.
    let different = |ours: &HashMap<u64, u64>, theirs: &HashMap<u64, u64>| {
        let keys = ours.keys().chain(theirs.keys());
        let mut keys: Vec<_> = keys
            .filter(|key| ours.get(key) != theirs.get(key))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    };
    assert!(different(&inodes, &theirs.inodes) <= theirs.nameless);
    assert!(different(&places, &theirs.places()) <= theirs.nameless);
    assert!(theirs.inodes.len() > 50 && theirs.items.len() > theirs.inodes.len());
}

/// Asserts that the log which a mount would replay, after `count` of the writes that follow the
/// mark, is what `xfs_logprint` finds in the same images.
pub fn check_recovery(cell: &Cell, recording: &Recording, mark: &str, count: usize) {
    let mut times = Vec::new();
    let (mut is_on, mut dirty) = (false, 0);
    recording
        .for_each_frame(true, |_, frame| {
            for event in &frame.events {
                is_on |= event.op == Op::Mark && frame.mark_of(event)?.name == mark;
                if is_on && event.op == Op::Write {
                    times.push(event.complete_ns);
                }
            }
            Ok(true)
        })
        .unwrap();
    for at_ns in times.iter().step_by(times.len() / count).copied() {
        let instant = Instant::CompletedBy(at_ns);
        let disks: Vec<_> = (0..recording.header().disks.len() as u16)
            .map(|disk| cell.image(recording, disk, &instant))
            .collect();
        let theirs = tools::log_state(&disks[0], disks.get(1).map(|log| log.as_path()));
        let found = recovery(recording, at_ns, &[]).unwrap();
        let Some((0, Recovery::Xfs(ours))) = found.first() else {
            panic!("{found:?}");
        };
        let ours = tools::LogState {
            tail: ours.tail & 0xffff_ffff,
            head: ours.head & 0xffff_ffff,
            is_clean: ours.tail == ours.head,
            checkpoints: ours.checkpoints.len(),
            items: ours.checkpoints.iter().map(|c| c.items).sum(),
        };
        assert_eq!(ours, theirs, "at {at_ns}");
        dirty += usize::from(!ours.is_clean);
    }
    assert!(
        dirty > count / 2,
        "{dirty} of {count} instants had anything to replay"
    );
}

fn sums<'a>(
    rows: impl Iterator<Item = &'a Row>,
    key: impl Fn(&Row) -> Option<u64>,
) -> HashMap<u64, u64> {
    let mut sums = HashMap::new();
    for row in rows {
        if let Some(key) = key(row) {
            *sums.entry(key).or_default() += row.length;
        }
    }
    sums
}
