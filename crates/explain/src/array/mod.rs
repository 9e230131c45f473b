//! md arrays below a file system. Writes to the members are reassembled into the writes that the
//! file system made to the array.
//!
//! md splits requests into chunks, and in RAID 4, 5 and 6 into pages. A family needs whole
//! requests, for example a btrfs node or an XFS log record. Parts that are adjacent in the array
//! and were in flight at about the same time therefore become one write again. [`Placed`] records
//! the origin of each part, so that the family's rows finally become rows of the members.

mod held;
mod placed;
mod shape;

pub use placed::Placed;
pub use shape::Shape;

use crate::{Cause, Causes, Disks, Family, Rows, Structure, Write, track::runs::Runs};
use fscost_raid::{Area, Superblock};
use fscost_recording::{Event, Result};
use held::Held;
use placed::Source;
use shape::Kind;

/// Maximum number of parts of a request: it is shorter than 4 GiB (`__data_len` in
/// include/linux/blk-mq.h), and mdadm makes no chunks below 4 KiB. A damaged recording may have
/// requests and arrays with billions of parts.
const MOST_PARTS: usize = 1 << 20;

/// One array, followed through a recording.
pub struct Array {
    pub shape: Shape,
    held: Held,
    placed: Placed,
    /// Writes that reached some mirrors and wait for the others.
    open: Runs<Open>,
    /// True for each member that md is rebuilding, by role.
    rebuilding: Vec<bool>,
}

/// A part that not all mirrors have yet.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Number of the part in [`Placed`].
    part: usize,
    /// One bit for each copy that was written.
    copies: u64,
    /// True if the array already had this content there. md may then have made its members agree,
    /// and no other copy follows.
    is_same: bool,
}

/// The file system on an array, and the destination of its rows.
pub struct Above<'s, 'd> {
    pub family: Option<&'s mut Box<dyn Family>>,
    pub disks: &'s mut Disks<'d>,
    pub rows: &'s mut Rows,
}

/// A part of a request to a member that is data of the array.
struct Data<'a> {
    /// Part as a write to the member.
    write: Write<'a>,
    array_offset: u64,
    source: Source,
    /// Request that contains the part; `frame` is the frame that holds the request.
    event: &'a Event,
    frame: u32,
}

impl Array {
    /// Creates an array without content.
    pub fn new(shape: Shape) -> Array {
        Array {
            rebuilding: vec![false; shape.members.len()],
            held: Held::default(),
            placed: Placed::new(shape.disk, shape.map.copies()),
            open: Runs::default(),
            shape,
        }
    }

    /// Returns whether this recorded disk is a member.
    pub fn has(&self, disk: u16) -> bool {
        self.shape.member(disk).is_some()
    }

    /// Returns the parts of the array that the event's range on a member holds: offset in the
    /// array, and length.
    pub fn data(&self, event: &Event) -> impl Iterator<Item = (u64, u64)> {
        let member = self.shape.member(event.disk).unwrap_or(usize::MAX);
        let parts = self.shape.parts(member, event.offset, event.length);
        parts.filter_map(|part| match part.kind {
            Kind::Data { array_offset, .. } => Some((array_offset, part.length)),
            _ => None,
        })
    }

    /// Returns whether the event has more parts than any request. Such zeroes are unknown, and such
    /// a discard is passed over.
    pub fn is_too_fine(&self, event: &Event) -> bool {
        let member = self.shape.member(event.disk).unwrap_or(usize::MAX);
        let mut parts = self.shape.parts(member, event.offset, event.length);
        parts.nth(MOST_PARTS).is_some()
    }

    /// Handles a write or write-zeroes to a member. `frame` is the frame that holds the event.
    pub fn write(
        &mut self,
        write: &Write<'_>,
        event: &Event,
        frame: u32,
        above: &mut Above<'_, '_>,
    ) -> Result<()> {
        let Some(member) = self.shape.member(write.disk) else {
            return Ok(());
        };
        if self.held.is_older_than(event.submit_ns) {
            self.release(above)?;
        }
        if self.is_too_fine(event) {
            let unknown = write.row(Structure::Unknown, Causes::one(Cause::Unknown));
            above.rows.push(unknown);
            return Ok(());
        }
        let end = write.offset.saturating_add(write.length);
        let mut at = write.offset;
        while at < end {
            let part = self.shape.part(member, at, end);
            at += part.length;
            let piece = write.part(part.offset - write.offset, part.length);
            match part.kind {
                Kind::Data { array_offset, copy } => {
                    let data = Data {
                        write: piece,
                        array_offset,
                        source: Source {
                            event: write.event,
                            disk: write.disk,
                            offset: part.offset,
                            copy,
                        },
                        event,
                        frame,
                    };
                    self.data_written(&data, above)?;
                }
                Kind::Parity => push(&piece, Structure::Parity, above.rows),
                Kind::Md(area) => {
                    if area == Area::Superblock {
                        let disk_bytes = above.disks.size_bytes(write.disk);
                        self.superblock_written(member, &piece, disk_bytes);
                    }
                    push(&piece, structure(area), above.rows);
                }
            }
        }
        Ok(())
    }

    /// Handles a discard on a member.
    pub fn discard(&mut self, event: &Event, above: &mut Above<'_, '_>) -> Result<()> {
        self.release(above)?;
        if self.is_too_fine(event) {
            return Ok(());
        }
        for (offset, length) in self.data(event) {
            if let Some(family) = &mut above.family {
                family.discard(self.shape.disk, offset, length, above.rows)?;
            }
            let cleared = Event {
                disk: self.shape.disk,
                offset,
                length,
                ..*event
            };
            above.disks.apply(0, &cleared);
        }
        Ok(())
    }

