//! Engine that reads the recording and passes each write to the family of its file system.

use crate::{
    Cause, Causes, Disks, Family, FormattedDisks, Paths, Row, Rows, SortedRows, Structure, Write,
    array::{Above, Array},
    families,
    nearby::Nearby,
    zeroes::Zeroes,
};
use fscost_recording::{Contents, Event, Frame, MAX_REQUEST_BYTES, Op, Recording, Result};
use std::thread;

/// Explanation of the bytes of a recording.
#[derive(Debug)]
pub struct Explained<R = Vec<Row>> {
    /// Rows, in the order of events, then of offsets.
    pub rows: R,
    /// Paths that the rows refer to.
    pub paths: Paths,
    /// Name of the family that follows each disk. For a member of an array, this is the family that
    /// follows the array.
    pub families: Vec<Option<&'static str>>,
    /// True if disks of the recording form md arrays.
    pub is_array: bool,
    /// Bytes of the rows that were written as zeroes and reached the disk as punched holes, for
    /// each interval. The first entry is the interval before the first mark.
    pub punched_bytes: Vec<u64>,
}

/// Explains every written byte of a recording, with all rows in memory. Intended for tests and for
/// small recordings.
pub fn explain(recording: &Recording) -> Result<Explained> {
    let explained = explain_streamed(recording, |_| Ok(()))?;
    Ok(Explained {
        rows: explained.rows.iter().collect::<Result<_>>()?,
        paths: explained.paths,
        families: explained.families,
        is_array: explained.is_array,
        punched_bytes: explained.punched_bytes,
    })
}

/// Explains every written byte of a recording of any size. Memory is bounded: rows are read from a
/// temporary file. `visit` gets every frame in order, with some content still packed, so that
/// callers can collect other data in the same pass.
///
/// The file system on a disk is detected from the recorded content. Until the file system's
/// superblock is found, writes are kept; they are explained as soon as it is known.
pub fn explain_streamed(
    recording: &Recording,
    mut visit: impl FnMut(&mut Frame) -> Result<()>,
) -> Result<Explained<SortedRows>> {
    let mut engine = Engine {
        disks: Disks::new(recording)?,
        families: Vec::new(),
        arrays: Vec::new(),
        rows: Rows::default(),
        zeroes: Zeroes::new(recording),
    };
    engine.detect(&FormattedDisks::new(recording)?)?;
    let mut event_number = 0;
    let mut formatting = true;
    let contents = engine.contents();
    let nearby = Nearby::new(recording.header());
    let expected = |event: &Event| nearby.expects(event);
    recording.for_each_frame_ahead(contents, &expected, |frame_number, frame| {
        for number in 0..frame.events.len() {
            let event = &{ frame.events[number] };
            let is_read = contents == Contents::All || engine.reads(event);
            if event.op == Op::Write {
                nearby.learn(event, is_read);
            }
            let content = match is_read {
                true => {
                    let unpacked = frame.unpack(event);
                    unpacked.map_err(|e| e.in_file(recording.path()))?;
                    frame.content_of(event)
                }
                false => &NOT_READ[..event.length as usize],
            };
            if event.op == Op::Mark {
                let mark = frame.mark_of(event)?;
                formatting = formatting && mark.name != "mount";
                engine.zeroes.mark(frame_number, &mark);
                engine.mark(event_number)?;
            }
            let write = Write {
                event: event_number,
                time_ns: event.complete_ns,
                disk: event.disk,
                offset: event.offset,
                content,
                length: event.length,
                formatting,
            };
            engine.event(&write, event, frame_number as u32)?;
            engine.disks.apply(frame_number as u32, event);
            event_number += 1;
        }
        engine.rows.check()?;
        visit(frame)?;
        Ok(true)
    })?;
    engine.finish()
}

/// Placeholder for content that no family reads.
static NOT_READ: [u8; MAX_REQUEST_BYTES] = [0; MAX_REQUEST_BYTES];

struct Engine<'a> {
    disks: Disks<'a>,
    families: Vec<Box<dyn Family>>,
    /// The md arrays. Their member disks belong to no family: the arrays do.
    arrays: Vec<Array>,
    rows: Rows,
    zeroes: Zeroes<'a>,
}

impl<'a> Engine<'a> {
    /// Detects each disk's file system by its superblock at the mark `mount` (when mkfs has
    /// finished), or at the end of the recording.
    fn detect(&mut self, formatted: &FormattedDisks<'a>) -> Result<()> {
        for array in &formatted.arrays {
            self.disks.add(formatted.empty(array)?);
            self.arrays.push(Array::new(array.clone()));
        }
        for disk in 0..formatted.count() {
            let is_member = self.arrays.iter().any(|array| array.has(disk));
            let mut image = formatted.image(disk)?;
            for detect in families::DETECT {
                if is_member || self.families.iter().any(|f| f.owns(disk)) {
                    break;
                }
                self.families.extend(detect(formatted, disk, &mut image)?);
            }
        }
        Ok(())
    }

