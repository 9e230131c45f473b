//! Sorted rows that can be read repeatedly. Rows that all fit in memory stay where they are, and
//! are read in the order of their numbers' sorted list. Others are sorted as separate runs, which
//! are merged while they are read.

use super::pages::{PAGE_ROWS, Pages, read, write};
use crate::{Causes, Row};
use fscost_recording::Result;
use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
    fs::File,
    sync::Arc,
};

/// Number of rows of one run in memory while runs are merged.
const READ_ROWS: usize = 512;

/// The rows of a recording in the order of events and offsets.
#[derive(Debug, Clone)]
pub struct SortedRows {
    runs: Arc<Runs>,
    cause_sets: Vec<Causes>,
}

#[derive(Debug, Default)]
struct Runs {
    /// Pages of all rows, if none is in the file, and the order of the rows' numbers.
    pages: Vec<Vec<Row>>,
    order: Vec<u32>,
    /// Last or only run, which needs no file.
    last: Vec<Row>,
    stored: Vec<StoredRun>,
    file: Option<File>,
}

#[derive(Debug, Clone, Copy)]
struct StoredRun {
    first: usize,
    count: usize,
    /// Event and offset of the first row.
    head: (u64, u64),
}

impl SortedRows {
    pub(super) fn new(mut pages: Pages, run_rows: usize) -> Result<SortedRows> {
        match pages.take_from_memory() {
            Some(pages) => Ok(SortedRows::of_memory(pages)),
            None => SortedRows::of_file(pages, run_rows),
        }
    }

    /// Finishes and sorts rows that are all in memory.
    fn of_memory(mut pages: Vec<Vec<Row>>) -> SortedRows {
        let (mut cause_sets, mut last) = (BTreeSet::new(), None);
        let mut keys = Vec::with_capacity(pages.len() * PAGE_ROWS);
        for row in pages.iter_mut().flatten() {
            if last.replace(row.causes) != Some(row.causes) {
                cause_sets.insert(row.causes);
            }
            *row = row.finished();
            let event = u32::try_from(row.event).unwrap_or(u32::MAX);
            keys.push((event, keys.len() as u32));
        }
        // Small keys, nearly sorted. Most events have few rows, side by side.
        keys.sort();
        for event in keys.chunk_by_mut(|one, next| one.0 == next.0) {
            event.sort_by_key(|&(_, number)| row_at(&pages, number).map(place));
        }
        SortedRows {
            runs: Arc::new(Runs {
                order: keys.into_iter().map(|(_, number)| number).collect(),
                pages,
                ..Runs::default()
            }),
            cause_sets: cause_sets.into_iter().collect(),
        }
    }

    /// Finishes and sorts rows of which some are in the file.
    fn of_file(pages: Pages, run_rows: usize) -> Result<SortedRows> {
        // Runs consist of whole pages. A sorted run is stored in the place of its rows as soon as
        // they have been read.
        let run_rows = run_rows.next_multiple_of(PAGE_ROWS);
        let total = pages.len();
        let mut runs = Runs::default();
        let mut cause_sets = BTreeSet::new();
        let (mut run, mut bytes) = (Vec::with_capacity(total.min(run_rows)), Vec::new());
        let mut taken = 0;
        let file = pages.drain(|rows, file| {
            cause_sets.extend(rows.iter().map(|r| r.causes));
            run.extend(rows.iter().map(Row::finished));
            taken += rows.len();
            if run.len() == run_rows && taken < total {
                let first = taken - run_rows;
                sort(&mut run);
                bytes.clear();
                for row in &run {
                    super::record::encode(row, &mut bytes);
                }
                write(file, first, &bytes)?;
                runs.stored.push(StoredRun {
                    first,
                    count: run.len(),
                    head: place(&run[0]),
                });
                run.clear();
            }
            Ok(())
        })?;
        sort(&mut run);
        runs.last = run;
        runs.file = file;
        Ok(SortedRows {
            runs: Arc::new(runs),
            cause_sets: cause_sets.into_iter().collect(),
        })
    }

