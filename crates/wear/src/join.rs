//! Requests joined with the rows that explain them, in one pass over both.

use crate::{By, DISCARDS, Group, Groups, OTHERS};
use fscost_explain::{Row, RowIter, Table};
use fscost_recording::{Event, MarkReader, Op, Recording, Result};
use fscost_ssd::{Part, Workload};

/// Tag of a recording that is not explained.
const ONLY: u16 = 0;

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
    let mut rows = groups.as_ref().map(|groups| Rows::new(groups.rows()));
    let is_measured = |name: &str| wanted.measured.iter().any(|each| each == name);
    let mut part = part(is_measured("before"));
    let mut marks = MarkReader::default();
    let mut number = 0;
    let mut tags = Vec::new();
    let unexplained = if groups.is_some() { OTHERS } else { ONLY };
    recording.for_each_frame(false, |_, frame| {
        for event in &frame.events {
            if event.op == Op::Mark {
                part = self::part(is_measured(&marks.mark_of(frame, event)?.name));
            } else if event.disk == wanted.disk {
                tags.clear();
                if let (Some(rows), Some(groups)) = (&mut rows, &groups) {
                    rows.of_event(number, |row| tags.push((row.length, groups.tag(row))))?;
                }
                add(&mut workload, part, event, &tags, unexplained);
            }
            number += 1;
        }
        Ok(true)
    })?;
    Ok((
        workload,
        groups.map(Groups::into_groups).unwrap_or_default(),
    ))
}

fn part(is_measured: bool) -> Part {
    if is_measured {
        Part::Cycle
    } else {
        Part::Setup
    }
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

/// Rows in order of events, returned event by event.
struct Rows {
    rest: RowIter,
    held: Option<Row>,
}

impl Rows {
    fn new(rest: RowIter) -> Rows {
        Rows { rest, held: None }
    }

    fn of_event(&mut self, number: u64, mut each: impl FnMut(&Row)) -> Result<()> {
        loop {
            let row = match self.held.take() {
                Some(row) => row,
                None => match self.rest.next() {
                    Some(row) => row?,
                    None => return Ok(()),
                },
            };
            if row.event > number {
                self.held = Some(row);
                return Ok(());
            }
            if row.event == number {
                each(&row);
            }
        }
    }
}