    /// Returns which parts of a frame must be decompressed before it is read.
    fn contents(&self) -> Contents {
        match self.arrays.is_empty() && !self.families.iter().any(|f| f.reads_all()) {
            true => Contents::Packed,
            false => Contents::All,
        }
    }

    /// Returns whether a family reads the content of an event. The disk must not be a member of an
    /// array.
    fn reads(&self, event: &Event) -> bool {
        let family = self.families.iter().find(|f| f.owns(event.disk));
        event.op != Op::Write
            || event.length > NOT_READ.len() as u64
            || family.is_some_and(|f| f.reads(event.disk, event.offset, event.length))
    }

    fn mark(&mut self, number: u64) -> Result<()> {
        self.release()?;
        for family in &mut self.families {
            family.mark(number, &mut self.disks, &mut self.rows)?;
        }
        Ok(())
    }

    /// Passes the writes that arrays held back to the families.
    fn release(&mut self) -> Result<()> {
        for array in &mut self.arrays {
            let disk = array.shape.disk;
            array.release(&mut Above {
                family: self.families.iter_mut().find(|f| f.owns(disk)),
                disks: &mut self.disks,
                rows: &mut self.rows,
            })?;
        }
        Ok(())
    }

    /// Handles an event. `write` is the event as a write, and `frame` the frame that holds it.
    fn event(&mut self, write: &Write<'_>, event: &Event, frame: u32) -> Result<()> {
        let array = self.arrays.iter_mut().find(|array| array.has(event.disk));
        let disk = array.as_ref().map_or(event.disk, |array| array.shape.disk);
        let family = self.families.iter_mut().find(|f| f.owns(disk));
        let is_in_use = || match (family.as_deref(), &array) {
            (None, _) => false,
            (Some(family), None) => family.is_in_use(disk, event.offset, event.length),
            (Some(family), Some(array)) => {
                let mut data = array.data(event);
                !array.is_too_fine(event)
                    && data.all(|(offset, length)| family.is_in_use(disk, offset, length))
            }
        };
        let is_written = match event.op {
            Op::Write | Op::WriteZeroes => true,
            Op::Punch => self.zeroes.are(event, is_in_use)?,
            _ => false,
        };
        // A write of length 0 needs no row.
        if is_written && event.length == 0 {
            return Ok(());
        }
        if let Some(array) = array {
            let above = &mut Above {
                family,
                disks: &mut self.disks,
                rows: &mut self.rows,
            };
            return match event.op {
                _ if is_written => array.write(write, event, frame, above),
                Op::Discard | Op::Punch => array.discard(event, above),
                Op::Flush => array.flush(event.disk, write.event, above),
                _ => Ok(()),
            };
        }
        match (event.op, family) {
            (_, Some(family)) if is_written => family.write(write, &mut self.disks, &mut self.rows),
            (_, None) if is_written => {
                self.rows
                    .push(write.row(Structure::Unknown, Causes::one(Cause::Unknown)));
                Ok(())
            }
            (Op::Discard | Op::Punch, Some(family)) => {
                family.discard(event.disk, event.offset, event.length, &mut self.rows)
            }
            (Op::Flush, Some(family)) => family.flush(event.disk, write.event, &mut self.rows),
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Explained<SortedRows>> {
        self.release()?;
        for family in &mut self.families {
            family.finish(&mut self.disks, &mut self.rows)?;
        }
        let families = self.families_of_disks();
        let is_array = !self.arrays.is_empty();
        for array in self.arrays {
            let placed = array.finish();
            self.rows = self.rows.replaced(|row, push| {
                if !placed.translate(row, &mut *push) {
                    push(*row);
                }
            })?;
        }
        let (rows, paths) = sorted_beside(self.rows, self.families)?;
        Ok(Explained {
            rows,
            paths,
            families,
            is_array,
            punched_bytes: self.zeroes.bytes,
        })
    }

    /// Returns the name of the family of each disk. A member has the family of its array.
    fn families_of_disks(&self) -> Vec<Option<&'static str>> {
        let recorded = 0..self.disks.count() - self.arrays.len() as u16;
        let family = |disk| {
            let array = self.arrays.iter().find(|array| array.has(disk));
            let disk = array.map_or(disk, |array| array.shape.disk);
            let family = self.families.iter().find(|f| f.owns(disk));
            family.map(|f| f.name())
        };
        recorded.map(family).collect()
    }
}

/// Sorts the rows, while another thread frees the memory of the families: they know millions of
/// small things.
fn sorted_beside(rows: Rows, families: Vec<Box<dyn Family>>) -> Result<(SortedRows, Paths)> {
    thread::scope(|scope| {
        // Without a thread, this one frees them.
        let _ = thread::Builder::new().spawn_scoped(scope, move || drop(families));
        rows.into_sorted()
    })
}
