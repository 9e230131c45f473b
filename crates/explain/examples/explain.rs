//! Prints a summary of a recording's bytes: totals by disk, structure, home and causes, then the
//! largest unknown rows. `explain RECORDING [--rows]`.

#![allow(clippy::unwrap_used, missing_docs)]

use fscost_explain::{Cause, Row, explain};
use fscost_recording::{Op, Recording};
use std::collections::BTreeMap;

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let begin = std::time::Instant::now();
    let recording = Recording::open(path.as_ref()).unwrap();
    let explained = explain(&recording).unwrap();
    let seconds = begin.elapsed().as_secs_f64();
    let total: u64 = explained.rows.iter().map(|r| r.length).sum();
    println!(
        "{:?}: {total} bytes, {} rows, {seconds:.2} s",
        explained.families,
        explained.rows.len()
    );
    let mut sums: BTreeMap<_, u64> = BTreeMap::new();
    for row in &explained.rows {
        let owned = if row.path.is_some() {
            "path"
        } else if row.inode != 0 {
            "inode"
        } else {
            ""
        };
        let home = row.home.map_or("", |h| h.name());
        *sums
            .entry((
                row.disk,
                row.structure.name(),
                home,
                row.causes.to_string(),
                row.copy,
                owned,
            ))
            .or_default() += row.length;
    }
    for ((disk, structure, home, causes, copy, owned), bytes) in sums {
        println!("{disk} {structure:20} {home:16} {causes:50} {copy} {owned:6} {bytes:12}");
    }
    by_mark(&recording, &explained.rows);
    let mut unknown: Vec<_> = explained
        .rows
        .iter()
        .filter(|r| r.causes.has(Cause::Unknown))
        .collect();
    println!(
        "unknown: {} bytes",
        unknown.iter().map(|r| r.length).sum::<u64>()
    );
    unknown.sort_by_key(|r| std::cmp::Reverse(r.length));
    for row in unknown.iter().take(20) {
        println!("{row:?}");
    }
    if std::env::args().nth(2).is_some() {
        for row in &explained.rows {
            let path = row.path.map_or("", |p| explained.paths.text(p));
            println!(
                "{} {} {} {} {} {} {} {} {:?} {path}",
                row.event,
                row.disk,
                row.offset,
                row.length,
                row.structure.name(),
                row.causes,
                row.tree,
                row.inode,
                row.transaction
            );
        }
    }
}

/// Bytes between marks: all, those with access times alone, those with access times among others.
fn by_mark(recording: &Recording, rows: &[Row]) {
    let mut marks = vec![(0, "before".to_owned())];
    let mut number = 0;
    recording
        .for_each_frame(true, |_, frame| {
            for event in &frame.events {
                if event.op == Op::Mark {
                    marks.push((number, frame.mark_of(event)?.name));
                }
                number += 1;
            }
            Ok(true)
        })
        .unwrap();
    marks.push((u64::MAX, String::new()));
    for pair in marks.windows(2) {
        let within = || {
            rows.iter()
                .filter(|r| (pair[0].0..pair[1].0).contains(&r.event))
        };
        let all: u64 = within().map(|r| r.length).sum();
        let alone: u64 = within()
            .filter(|r| r.causes.only() == Some(Cause::Atime))
            .map(|r| r.length)
            .sum();
        let among: u64 = within()
            .filter(|r| r.causes.has(Cause::Atime))
            .map(|r| r.length)
            .sum();
        println!(
            "{:30} {all:12} atime {alone:12} among {among:12}",
            pair[0].1
        );
    }
}
