//! The content of a disk at an instant of the past: a view of the log.

use crate::{
    Contents, Error, ErrorKind, Event, ExtentMap, Location, Op, Recording, Result,
    piece_cache::PieceCache, reader::Frame,
};
use std::collections::BTreeSet;

/// A point in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instant {
    /// After everything that was recorded.
    End,
    /// After every request that had completed by then (nanoseconds since the recording began).
    CompletedBy(u64),
    /// After that many events (marks included).
    Events(u64),
    /// At the (first) mark of this name.
    Mark(String),
}

/// A disk as it was.
pub struct Image<'a> {
    recording: &'a Recording,
    disk: u16,
    size_bytes: u64,
    map: ExtentMap,
    cache: PieceCache,
}

impl Recording {
    /// Disk `disk` at `instant`. Costs a walk over the events before it; no content is copied.
    pub fn image_at(&self, disk: u16, instant: &Instant) -> Result<Image<'_>> {
        let info = self.header().disks.get(usize::from(disk)).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("{}: there is no disk {disk}", self.path().display()),
            )
        })?;
        let mut map = ExtentMap::default();
        let mut count = 0;
        let mut found = !matches!(instant, Instant::Mark(_));
        self.for_each_frame(false, |index, frame| {
            for event in &frame.events {
                if is_past(instant, count, frame, event)? {
                    found = true;
                    return Ok(false);
                }
                count += 1;
                if event.disk == disk {
                    map.apply(index as u32, event);
                }
            }
            Ok(true)
        })?;
        match instant {
            Instant::Mark(name) if !found => Err(Error::new(
                ErrorKind::Invalid,
                format!("{}: there is no mark {name:?}", self.path().display()),
            )),
            _ => self.assembled(disk, info.size_bytes, map),
        }
    }

    /// A disk whose content is where `map` says. One that is put together from recorded disks has a
    /// number behind theirs: it can be read,
    /// not exported.
    pub fn assembled(&self, disk: u16, size_bytes: u64, map: ExtentMap) -> Result<Image<'_>> {
        Ok(Image {
            recording: self,
            disk,
            size_bytes,
            map,
            cache: self.piece_cache()?,
        })
    }
}

fn is_past(instant: &Instant, events_before: u64, frame: &Frame, event: &Event) -> Result<bool> {
    Ok(match instant {
        Instant::End => false,
        Instant::CompletedBy(ns) => event.complete_ns > *ns,
        Instant::Events(count) => events_before >= *count,
        Instant::Mark(name) => event.op == Op::Mark && frame.mark_of(event)?.name == *name,
    })
}

impl ExtentMap {
    /// Take one more event of this disk into the map; `frame` is the one that holds it.
    pub fn apply(&mut self, frame: u32, event: &Event) {
        if event.op == Op::Write {
            self.write(
                event.offset,
                event.length,
                Location {
                    frame,
                    content_offset: event.content_offset,
                },
            );
        } else if event.op.clears() {
            self.clear(event.offset, event.length);
        }
    }
}

impl Image<'_> {
    /// Size of the disk.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Where the disk's content comes from.
    pub fn map(&self) -> &ExtentMap {
        &self.map
    }

    /// Take one more event of this disk into the view; `frame` is the one that holds it. Whoever
    /// walks the events himself moves the
    /// image along with them.
    pub fn apply(&mut self, frame: u32, event: &Event) {
        self.map.apply(frame, event);
    }

    /// Read any bytes of the disk.
    pub fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        let end = offset
            .checked_add(into.len() as u64)
            .filter(|&end| end <= self.size_bytes);
        let end = end.ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("{} bytes at {offset} are past the disk's end", into.len()),
            )
        })?;
        // Segments are of whole sectors: widen, then copy what was asked for.
        let sector = crate::SECTOR_BYTES;
        let (from, to) = (offset / sector * sector, end.next_multiple_of(sector));
        for segment in self.map.segments(from, to - from) {
            let begin = segment.offset.max(offset);
            let stop = (segment.offset + segment.length).min(end);
            let part = &mut into[(begin - offset) as usize..(stop - offset) as usize];
            match segment.location {
                None => part.fill(0),
                Some(location) => {
                    let content_offset = location.content_offset + (begin - segment.offset) as u32;
                    let frames = self.recording.frames();
                    let frame = frames
                        .get(location.frame as usize)
                        .ok_or_else(|| Error::corrupt(0, "a frame is missing"))?;
                    self.cache.read(
                        frame.at_byte,
                        Location {
                            content_offset,
                            ..location
                        },
                        part,
                    )?;
                }
            }
        }
        Ok(())
    }

    /// How many bytes of the disk were written, and are not zeros by a discard: what
    /// [`export`](Self::export) writes.
    pub fn content_bytes(&self) -> u64 {
        let segments = self.map.segments(0, self.size_bytes);
        segments
            .filter(|s| s.location.is_some())
            .map(|s| s.length)
            .sum()
    }

    /// Write the whole disk to `out` as a sparse file: what reads as zeros is left a hole.
    pub fn export(&self, out: &std::fs::File) -> std::result::Result<(), Error> {
        use std::os::unix::fs::FileExt as _;
        let failed = |e: std::io::Error| {
            Error::new(
                if e.kind() == std::io::ErrorKind::StorageFull {
                    ErrorKind::HostDiskFull
                } else {
                    ErrorKind::Io
                },
                format!("writing the image: {e}"),
            )
        };
        out.set_len(self.size_bytes).map_err(failed)?;
        let segments = self.map.segments(0, self.size_bytes);
        let used: BTreeSet<_> = segments
            .filter_map(|s| s.location.map(|l| l.frame as usize))
            .collect();
        let frames: Vec<_> = used.into_iter().collect();
        // In the order of the log: each frame is unpacked once, and on other threads.
        let contents = Contents::All;
        self.recording
            .for_frames_ahead(&frames, contents, &|_| false, |index, frame| {
                let is_write = |e: &&Event| e.op == Op::Write && e.disk == self.disk;
                for event in frame.events.iter().filter(is_write) {
                    for segment in self.map.segments(event.offset, event.length) {
                        let from = (segment.offset - event.offset) as usize;
                        let here = Location {
                            frame: index as u32,
                            content_offset: event.content_offset + from as u32,
                        };
                        if segment.location == Some(here) {
                            let part = from..from + segment.length as usize;
                            let content = frame.content_of(event).get(part).unwrap_or_default();
                            out.write_all_at(content, segment.offset).map_err(failed)?;
                        }
                    }
                }
                Ok(true)
            })
    }
}
