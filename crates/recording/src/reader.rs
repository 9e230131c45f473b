//! Reader of a recording, as far as it is intact.

use crate::{
    Contents, DiskInfo, Error, ErrorKind, Frame, Mark, MarkReader, Op, Reply, Result, file,
    format::{FRAME_HEADER_BYTES, FrameKind, HEADER_BYTES, Header, RawFrameHeader, VERSION},
    piece_cache::PieceCache,
    raw_frame::RawFrame,
};
use std::{
    fs::File,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};
use zerocopy::{FromZeros as _, IntoBytes as _};

/// Maximum number of replies that are read: a caller holds them all, 24 bytes each, and a few
/// kilobytes of a file can hold a hundred thousand.
const MOST_REPLIES: u64 = 1 << 25;

/// State of the end of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The writer finished the recording.
    Finished,
    /// The writer died, or the file was truncated. Everything before this byte is intact.
    Cut {
        /// End of the last complete frame, in bytes.
        at_byte: u64,
    },
    /// The bytes at this offset differ from those written. Everything before them is readable.
    Corrupt {
        /// Offset in the file.
        at_byte: u64,
        /// Description of the damage.
        what: String,
    },
}

/// Position and times of a frame, from its header.
#[derive(Debug, Clone, Copy)]
pub struct FrameInfo {
    /// Offset of the frame in the file.
    pub at_byte: u64,
    /// Number of events in the frame.
    pub event_count: u32,
    /// Number of replies in the frame.
    pub reply_count: u32,
    /// Completion time of the last event.
    pub last_complete_ns: u64,
    /// Size of the content before compression.
    pub content_bytes: u32,
    /// Size of the content as stored.
    pub content_stored_bytes: u32,
}

/// A recording opened for reading.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: File,
    version: u16,
    header: Header,
    frames: Vec<FrameInfo>,
    end: End,
    file_bytes: u64,
}

impl Recording {
    /// Opens a recording and finds all frames. A truncated or damaged recording also opens, as far
    /// as it is intact: see [`end`](Self::end).
    pub fn open(path: &Path) -> Result<Recording> {
        let file = file::open_regular(path)?;
        let metadata = file.metadata().map_err(|e| Error::io("reading", path, e))?;
        let mut recording = Recording {
            path: path.to_owned(),
            file,
            version: VERSION,
            header: Header::default(),
            frames: Vec::new(),
            end: End::Finished,
            file_bytes: metadata.len(),
        };
        recording.read_headers().map_err(|e| e.in_file(path))?;
        Ok(recording)
    }

    fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> Result<()> {
        let read = self.file.read_exact_at(bytes, at);
        read.map_err(|e| Error::io("reading", &self.path, e))
    }

    /// Reads the file's header and those of the frames.
    fn read_headers(&mut self) -> Result<()> {
        let mut bytes = vec![0; HEADER_BYTES.min(self.file_bytes as usize)];
        self.read_exact_at(&mut bytes, 0)?;
        let length = Header::length(&bytes)?;
        bytes.resize(length.min(self.file_bytes as usize), 0);
        self.read_exact_at(&mut bytes, 0)?;
        self.version = Header::version(&bytes);
        self.header = Header::from_bytes(&bytes)?;
        self.end = self.find_frames(length as u64)?;
        Ok(())
    }

