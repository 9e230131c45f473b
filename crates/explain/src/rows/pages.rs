//! Rows by number. Rows in use are in memory, the others in a temporary file without a name.

use super::record::{RECORD_BYTES, decode, encode};
use crate::Row;
use fscost_recording::{Error, Result};
use std::{env, fs::File, io, os::unix::fs::FileExt as _, path::Path};

/// Number of rows that move to the file and back together. Families complete rows near each other;
/// a journal's checkpoint may complete any row.
pub(super) const PAGE_ROWS: usize = 256;
/// Value in `places` of a page that is only in the file.
const IN_FILE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Pages {
    count: usize,
    /// Slot of each page, or `IN_FILE`.
    places: Vec<u32>,
    slots: Vec<Slot>,
    max_slots: usize,
    /// Position of the clock hand that searches for a slot to evict.
    hand: usize,
    file: Option<File>,
    bytes: Vec<u8>,
    failed: Option<Error>,
}

#[derive(Debug, Default)]
struct Slot {
    page: usize,
    rows: Vec<Row>,
    /// True if the page was used since the hand last passed.
    used: bool,
    /// True if the page was modified since it was last written to the file.
    changed: bool,
}

impl Pages {
    /// Creates pages that keep at most `max_rows` rows in memory (but at least two pages).
    pub fn new(max_rows: usize) -> Pages {
        Pages {
            max_slots: (max_rows / PAGE_ROWS).max(2),
            ..Pages::default()
        }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn push(&mut self, row: Row) -> usize {
        let number = self.count;
        self.count += 1;
        if self.failed.is_none()
            && let Err(error) = self.add(number / PAGE_ROWS, row)
        {
            self.failed = Some(error);
        }
        number
    }

    pub fn get_mut(&mut self, number: usize) -> Option<&mut Row> {
        if number >= self.count || self.failed.is_some() {
            return None;
        }
        match self.slot_of(number / PAGE_ROWS) {
            Ok(slot) => {
                let slot = &mut self.slots[slot];
                slot.used = true;
                slot.changed = true;
                slot.rows.get_mut(number % PAGE_ROWS)
            }
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }

    /// Returns the first failure, if there was one.
    pub fn check(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Takes all rows out, as pages, if none was moved to the file.
    pub fn take_from_memory(&mut self) -> Option<Vec<Vec<Row>>> {
        if self.file.is_some() || self.failed.is_some() || self.places.contains(&IN_FILE) {
            return None;
        }
        let places = std::mem::take(&mut self.places).into_iter();
        let rows = places.map(|slot| std::mem::take(&mut self.slots[slot as usize].rows));
        Some(rows.collect())
    }

    /// Takes all rows out, page by page in the order of their numbers, and passes each page's rows
    /// to `visit`.
    pub fn drain(
        mut self,
        mut visit: impl FnMut(&[Row], &mut Option<File>) -> Result<()>,
    ) -> Result<Option<File>> {
        self.check()?;
        let mut rows = Vec::new();
        for page in 0..self.places.len() {
            match self.places[page] {
                IN_FILE => self.load(page, &mut rows)?,
                slot => rows = std::mem::take(&mut self.slots[slot as usize].rows),
            }
            visit(&rows, &mut self.file)?;
        }
        Ok(self.file)
    }

    fn add(&mut self, page: usize, row: Row) -> Result<()> {
        if page == self.places.len() {
            let slot = self.free_slot()?;
            self.take_slot(slot, page);
            self.places.push(slot as u32);
        }
        let slot = self.slot_of(page)?;
        let slot = &mut self.slots[slot];
        slot.used = true;
        slot.changed = true;
        slot.rows.push(row);
        Ok(())
    }

    fn take_slot(&mut self, slot: usize, page: usize) {
        let slot = &mut self.slots[slot];
        slot.page = page;
        slot.rows.clear();
        slot.changed = false;
    }

    fn slot_of(&mut self, page: usize) -> Result<usize> {
        if self.places[page] != IN_FILE {
            return Ok(self.places[page] as usize);
        }
        let slot = self.free_slot()?;
        let mut rows = std::mem::take(&mut self.slots[slot].rows);
        self.load(page, &mut rows)?;
        self.take_slot(slot, page);
        self.slots[slot].rows = rows;
        self.places[page] = slot as u32;
        Ok(slot)
    }

    /// Returns a slot whose page, if it had one, is in the file.
    fn free_slot(&mut self) -> Result<usize> {
        if self.slots.len() < self.max_slots {
            self.slots.push(Slot {
                rows: Vec::with_capacity(PAGE_ROWS),
                ..Slot::default()
            });
            return Ok(self.slots.len() - 1);
        }
        loop {
            self.hand = (self.hand + 1) % self.slots.len();
            let slot = &mut self.slots[self.hand];
            // The page that is being filled stays in memory.
            if !std::mem::take(&mut slot.used) && slot.rows.len() == PAGE_ROWS {
                break;
            }
        }
        if self.slots[self.hand].changed {
            self.store(self.hand)?;
        }
        self.places[self.slots[self.hand].page] = IN_FILE;
        Ok(self.hand)
    }

    fn store(&mut self, slot: usize) -> Result<()> {
        let slot = &self.slots[slot];
        self.bytes.clear();
        for row in &slot.rows {
            encode(row, &mut self.bytes);
        }
        write(&mut self.file, slot.page * PAGE_ROWS, &self.bytes)
    }

    fn load(&mut self, page: usize, rows: &mut Vec<Row>) -> Result<()> {
        rows.clear();
        let first = page * PAGE_ROWS;
        let count = (self.count - first).min(PAGE_ROWS);
        let Some(file) = &self.file else {
            return Ok(());
        };
        read(file, first, count, &mut self.bytes, rows)
    }

    #[cfg(test)]
    pub fn is_in_file(&self, page: usize) -> bool {
        self.places[page] == IN_FILE
    }

    #[cfg(test)]
    pub fn use_file(&mut self, file: File) {
        self.file = Some(file);
    }

    #[cfg(test)]
    pub fn to_vec(&self) -> Vec<Row> {
        let rows = |&slot: &u32| self.slots[slot as usize].rows.clone();
        assert!(self.file.is_none(), "rows are in the file");
        self.places.iter().flat_map(rows).collect()
    }
}

/// Creates the temporary file, in /var/tmp unless the user sets `TMPDIR`. On many systems /tmp is
/// in memory, and a recording of 50 GB would fill it (file-hierarchy(7)).
fn unnamed_file() -> io::Result<File> {
    let large = Path::new("/var/tmp");
    if env::var_os("TMPDIR").is_none() && large.is_dir() {
        return tempfile::tempfile_in(large);
    }
    tempfile::tempfile()
}

/// Writes records as rows `first…`, and creates the file when it is first needed.
pub(super) fn write(file: &mut Option<File>, first: usize, bytes: &[u8]) -> Result<()> {
    let failed = |e| failed("writing", e);
    let file = match file {
        Some(file) => file,
        None => file.insert(unnamed_file().map_err(failed)?),
    };
    file.write_all_at(bytes, (first * RECORD_BYTES) as u64)
        .map_err(failed)
}

/// Appends rows `first…first + count` to `rows`.
pub(super) fn read(
    file: &File,
    first: usize,
    count: usize,
    bytes: &mut Vec<u8>,
    rows: &mut Vec<Row>,
) -> Result<()> {
    bytes.resize(count * RECORD_BYTES, 0);
    file.read_exact_at(bytes, (first * RECORD_BYTES) as u64)
        .map_err(|e| failed("reading", e))?;
    decode(bytes, rows).ok_or_else(|| {
        let changed = io::Error::new(io::ErrorKind::InvalidData, "it was changed");
        failed("reading", changed)
    })
}

fn failed(doing: &str, error: io::Error) -> Error {
    let doing = format!("{doing} rows in a temporary file in");
    Error::io(&doing, &std::env::temp_dir(), error)
}
