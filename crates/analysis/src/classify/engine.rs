//! Reads the recording and asks the family of each file system.

use crate::classify::{
    Cause, Causes, Disks, FormattedDisks, NO_INODE, Paths, Row, Rows, SortedRows, Structure,
    array::{Above, Array},
    btrfs, ext, f2fs, fat, jfs,
    nearby::Nearby,
    nilfs2, ntfs, reiserfs, xfs,
    zeroes::Zeroes,
};
use fscost_recording::{Contents, Event, Frame, Image, MAX_REQUEST_BYTES, Op, Recording, Result};

/// One write as a family sees it.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// The event's number.
    pub event: u64,
    /// When it completed, nanoseconds since the recording began.
    pub time_ns: u64,
    /// Index of the disk.
    pub disk: u16,
    /// Byte offset.
    pub offset: u64,
    /// What was written; for a write-zeroes, empty.
    pub content: &'a [u8],
    /// Bytes (the content's length, but for a write-zeroes).
    pub length: u64,
    /// Whether it is before the mark `mount`: mkfs and its kin wrote it.
    pub formatting: bool,
}

impl<'a> Write<'a> {
    /// A row of all of it, which is nobody's.
    pub fn row(&self, structure: Structure, causes: Causes) -> Row {
        Row {
            event: self.event,
            disk: self.disk,
            offset: self.offset,
            length: self.length,
            structure,
            home: None,
            home_offset: None,
            causes,
            inode: NO_INODE,
            tree: 0,
            path: None,
            transaction: None,
            copy: 0,
            is_doubtful: false,
        }
    }

    /// `length` bytes of it from byte `from` on.
    pub fn part(&self, from: u64, length: u64) -> Write<'a> {
        let content = usize::try_from(from)
            .ok()
            .and_then(|at| self.content.get(at..));
        let content = content.unwrap_or_default();
        let end = usize::try_from(length)
            .unwrap_or(usize::MAX)
            .min(content.len());
        Write {
            offset: self.offset + from,
            length,
            content: &content[..end],
            ..*self
        }
    }
}

/// What a disk holds with the write that is being looked at.
pub struct Now<'r, 'd> {
    /// That write.
    pub write: &'r Write<'r>,
    /// The disks without it.
    pub disks: &'r mut Disks<'d>,
}

impl Now<'_, '_> {
    /// Read the disk of the write.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        let Write { disk, content, .. } = *self.write;
        self.disks.read(disk, offset, into)?;
        let end = offset.saturating_add(into.len() as u64);
        let stop = self.write.offset.saturating_add(content.len() as u64);
        let (from, to) = (offset.max(self.write.offset), end.min(stop));
        if from < to {
            let at = |place: u64, begin: u64| (place - begin) as usize;
            let written = &content[at(from, self.write.offset)..at(to, self.write.offset)];
            into[at(from, offset)..at(to, offset)].copy_from_slice(written);
        }
        Ok(())
    }
}

/// Follows one file system. Every write on its disks must become rows that cover it exactly,
/// without gaps or overlap; it may push them later, and
/// complete them until [`finish`](Family::finish).
pub trait Family {
    /// Its name: `ext`, `xfs`, `btrfs`.
    fn name(&self) -> &'static str;

    /// Whether this disk is (part of) the file system: its main device, external journal or log, or
    /// a member.
    fn owns(&self, disk: u16) -> bool;

    /// Whether `write` looks at the content of every write. Where it need not, content stays packed
    /// until [`reads`](Self::reads) asks for it.
    fn reads_all(&self) -> bool {
        true
    }

    /// Whether `write` will look at the content of this write, were it the next. Where it is
    /// `false`,
    /// `write` gets zeros of the same length.
    fn reads(&self, _disk: u16, _offset: u64, _length: u64) -> bool {
        true
    }