    /// Handles a completed flush of a member. md flushes all members for one flush of the array, so
    /// the first member stands for all.
    pub fn flush(&mut self, disk: u16, number: u64, above: &mut Above<'_, '_>) -> Result<()> {
        self.release(above)?;
        match &mut above.family {
            Some(family) if self.shape.member(disk) == Some(0) => {
                family.flush(self.shape.disk, number, above.rows)
            }
            _ => Ok(()),
        }
    }

    /// Passes all held writes to the family, in the order in which they began to arrive.
    pub fn release(&mut self, above: &mut Above<'_, '_>) -> Result<()> {
        for whole in self.held.take() {
            let write = whole.write(self.shape.disk);
            match &mut above.family {
                Some(family) => family.write(&write, above.disks, above.rows)?,
                None => {
                    let unknown = write.row(Structure::Unknown, Causes::one(Cause::Unknown));
                    above.rows.push(unknown);
                }
            }
            for part in &whole.parts {
                self.placed.set_write(part.placed, write.event);
                above.disks.apply(part.frame, &part.event);
            }
        }
        Ok(())
    }

    /// Returns the origin of each part of the array's writes, once all are released.
    pub fn finish(self) -> Placed {
        self.placed.finish()
    }

    /// Separates copies of data that another member already has from new data.
    fn data_written(&mut self, data: &Data<'_>, above: &mut Above<'_, '_>) -> Result<()> {
        let end = data.array_offset + data.write.length;
        let known = match self.shape.map.copies() {
            1 => Vec::new(),
            _ => self.open.take(data.array_offset, end),
        };
        let bit = 1_u64 << data.source.copy;
        let mut at = data.array_offset;
        // A member that already has its copy is written again, with the next content of that place.
        let known = known.into_iter();
        for (start, stop, open) in known.filter(|(.., open)| open.copies & bit == 0) {
            if open.is_same && !self.is_copy(data, (start, stop), above)? {
                continue;
            }
            if at < start {
                self.first_copy(data, (at, start), above)?;
            }
            let source = data.source.at(start - data.array_offset);
            self.placed.copy(open.part, (start, stop), source);
            let copies = open.copies | bit;
            if (copies.count_ones() as usize) < self.shape.map.copies() {
                self.open.insert(start, stop, Open { copies, ..open });
            }
            at = stop;
        }
        match at < end {
            true => self.first_copy(data, (at, end), above),
            false => Ok(()),
        }
    }

    /// Returns whether the array's last content of this range is written again.
    fn is_copy(
        &self,
        data: &Data<'_>,
        (start, end): (u64, u64),
        above: &mut Above<'_, '_>,
    ) -> Result<bool> {
        let part = data.write.part(start - data.array_offset, end - start);
        let write = Write {
            disk: self.shape.disk,
            offset: start,
            ..part
        };
        match self.held.content(start, end) {
            Some(held) => Ok(held == write.content),
            None => write.is_on(above.disks),
        }
    }

    /// Handles the first copy of a write to this range of the array, or the only one.
    fn first_copy(
        &mut self,
        data: &Data<'_>,
        (start, end): (u64, u64),
        above: &mut Above<'_, '_>,
    ) -> Result<()> {
        if self.held.overlaps(start, end) || self.held.is_full() {
            self.release(above)?;
        }
        let skipped = start - data.array_offset;
        let part = data.write.part(skipped, end - start);
        let write = Write {
            disk: self.shape.disk,
            offset: start,
            ..part
        };
        let member = self.shape.member(data.source.disk);
        let is_rebuilt = member.is_some_and(|member| self.rebuilding[member]);
        let copies = self.shape.map.copies();
        let is_same = (is_rebuilt || copies > 1) && write.is_on(above.disks)?;
        let source = data.source.at(skipped);
        let placed = self.placed.first((start, end), source, is_same, is_rebuilt);
        if copies > 1 {
            let open = Open {
                part: placed,
                copies: 1 << source.copy,
                is_same,
            };
            self.open.insert(start, end, open);
        }
        let within = (part.offset - data.event.offset) as u32;
        let event = Event {
            disk: write.disk,
            offset: write.offset,
            length: write.length,
            content_offset: data.event.content_offset.saturating_add(within),
            ..*data.event
        };
        let held = held::Part {
            placed,
            frame: data.frame,
            event,
        };
        self.held.push(&write, held);
        Ok(())
    }

    fn superblock_written(&mut self, member: usize, piece: &Write<'_>, disk_bytes: u64) {
        let found = Superblock::parse(piece.content, piece.offset, disk_bytes);
        if let (Some(found), Some(rebuilding)) = (found, self.rebuilding.get_mut(member)) {
            *rebuilding = found.is_rebuilding;
        }
    }
}

/// Adds a row for a write that md made on its own.
fn push(piece: &Write<'_>, structure: Structure, rows: &mut Rows) {
    let cause = match piece.formatting {
        true => Cause::Format,
        false => Cause::Accounting,
    };
    rows.push(piece.row(structure, Causes::one(cause)));
}

fn structure(area: Area) -> Structure {
    match area {
        Area::Superblock | Area::BadBlocks => Structure::MdSuperblock,
        Area::Bitmap => Structure::MdBitmap,
        Area::PartialParityLog => Structure::MdPartialParityLog,
        Area::Data { .. } | Area::Unused => Structure::Unused,
    }
}
