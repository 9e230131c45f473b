//! Bytes of the log, item by item, against `xfs_logprint`.

use crate::recorded::Cell;
use crate::tools;
use fscost_analysis::classify::{Explained, NO_INODE, Row, Structure};
use fscost_recording::{Instant, Recording};
use std::collections::HashMap;

/// Every item of the log has as many bytes for us as for `xfs_logprint`: by inode, and by the place of the block or inode that it describes.
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
