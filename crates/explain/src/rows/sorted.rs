//! Sorted rows that can be read repeatedly. Runs are sorted separately, and merged while they are
//! read.

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
    /// Last or only run, which needs no file.
    last: Vec<Row>,
    stored: Vec<StoredRun>,
    file: Option<File>,
}

#[derive(Debug, Clone, Copy)]
struct StoredRun {
    first: usize,
    count: usize,
}

impl SortedRows {
    pub(super) fn new(pages: Pages, run_rows: usize) -> Result<SortedRows> {
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
        RowIter::new(Arc::clone(&self.runs))
    }

    /// Returns every combination of causes that occurs, in order.
    pub fn cause_sets(&self) -> &[Causes] {
        &self.cause_sets
    }
}

fn sort(run: &mut Vec<Row>) {
    run.sort_by_key(|r| (r.event, r.offset));
    run.dedup_by(|row, before| before.absorb(row));
}

/// Iterator over [`SortedRows`]; it ends after an error.
#[derive(Debug)]
pub struct RowIter {
    runs: Arc<Runs>,
    cursors: Vec<Cursor>,
    /// Next row of each run, by its place in the order. Ties go to the row that was pushed first.
    heads: BinaryHeap<Reverse<(u64, u64, usize)>>,
    begun: bool,
    /// Row that the next row may still be merged into.
    held: Option<Row>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Cursor {
    /// Rows of a stored run that are still in the file.
    rest: StoredRun,
    rows: Vec<Row>,
    next: usize,
}

impl RowIter {
    fn new(runs: Arc<Runs>) -> RowIter {
        let cursors = runs.stored.iter().map(|&rest| Cursor {
            rest,
            rows: Vec::new(),
            next: 0,
        });
        RowIter {
            cursors: cursors.collect(),
            runs,
            heads: BinaryHeap::new(),
            begun: false,
            held: None,
            bytes: Vec::new(),
        }
    }

    fn begin(&mut self) -> Result<()> {
        self.begun = true;
        // The last run is read from memory, with a cursor that has nothing in the file.
        self.cursors.push(Cursor {
            rest: StoredRun { first: 0, count: 0 },
            rows: Vec::new(),
            next: 0,
        });
        for run in 0..self.cursors.len() {
            if let Some(row) = self.peek(run)? {
                self.heads.push(Reverse((row.event, row.offset, run)));
            }
        }
        Ok(())
    }

    /// Returns the next row of a run.
    fn peek(&mut self, run: usize) -> Result<Option<Row>> {
        let cursor = &mut self.cursors[run];
        if run == self.runs.stored.len() {
            return Ok(self.runs.last.get(cursor.next).copied());
        }
        if cursor.next == cursor.rows.len() && cursor.rest.count > 0 {
            let count = cursor.rest.count.min(READ_ROWS);
            cursor.rows.clear();
            cursor.next = 0;
            if let Some(file) = &self.runs.file {
                read(
                    file,
                    cursor.rest.first,
                    count,
                    &mut self.bytes,
                    &mut cursor.rows,
                )?;
            }
            cursor.rest.first += count;
            cursor.rest.count -= count;
        }
        Ok(cursor.rows.get(cursor.next).copied())
    }

    /// Removes and returns the next row of all runs, before neighbours are merged.
    fn pop(&mut self) -> Result<Option<Row>> {
        if !self.begun {
            self.begin()?;
        }
        let Some(&Reverse((_, _, run))) = self.heads.peek() else {
            return Ok(None);
        };
        let row = self.peek(run)?;
        self.cursors[run].next += 1;
        let following = self.peek(run)?;
        if let Some(mut head) = self.heads.peek_mut() {
            match following {
                Some(next) => *head = Reverse((next.event, next.offset, run)),
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