    /// Returns an iterator over all rows, from the first.
    pub fn iter(&self) -> RowIter {
        let runs = Arc::clone(&self.runs);
        let stored = runs.stored.iter().map(|run| run.head);
        let heads = stored.chain(runs.last.first().map(place));
        let heads = heads.enumerate().map(|(run, head)| Reverse((head, run)));
        RowIter {
            heads: heads.collect(),
            cursors: (0..=runs.stored.len()).map(|_| Cursor::default()).collect(),
            runs,
            taken: 0,
            held: None,
            bytes: Vec::new(),
        }
    }

    /// Returns every combination of causes that occurs, in order.
    pub fn cause_sets(&self) -> &[Causes] {
        &self.cause_sets
    }
}

/// Returns the row with this number.
fn row_at(pages: &[Vec<Row>], number: u32) -> Option<&Row> {
    let (page, place) = (number as usize / PAGE_ROWS, number as usize % PAGE_ROWS);
    pages.get(page)?.get(place)
}

/// Returns the place of a row in the order of all rows.
fn place(row: &Row) -> (u64, u64) {
    (row.event, row.offset)
}

fn sort(run: &mut Vec<Row>) {
    run.sort_by_key(place);
    run.dedup_by(|row, before| before.absorb(row));
}

/// Iterator over [`SortedRows`]; it ends after an error.
#[derive(Debug)]
pub struct RowIter {
    runs: Arc<Runs>,
    /// Number of rows taken from memory.
    taken: usize,
    cursors: Vec<Cursor>,
    /// Next row of each run, by its place in the order. Ties go to the row that was pushed first.
    heads: BinaryHeap<Reverse<((u64, u64), usize)>>,
    /// Row that the next row may still be merged into.
    held: Option<Row>,
    bytes: Vec<u8>,
}

/// Position in a run. The last run is read from memory.
#[derive(Debug, Default)]
struct Cursor {
    rows: Vec<Row>,
    /// Number of rows that were read from the file.
    read: usize,
    next: usize,
}

impl RowIter {
    /// Returns the next row of a run.
    fn peek(&mut self, run: usize) -> Result<Option<Row>> {
        let cursor = &mut self.cursors[run];
        let Some(stored) = self.runs.stored.get(run) else {
            return Ok(self.runs.last.get(cursor.next).copied());
        };
        if cursor.next == cursor.rows.len() && cursor.read < stored.count {
            let (first, count) = (stored.first + cursor.read, stored.count - cursor.read);
            let count = count.min(READ_ROWS);
            cursor.rows.clear();
            cursor.next = 0;
            if let Some(file) = &self.runs.file {
                read(file, first, count, &mut self.bytes, &mut cursor.rows)?;
            }
            cursor.read += count;
        }
        Ok(cursor.rows.get(cursor.next).copied())
    }

    /// Removes and returns the next row of all runs, before neighbours are merged.
    fn pop(&mut self) -> Result<Option<Row>> {
        if let Some(&number) = self.runs.order.get(self.taken) {
            self.taken += 1;
            return Ok(row_at(&self.runs.pages, number).copied());
        }
        let Some(&Reverse((_, run))) = self.heads.peek() else {
            return Ok(None);
        };
        let row = self.peek(run)?;
        self.cursors[run].next += 1;
        let following = self.peek(run)?;
        if let Some(mut head) = self.heads.peek_mut() {
            match following {
                Some(next) => *head = Reverse((place(&next), run)),
                None => {
                    std::collections::binary_heap::PeekMut::pop(head);
                }
            }
        }
        Ok(row)
    }
}

impl Iterator for RowIter {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        loop {
            match self.pop() {
                Ok(Some(row)) => match &mut self.held {
                    Some(held) => {
                        if !held.absorb(&row) {
                            return Some(Ok(std::mem::replace(held, row)));
                        }
                    }
                    None => self.held = Some(row),
                },
                Ok(None) => return self.held.take().map(Ok),
                Err(error) => {
                    self.heads.clear();
                    self.held = None;
                    return Some(Err(error));
                }
            }
        }
    }
}