    /// A write or write-zeroes on a disk of its own. `disks` do not have it yet.
    fn write(&mut self, write: &Write<'_>, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()>;

    /// Whether all of the range is now in use for what no discard touches: a hole punched there was
    /// zeroes written. `false` where that cannot be
    /// told; xfs and btrfs write none that may unmap.
    fn is_in_use(&self, _disk: u16, _offset: u64, _length: u64) -> bool {
        false
    }

    /// A discard: the range reads as zeros. Most know what was released from the metadata before.
    fn discard(&mut self, _disk: u16, _offset: u64, _length: u64, _rows: &mut Rows) -> Result<()> {
        Ok(())
    }

    /// A flush has completed.
    fn flush(&mut self, _disk: u16, _event: u64, _rows: &mut Rows) -> Result<()> {
        Ok(())
    }

    /// A mark: between the phases of a run all is on the disk.
    fn mark(&mut self, _event: u64, _disks: &mut Disks<'_>, _rows: &mut Rows) -> Result<()> {
        Ok(())
    }

    /// An unmount or the recording's end: say what is left to say.
    fn finish(&mut self, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()>;
}

/// What finds a file system, given the recording, the disk, and its image as mkfs left it.
type Detect = fn(&FormattedDisks<'_>, u16, &mut Image<'_>) -> Result<Option<Box<dyn Family>>>;

const DETECT: [Detect; 9] = [
    ext::detect,
    xfs::detect,
    btrfs::detect,
    f2fs::detect,
    nilfs2::detect,
    reiserfs::detect,
    jfs::detect,
    ntfs::detect,
    fat::detect,
];

/// What a recording's bytes were.
#[derive(Debug)]
pub struct Explained<R = Vec<Row>> {
    /// In the order of events, then of offsets.
    pub rows: R,
    /// The paths that rows name.
    pub paths: Paths,
    /// For each disk, the family that follows it; for a member, the one that follows its array.
    pub families: Vec<Option<&'static str>>,
    /// Whether disks of the recording form md arrays.
    pub is_array: bool,
    /// Of the rows, bytes that were written as zeroes and reached the disk as holes punched: in
    /// each interval, the one before the first mark included.
    pub punched_bytes: Vec<u64>,
}

/// Explain every written byte of a recording, all rows in memory: for tests, and what looks at a
/// small recording.
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

/// Explain every written byte of a recording of any size: memory is bounded, rows are read from a
/// temporary file. `visit` gets every frame, in
/// order: what else is to be learnt needs no second walk.
///
/// Which file system a disk holds is found in the content itself: before mkfs writes its
/// superblock, writes are kept and looked at again once it
/// is known.
pub fn explain_streamed(
    recording: &Recording,
    mut visit: impl FnMut(&Frame) -> Result<()>,
) -> Result<Explained<SortedRows>> {
    let mut engine = Engine {
        disks: Disks::new(recording)?,
        families: Vec::new(),
        arrays: Vec::new(),
        rows: Rows::default(),
        zeroes: Zeroes::new(recording)?,
        interval: 0,
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
                engine.interval += 1;
                formatting = formatting && frame.mark_of(event)?.name != "mount";
                engine.mark(event_number)?;
            }
            let request = Request {
                number: event_number,
                frame: frame_number as u32,
                event,
                content,
                formatting,
            };
            engine.event(&request)?;
            engine.disks.apply(frame_number as u32, event);
            event_number += 1;
        }
        engine.rows.check()?;
        visit(frame)?;
        Ok(true)
    })?;
    engine.finish()
}

/// Stands for content that no family looks at.
static NOT_READ: [u8; MAX_REQUEST_BYTES] = [0; MAX_REQUEST_BYTES];

/// An event that is not a mark.
struct Request<'r> {
    number: u64,
    /// The number of the frame that holds it.
    frame: u32,
    event: &'r Event,
    content: &'r [u8],
    formatting: bool,
}

struct Engine<'a> {
    disks: Disks<'a>,
    families: Vec<Box<dyn Family>>,
    /// Their members belong to no family: the arrays do.
    arrays: Vec<Array>,
    rows: Rows,
    zeroes: Zeroes,
    /// The number of marks so far.
    interval: usize,
}