    /// Finds the frames from byte `at` on. Returns the state of the recording's end.
    fn find_frames(&mut self, mut at: u64) -> Result<End> {
        let corrupt = |at_byte, what| Ok(End::Corrupt { at_byte, what });
        loop {
            let body_at = at + FRAME_HEADER_BYTES as u64;
            if body_at > self.file_bytes {
                return Ok(End::Cut { at_byte: at });
            }
            let mut header = RawFrameHeader::new_zeroed();
            self.read_exact_at(header.as_mut_bytes(), at)?;
            let body_end = body_at + header.body_bytes();
            match header.check(at, self.frames.len() as u32) {
                Ok(FrameKind::Events) if body_end > self.file_bytes => {
                    return Ok(End::Cut { at_byte: at });
                }
                Ok(FrameKind::Events) => self.frames.push(FrameInfo {
                    at_byte: at,
                    event_count: header.event_count.get(),
                    reply_count: header.reply_count.get(),
                    last_complete_ns: header.last_complete_ns.get(),
                    content_bytes: header.content_raw_bytes.get(),
                    content_stored_bytes: header.content_stored_bytes.get(),
                }),
                Ok(FrameKind::End) if body_at < self.file_bytes => {
                    return corrupt(body_at, "bytes follow the end of the recording".into());
                }
                Ok(FrameKind::End) => return Ok(End::Finished),
                Err(error) => return corrupt(at, error.context),
            }
            at = body_end;
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the version of the file's format.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Returns the header of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns a disk of the header.
    pub(crate) fn disk(&self, number: u16) -> Result<&DiskInfo> {
        let missing = || Error::invalid(format!("there is no disk {number}")).in_file(&self.path);
        let disks = &self.header.disks;
        disks.get(usize::from(number)).ok_or_else(missing)
    }

    /// Returns all frames that are intact according to their headers.
    pub fn frames(&self) -> &[FrameInfo] {
        &self.frames
    }

    /// Returns the state of the end: finished, cut or damaged.
    pub fn end(&self) -> &End {
        &self.end
    }

    /// Returns the size of the file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Unpacks a frame's events into `frame`, reusing its buffers. Also unpacks the content if
    /// `with_content` is set or the frame contains a mark, because the content includes the mark's
    /// name and detail.
    pub fn read_frame(&self, index: usize, with_content: bool, frame: &mut Frame) -> Result<()> {
        let contents = match with_content {
            true => Contents::All,
            false => Contents::OfMarks,
        };
        self.read_frame_with(index, contents, frame)
    }

    pub(crate) fn read_frame_with(
        &self,
        index: usize,
        contents: Contents,
        frame: &mut Frame,
    ) -> Result<()> {
        let missing = || Error::invalid(format!("there is no frame {index}")).in_file(&self.path);
        let info = self.frames.get(index).ok_or_else(missing)?;
        let unpacked = RawFrame::read(&self.file, info.at_byte)
            .and_then(|raw| frame.unpack_from(&raw, &self.file, &self.header.disks, contents));
        unpacked.map_err(|e| e.in_file(&self.path))
    }

    /// Visits all events in order of completion, with their frames. Content is unpacked as
    /// [`read_frame`](Self::read_frame) does.
    ///
    /// The closure ends the walk by returning `false`.
    pub fn for_each_frame(
        &self,
        with_content: bool,
        mut visit: impl FnMut(usize, &Frame) -> Result<bool>,
    ) -> Result<()> {
        let mut frame = Frame::default();
        for index in 0..self.frames.len() {
            self.read_frame(index, with_content, &mut frame)?;
            if !visit(index, &frame)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns all replies, by the number of their request.
    pub fn replies(&self) -> Result<Vec<Reply>> {
        self.check_replies().map_err(|e| e.in_file(&self.path))?;
        let (mut found, mut index, mut replies) = (Vec::new(), Vec::new(), Vec::new());
        for info in self.frames.iter().filter(|info| info.reply_count > 0) {
            let unpacked = RawFrame::read(&self.file, info.at_byte).and_then(|raw| {
                raw.read_index(&self.file, &mut index)?;
                raw.unpack_replies(&index, &mut replies)
            });
            unpacked.map_err(|e| e.in_file(&self.path))?;
            found.extend_from_slice(&replies);
        }
        found.sort_unstable_by_key(|reply| reply.request);
        Ok(found)
    }

    /// Checks the number of replies before any is unpacked.
    fn check_replies(&self) -> Result<()> {
        let sum = |of: fn(&FrameInfo) -> u32| self.frames.iter().map(|f| u64::from(of(f))).sum();
        let (replies, events): (u64, u64) = (sum(|f| f.reply_count), sum(|f| f.event_count));
        if replies > MOST_REPLIES {
            let what = format!("{replies} replies, and at most {MOST_REPLIES} are read");
            return Err(Error::new(ErrorKind::TooLarge, what));
        }
        if replies > events {
            let what = format!("{replies} replies to at most {events} requests");
            return Err(Error::new(ErrorKind::Corrupt, what));
        }
        Ok(())
    }

    /// Returns all marks with their instants.
    pub fn marks(&self) -> Result<Vec<(u64, Mark)>> {
        let mut marks = Vec::new();
        let mut reader = MarkReader::default();
        self.for_each_frame(false, |_, frame| {
            for event in frame.events.iter().filter(|e| e.op == Op::Mark) {
                marks.push((event.complete_ns, reader.mark_of(frame, event)?));
            }
            Ok(true)
        })?;
        Ok(marks)
    }

    /// Creates a cache that reads content by location.
    pub(crate) fn piece_cache(&self) -> Result<PieceCache> {
        PieceCache::new(&self.file, &self.path)
    }
}
