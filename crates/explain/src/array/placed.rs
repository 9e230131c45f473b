//! Origin of each part of an array's writes: rows of the array become rows of its members.

use crate::{Cause, Causes, Row, Shift, Structure};

/// A part of a request to a member.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// The request's event.
    pub event: u64,
    pub disk: u16,
    /// Byte offset on the member.
    pub offset: u64,
    /// Number of the copy of the array's data.
    pub copy: u8,
}

impl Source {
    /// Returns the source `within` bytes further on.
    pub fn at(self, within: u64) -> Source {
        Source {
            offset: self.offset + within,
            ..self
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Part {
    /// Event of the array's write.
    write: u64,
    array_offset: u64,
    length: u64,
    source: Source,
    /// Part that was written first, of which this part is a copy.
    first: Option<u32>,
    /// Number of copies that were written.
    copies: u8,
    /// True if the array already had this content there.
    is_same: bool,
    is_rebuilt: bool,
}

impl Part {
    fn end(&self) -> u64 {
        self.array_offset + self.length
    }
}

/// All parts of one array's writes.
#[derive(Debug)]
pub struct Placed {
    /// Number of the array as a disk.
    disk: u16,
    /// Number of copies of everything that the array stores.
    copies: u8,
    parts: Vec<Part>,
}

impl Placed {
    /// Creates the state before the first write to the array.
    pub fn new(disk: u16, copies: usize) -> Placed {
        Placed {
            disk,
            copies: copies.try_into().unwrap_or(u8::MAX),
            parts: Vec::new(),
        }
    }

    /// Adds a part that no other member has received yet. `is_same`: the array already had this
    /// content there; `is_rebuilt`: the member is being rebuilt.
    pub fn first(
        &mut self,
        (start, end): (u64, u64),
        source: Source,
        is_same: bool,
        is_rebuilt: bool,
    ) -> usize {
        self.parts.push(Part {
            write: source.event,
            array_offset: start,
            length: end - start,
            source,
            first: None,
            copies: 1,
            is_same,
            is_rebuilt,
        });
        self.parts.len() - 1
    }

    /// Adds a copy of a part, or of a range of it.
    pub fn copy(&mut self, first: usize, (start, end): (u64, u64), source: Source) {
        let Some(part) = self.parts.get_mut(first) else {
            return;
        };
        part.copies = part.copies.saturating_add(1);
        let copy = Part {
            array_offset: start,
            length: end - start,
            source,
            first: u32::try_from(first).ok(),
            ..*part
        };
        self.parts.push(copy);
    }

    /// Assigns the part to the array's write with this event.
    pub fn set_write(&mut self, part: usize, write: u64) {
        if let Some(part) = self.parts.get_mut(part) {
            part.write = write;
        }
    }

    /// Completes the parts.
    pub fn finish(mut self) -> Placed {
        for number in 0..self.parts.len() {
            if let Some(first) = self.parts[number].first {
                self.parts[number].write = self.parts[first as usize].write;
            }
        }
        self.parts
            .sort_by_key(|part| (part.source.copy, part.write, part.array_offset));
        self
    }

    /// Calls `push` with each member's row that corresponds to this row of the array. Returns `false` if
    /// the row is not of this array.
    pub fn translate(&self, row: &Row, mut push: impl FnMut(Row)) -> bool {
        if row.disk != self.disk {
            return false;
        }
        let end = row.offset.saturating_add(row.length);
        for copy in 0..self.copies {
            let from = self.parts.partition_point(|part| {
                (part.source.copy, part.write, part.end()) <= (copy, row.event, row.offset)
            });
            let parts = self.parts[from..].iter().take_while(|part| {
                (part.source.copy, part.write) == (copy, row.event) && part.array_offset < end
            });
            for part in parts {
                push(self.row(row, part));
            }
        }
        true
    }

    fn row(&self, row: &Row, part: &Part) -> Row {
        let start = row.offset.max(part.array_offset);
        let end = row.offset.saturating_add(row.length).min(part.end());
        let offset = part.source.offset + (start - part.array_offset);
        let moved = |shift: Shift| Shift::between(offset, shift.file_offset(start));
        let found = Row {
            event: part.source.event,
            disk: part.source.disk,
            offset,
            shift: row.shift.map(moved),
            length: end - start,
            home_offset: row
                .home_offset
                .map(|home| home.saturating_add(start - row.offset)),
            copy: row
                .copy
                .saturating_mul(self.copies)
                .saturating_add(part.source.copy),
            ..*row
        };
        // The same bytes are written again on one member alone: md makes the members agree.
        let is_alone = part.first.is_none() && part.copies < self.copies;
        if !part.is_same || !(is_alone || part.is_rebuilt) {
            return found;
        }
        Row {
            event: found.event,
            disk: found.disk,
            offset: found.offset,
            length: found.length,
            structure: Structure::MdResync,
            causes: Causes::one(Cause::Unchanged),
            copy: found.copy,
            ..Row::default()
        }
    }
}
