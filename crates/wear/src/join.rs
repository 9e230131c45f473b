//! Requests joined with the rows that explain them, in one pass over both.

use crate::{By, DISCARDS, Group, OTHERS, UNEXPLAINED, check, groups::Groups, part_of};
use fscost_explain::{Row, RowIter, Table};
use fscost_recording::{Event, MarkReader, Op, Recording, Result};
use fscost_ssd::{Part, Workload};
use std::iter::Peekable;

/// The requested part of a recording.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// Index of the disk.
    pub disk: u16,
    /// Bytes of the unit that the device maps.
    pub unit_bytes: u32,
    /// Names of the intervals that form the workload. Requests of all others are its setup.
    pub measured: &'a [String],
}

/// Returns the workload, and the groups that its tags stand for. Without an explanation there are
/// no groups.
///
/// Writes of zeroes count as writes. Discards and hole punches count as trims: a loop device sends
/// the same request for a discard and for zeroes that may be unmapped, and a drive deallocates for
/// both. A write with FUA is followed by a flush, because the device must have programmed it.
pub fn of_recording(
    recording: &Recording,
    explained: Option<(&Table, By)>,
    wanted: &Wanted<'_>,
) -> Result<(Workload, Vec<Group>)> {
    let disk = recording.header().disks.get(usize::from(wanted.disk));
    let mut workload = Workload::new(wanted.unit_bytes, disk.map_or(0, |disk| disk.size_bytes));
    let groups = explained
        .map(|(table, by)| Groups::new(table, by))
        .transpose()?;
    let mut rows = groups.as_ref().map(|groups| groups.rows().peekable());
    let mut part = part_of("before", wanted.measured);
    let mut marks = MarkReader::default();
    let mut number = 0;
    let mut tags = Vec::new();
    let unexplained = if groups.is_some() {
        OTHERS
    } else {
        UNEXPLAINED
    };
    recording.for_each_frame(false, |_, frame| {
        for event in &frame.events {
            if event.op == Op::Mark {
                part = part_of(&marks.mark_of(frame, event)?.name, wanted.measured);
            } else if event.disk == wanted.disk {
                tags.clear();
                if let (Some(rows), Some(groups)) = (&mut rows, &groups) {
                    for_each_row(rows, number, |row| tags.push((row.length, groups.tag(row))))?;
                }
                add(&mut workload, part, event, &tags, unexplained);
            }
            number += 1;
        }
        check(workload.setup.len() + workload.cycle.len())?;
        Ok(true)
    })?;
    let groups = groups.map(|found| found.groups).unwrap_or_default();
    Ok((workload, groups))
}

/// Adds an event to the workload. `tags` describes the bytes of a write. A flush is charged to the
/// tag of the preceding step.
fn add(workload: &mut Workload, part: Part, event: &Event, tags: &[(u64, u16)], unexplained: u16) {
    match event.op {
        Op::Write | Op::WriteZeroes => {
            let explained: u64 = tags.iter().map(|(bytes, _)| bytes).sum();
            if explained == event.length {
                workload.write(part, event.offset, tags.iter().copied());
            } else {
                workload.write(part, event.offset, [(event.length, unexplained)]);
            }
            if event.fua {
                workload.flush(part, tags.last().map_or(unexplained, |&(_, tag)| tag));
            }
        }
        Op::Discard | Op::Punch => workload.trim(part, event.offset, event.length, DISCARDS),
        Op::Flush => {
            let before = match part {
                Part::Setup => workload.setup.last(),
                Part::Cycle => workload.cycle.last(),
            };
            let tag = before.map_or(unexplained, |step| step.tag);
            workload.flush(part, tag);
        }
        Op::Read | Op::Mark => {}
    }
}

/// Calls `each` with the rows of an event. Rows come in the order of events.
fn for_each_row(
    rows: &mut Peekable<RowIter>,
    number: u64,
    mut each: impl FnMut(&Row),
) -> Result<()> {
    let is_later = |row: &Result<Row>| row.as_ref().is_ok_and(|row| row.event > number);
    while let Some(row) = rows.next_if(|row| !is_later(row)) {
        let row = row?;
        if row.event == number {
            each(&row);
        }
    }
    Ok(())
}
