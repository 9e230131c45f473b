//! Reads the recording and asks the family of each file system.

use crate::classify::{
    Cause, Causes, Disks, NO_INODE, Paths, Row, Rows, SortedRows, Structure, btrfs, ext, f2fs, fat,
    jfs, nilfs2, ntfs, reiserfs, xfs, zeroes::Zeroes,
};
use fscost_recording::{Frame, Image, Op, Recording, Result};

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

/// Follows one file system. Every write on its disks must become rows that cover it exactly, without gaps or overlap; it may push them later, and
/// complete them until [`finish`](Family::finish).
pub trait Family {
    /// Its name: `ext`, `xfs`, `btrfs`.
    fn name(&self) -> &'static str;

    /// Whether this disk is (part of) the file system: its main device, external journal or log, or a member.
    fn owns(&self, disk: u16) -> bool;

    /// A write or write-zeroes on a disk of its own. `disks` do not have it yet.
    fn write(&mut self, write: &Write<'_>, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()>;

    /// Whether all of the range is now in use for what no discard touches: a hole punched there was zeroes written. `false` where that cannot be
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
type Detect = fn(&Recording, u16, &mut Image<'_>) -> Result<Option<Box<dyn Family>>>;

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
    /// For each disk, the family that follows it.
    pub families: Vec<Option<&'static str>>,
    /// Of the rows, bytes that were written as zeroes and reached the disk as holes punched: in each interval, the one before the first mark included.
    pub punched_bytes: Vec<u64>,
}

/// Explain every written byte of a recording, all rows in memory: for tests, and what looks at a small recording.
pub fn explain(recording: &Recording) -> Result<Explained> {
    let explained = explain_streamed(recording, |_| Ok(()))?;
    Ok(Explained {
        rows: explained.rows.iter().collect::<Result<_>>()?,
        paths: explained.paths,
        families: explained.families,
        punched_bytes: explained.punched_bytes,
    })
}

/// Explain every written byte of a recording of any size: memory is bounded, rows are read from a temporary file. `visit` gets every frame, in
/// order: what else is to be learnt needs no second walk.
///
/// Which file system a disk holds is found in the content itself: before mkfs writes its superblock, writes are kept and looked at again once it
/// is known.
pub fn explain_streamed(
    recording: &Recording,
    mut visit: impl FnMut(&Frame) -> Result<()>,
) -> Result<Explained<SortedRows>> {
    let mut engine = Engine {
        disks: Disks::new(recording)?,
        families: Vec::new(),
        rows: Rows::default(),
        zeroes: Zeroes::new(recording)?,
        interval: 0,
    };
    engine.detect(recording)?;
    let mut event_number = 0;
    let mut formatting = true;
    recording.for_each_frame_ahead(|frame_number, frame| {
        for event in &frame.events {
            if event.op == Op::Mark {
                engine.interval += 1;
                formatting = formatting && frame.mark_of(event)?.name != "mount";
                engine.mark(event_number)?;
            }
            engine.event(event_number, event, frame.content_of(event), formatting)?;
            engine.disks.apply(frame_number as u32, event);
            event_number += 1;
        }
        engine.rows.check()?;
        visit(frame)?;
        Ok(true)
    })?;
    engine.finish()
}

struct Engine<'a> {
    disks: Disks<'a>,
    families: Vec<Box<dyn Family>>,
    rows: Rows,
    zeroes: Zeroes,
    /// The number of marks so far.
    interval: usize,
}

impl Engine<'_> {
    /// Find each disk's file system by its superblock at the mark `mount` (mkfs has ended), or at the end.
    fn detect(&mut self, recording: &Recording) -> Result<()> {
        let mut claimed = vec![false; usize::from(self.disks.count())];
        for disk in 0..self.disks.count() {
            let mut image =
                match recording.image_at(disk, &fscost_recording::Instant::Mark("mount".into())) {
                    Ok(image) => image,
                    Err(_) => recording.image_at(disk, &fscost_recording::Instant::End)?,
                };
            for detect in DETECT {
                if claimed[usize::from(disk)] {
                    break;
                }
                if let Some(family) = detect(recording, disk, &mut image)? {
                    for (number, claim) in claimed.iter_mut().enumerate() {
                        *claim |= family.owns(number as u16);
                    }
                    self.families.push(family);
                }
            }
        }
        Ok(())
    }

    fn mark(&mut self, number: u64) -> Result<()> {
        for family in &mut self.families {
            family.mark(number, &mut self.disks, &mut self.rows)?;
        }
        Ok(())
    }

    fn event(
        &mut self,
        number: u64,
        event: &fscost_recording::Event,
        content: &[u8],
        formatting: bool,
    ) -> Result<()> {
        let family = self.families.iter_mut().find(|f| f.owns(event.disk));
        let write = Write {
            event: number,
            time_ns: event.complete_ns,
            disk: event.disk,
            offset: event.offset,
            content,
            length: event.length,
            formatting,
        };
        let is_in_use = || {
            let family = family.as_deref();
            family.is_some_and(|f| f.is_in_use(event.disk, event.offset, event.length))
        };
        let is_written = match event.op {
            Op::Write | Op::WriteZeroes => true,
            Op::Punch => self.zeroes.are(self.interval, event, is_in_use),
            _ => false,
        };
        match (event.op, family) {
            // Nothing was written.
            _ if is_written && event.length == 0 => Ok(()),
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
        for family in &mut self.families {
            family.finish(&mut self.disks, &mut self.rows)?;
        }
        let families = (0..self.disks.count())
            .map(|d| self.families.iter().find(|f| f.owns(d)).map(|f| f.name()))
            .collect();
        let (rows, paths) = self.rows.into_sorted()?;
        Ok(Explained {
            rows,
            paths,
            families,
            punched_bytes: self.zeroes.into_bytes(),
        })
    }
}