impl<'a> Engine<'a> {
    /// Find each disk's file system by its superblock at the mark `mount` (mkfs has ended), or at
    /// the end.
    fn detect(&mut self, formatted: &FormattedDisks<'a>) -> Result<()> {
        for array in formatted.arrays() {
            self.disks.add(formatted.empty(array)?);
            self.arrays.push(Array::new(array.clone()));
        }
        let is_member = |disk| self.arrays.iter().any(|array| array.has(disk));
        let mut claimed: Vec<bool> = (0..formatted.count()).map(is_member).collect();
        for disk in 0..formatted.count() {
            let mut image = formatted.image(disk)?;
            for detect in DETECT {
                if claimed[usize::from(disk)] {
                    break;
                }
                if let Some(family) = detect(formatted, disk, &mut image)? {
                    for (number, claim) in claimed.iter_mut().enumerate() {
                        *claim |= family.owns(number as u16);
                    }
                    self.families.push(family);
                }
            }
        }
        Ok(())
    }

    /// What must be unpacked of a frame before it is looked at.
    fn contents(&self) -> Contents {
        match self.arrays.is_empty() && !self.families.iter().any(|f| f.reads_all()) {
            true => Contents::Packed,
            false => Contents::All,
        }
    }

    /// Whether the content of an event is looked at; of a disk that is no member of an array.
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

    /// The families get what arrays hold back.
    fn release(&mut self) -> Result<()> {
        for array in &mut self.arrays {
            let disk = array.disk();
            array.release(&mut Above {
                family: self.families.iter_mut().find(|f| f.owns(disk)),
                disks: &mut self.disks,
                rows: &mut self.rows,
            })?;
        }
        Ok(())
    }

    fn event(&mut self, request: &Request<'_>) -> Result<()> {
        let Request {
            number,
            event,
            content,
            formatting,
            ..
        } = *request;
        let array = self.arrays.iter_mut().find(|array| array.has(event.disk));
        let disk = array.as_ref().map_or(event.disk, |array| array.disk());
        let family = self.families.iter_mut().find(|f| f.owns(disk));
        let write = Write {
            event: number,
            time_ns: event.complete_ns,
            disk: event.disk,
            offset: event.offset,
            content,
            length: event.length,
            formatting,
        };
        let is_in_use = || match (family.as_deref(), &array) {
            (None, _) => false,
            (Some(family), None) => family.is_in_use(disk, event.offset, event.length),
            (Some(family), Some(array)) => {
                let mut data = array.data(event);
                data.all(|(offset, length)| family.is_in_use(disk, offset, length))
            }
        };
        let is_written = match event.op {
            Op::Write | Op::WriteZeroes => true,
            Op::Punch => self.zeroes.are(self.interval, event, is_in_use),
            _ => false,
        };
        // Nothing was written.
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
                _ if is_written => array.write(&write, event, request.frame, above),
                Op::Discard | Op::Punch => array.discard(event, above),
                Op::Flush => array.flush(event.disk, number, above),
                _ => Ok(()),
            };
        }
        match (event.op, family) {
            (_, Some(family)) if is_written => {
                family.write(&write, &mut self.disks, &mut self.rows)
            }
            (_, None) if is_written => {
                self.rows
                    .push(write.row(Structure::Unknown, Causes::one(Cause::Unknown)));
                Ok(())
            }
            (Op::Discard | Op::Punch, Some(family)) => {
                family.discard(event.disk, event.offset, event.length, &mut self.rows)
            }
            (Op::Flush, Some(family)) => family.flush(event.disk, number, &mut self.rows),
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
        let (rows, paths) = self.rows.into_sorted()?;
        Ok(Explained {
            rows,
            paths,
            families,
            is_array,
            punched_bytes: self.zeroes.into_bytes(),
        })
    }

    /// A member has the family of its array.
    fn families_of_disks(&self) -> Vec<Option<&'static str>> {
        let recorded = 0..self.disks.count() - self.arrays.len() as u16;
        let family = |disk| {
            let array = self.arrays.iter().find(|array| array.has(disk));
            let disk = array.map_or(disk, |array| array.disk());
            self.families
                .iter()
                .find(|f| f.owns(disk))
                .map(|f| f.name())
        };
        recorded.map(family).collect()
    }
}
