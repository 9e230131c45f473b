//! The content of a disk at a past instant, as a view of the log.

use crate::{
    Contents, Error, ErrorKind, Event, ExtentMap, Frame, Location, Op, Recording, Result,
    piece_cache::PieceCache,
};
use rustix::fs::{FallocateFlags, fallocate};
use std::{collections::BTreeSet, fs::File, io, ops::Range, os::unix::fs::FileExt as _};

/// A point in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instant {
    /// Instant after everything in the recording.
    End,
    /// Instant after every request that had completed by then (nanoseconds since the recording
    /// began).
    CompletedBy(u64),
    /// Instant after this many events, including marks.
    Events(u64),
    /// Instant of the first mark with this name.
    Mark(String),
}

/// A disk at an instant.
pub struct Image<'a> {
    recording: &'a Recording,
    disk: u16,
    size_bytes: u64,
    map: ExtentMap,
    cache: PieceCache,
}

impl Recording {
    /// Returns disk `disk` at `instant`. Walks the events before it; no content is copied.
    pub fn image_at(&self, disk: u16, instant: &Instant) -> Result<Image<'_>> {
        let size_bytes = self.disk(disk)?.size_bytes;
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
            Instant::Mark(name) if !found => {
                let missing = Error::invalid(format!("there is no mark {name:?}"));
                Err(missing.in_file(self.path()))
            }
            _ => self.assembled(disk, size_bytes, map),
        }
    }

    /// Returns a disk whose content is located by `map`. A disk assembled from recorded disks has a
    /// number beyond theirs; it can be read but not exported.
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
    /// Applies one more event of this disk to the map; `frame` is the frame that holds it.
    pub fn apply(&mut self, frame: u32, event: &Event) {
        if event.op == Op::Write {
            let content_offset = event.content_offset;
            let location = Location {
                frame,
                content_offset,
            };
            self.write(event.offset, event.length, location);
        } else if event.op.clears() {
            self.clear(event.offset, event.length);
        }
    }
}

impl Image<'_> {
    /// Returns the size of the disk.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Applies one more event of this disk to the view; `frame` is the frame that holds it. Callers
    /// that walk the events themselves use this to advance the image.
    pub fn apply(&mut self, frame: u32, event: &Event) {
        self.map.apply(frame, event);
    }

    /// Reads any bytes of the disk.
    pub fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        let bytes = into.len() as u64;
        let end = offset
            .checked_add(bytes)
            .filter(|&end| end <= self.size_bytes);
        let past = || Error::invalid(format!("{bytes} bytes at {offset} are past the disk's end"));
        let end = end.ok_or_else(past)?;
        // Segments consist of whole sectors: widen the range, then copy the requested part.
        let sector = crate::SECTOR_BYTES;
        let (from, to) = (offset / sector * sector, end.next_multiple_of(sector));
        for segment in self.map.segments(from, to - from) {
            let begin = segment.offset.max(offset);
            let stop = (segment.offset + segment.length).min(end);
            let part = &mut into[(begin - offset) as usize..(stop - offset) as usize];
            match segment.location {
                None => part.fill(0),
                Some(location) => {
                    let missing = || Error::corrupt(0, "a frame is missing");
                    let frame = self.recording.frames().get(location.frame as usize);
                    let at_byte = frame.ok_or_else(missing)?.at_byte;
                    let location = location.after(begin - segment.offset);
                    self.cache.read(at_byte, location, part)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the number of bytes with recorded content, which [`export`](Self::export) writes.
    /// Bytes that were never written, or were zeroed or discarded later, do not count.
    pub fn content_bytes(&self) -> u64 {
        let segments = self.map.segments(0, self.size_bytes);
        segments
            .filter(|s| s.location.is_some())
            .map(|s| s.length)
            .sum()
    }

    /// Writes the whole disk to `out`, in place of what that file holds, as a sparse one. Pages
    /// that read as zeros remain holes.
    pub fn export(&self, out: &File) -> Result<()> {
        set_size(out, 0)?;
        set_size(out, self.size_bytes)?;
        let segments = self.map.segments(0, self.size_bytes);
        let used: BTreeSet<_> = segments
            .filter_map(|s| s.location.map(|l| l.frame as usize))
            .collect();
        let frames: Vec<_> = used.into_iter().collect();
        // In log order, so that each frame is unpacked once, on other threads.
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
                            write_sparse(out, content, segment.offset)?;
                        }
                    }
                }
                Ok(true)
            })
    }
}

/// Size of a page of most kernels: a file has holes of whole pages.
const PAGE_BYTES: u64 = 4096;

/// Bytes of an image that are compared with new content at a time.
const COMPARED_BYTES: usize = 32 << 10;

/// Gives an image its size.
pub fn set_size(out: &File, size_bytes: u64) -> Result<()> {
    out.set_len(size_bytes).map_err(failed)
}

/// Writes `content` at `offset` of an image, except for pages of zeros, which are holes.
pub fn write_sparse(out: &File, content: &[u8], offset: u64) -> Result<()> {
    write_around_zeros(out, content, offset, |_| Ok(()))
}

/// Writes `content` at `offset` of an image that holds something else. Pages of zeros become holes.
/// What the image holds already is not written: to read and compare takes less time.
pub fn overwrite_sparse(out: &File, content: &[u8], offset: u64) -> Result<()> {
    let mut buffer = [0; COMPARED_BYTES];
    for (part, at) in content
        .chunks(COMPARED_BYTES)
        .zip((offset..).step_by(COMPARED_BYTES))
    {
        let held = &mut buffer[..part.len()];
        out.read_exact_at(held, at).map_err(failed)?;
        let pages = part
            .chunks(PAGE_BYTES as usize)
            .zip((at..).step_by(PAGE_BYTES as usize));
        let held = held.chunks(PAGE_BYTES as usize);
        for ((page, at), _) in pages.zip(held).filter(|((page, _), held)| page != held) {
            write_around_zeros(out, page, at, |zeros| {
                clear(
                    out,
                    at + zeros.start as u64,
                    (zeros.end - zeros.start) as u64,
                )
            })?;
        }
    }
    Ok(())
}

/// Makes a range of an image a hole.
pub fn clear(out: &File, offset: u64, length: u64) -> Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(out, flags, offset, length).map_err(|error| failed(error.into()))
}

fn write_around_zeros(
    out: &File,
    content: &[u8],
    offset: u64,
    clear: impl Fn(Range<usize>) -> Result<()>,
) -> Result<()> {
    let write = |part: Range<usize>| {
        let at = offset + part.start as u64;
        out.write_all_at(&content[part], at).map_err(failed)
    };
    let mut begin = 0;
    while begin < content.len() {
        let is_hole = is_zero(first_page(&content[begin..], offset + begin as u64));
        let mut end = begin;
        while end < content.len() {
            let page = first_page(&content[end..], offset + end as u64);
            if is_zero(page) != is_hole {
                break;
            }
            end += page.len();
        }
        match is_hole {
            true => clear(begin..end)?,
            false => write(begin..end)?,
        }
        begin = end;
    }
    Ok(())
}

fn failed(error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull => ErrorKind::HostDiskFull,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("writing the image: {error}"))
}

/// Returns the beginning of `content`, which stands at `offset`, up to the end of its page.
fn first_page(content: &[u8], offset: u64) -> &[u8] {
    let length = (PAGE_BYTES - offset % PAGE_BYTES).min(content.len() as u64);
    &content[..length as usize]
}

/// Returns true if all bytes are zero. It reads all of them, so that the loop is vectorised.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |found, byte| found | byte) == 0
}
