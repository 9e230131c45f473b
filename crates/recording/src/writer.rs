//! Makes a recording while disks are served. Content goes straight into the frame that is being
//! filled; a second thread compresses
//! and stores sealed frames, so that a request waits for neither.

use crate::{
    Error, ErrorKind, Event, Location, Mark, Op, Output, Result, Room, Totals, fail_point,
    format::{DiskInfo, Header},
    frame::{Content, EncodedFrame, Encoder, FrameBuffer, end_frame},
    piece_cache::PieceCache,
};
use std::{
    collections::VecDeque,
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};
use zerocopy::IntoBytes;

/// Frames in memory at most, the one being filled included: bounds the server's memory at about 21
/// MiB.
const FRAMES_IN_MEMORY: usize = 16;

/// Writes one recording.
pub struct Writer {
    disks: Vec<DiskInfo>,
    open: FrameBuffer,
    next_sequence: u32,
    totals: Vec<Totals>,
    requests: u64,
    last_complete_ns: u64,
    shared: Arc<Shared>,
    sealed: Sender<Arc<FrameBuffer>>,
    /// Gives the file back at its end: by then its path may lead to another, or be closed to us.
    storing: JoinHandle<File>,
    cache: PieceCache,
}

/// What a finished recording holds.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Per disk, in the header's order.
    pub totals: Vec<Totals>,
    /// Requests (marks not counted).
    pub requests: u64,
    /// Size of the file.
    pub file_bytes: u64,
}

struct Shared {
    path: PathBuf,
    state: Mutex<State>,
    frame_stored: Condvar,
}

#[derive(Default)]
struct State {
    pending: VecDeque<Arc<FrameBuffer>>,
    free: Vec<FrameBuffer>,
    frames_in_memory: usize,
    /// Where each stored frame begins.
    frames_at: Vec<u64>,
    file_bytes: u64,
    failed: Option<(ErrorKind, String)>,
    /// None: whatever the file system takes.
    room: Option<Room>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of the other thread leaves sums and queues that are still consistent entry by
        // entry.
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    fn check(&self) -> Result<()> {
        match &self.failed {
            Some((kind, context)) => Err(Error::new(*kind, context.clone())),
            None => Ok(()),
        }
    }
}

impl Writer {
    /// Begin a recording at `path`, which must not exist. Content is stored as it is:
    /// [`pack`](crate::pack) compresses a
    /// finished recording.
    pub fn create(path: &Path, header: &Header) -> Result<Writer> {
        Self::fill(Output::create(path)?, header)
    }

    /// Begin a recording in an empty file.
    pub fn fill(out: Output, header: &Header) -> Result<Writer> {
        Self::begin(out, header, Content::AsItIs)
    }

    /// Begin a recording whose content is compressed at zstd's `level`: for those that write what
    /// was recorded before.
    pub fn fill_compressed(out: Output, header: &Header, level: i32) -> Result<Writer> {
        Self::begin(out, header, Content::Compressed(level))
    }

    fn begin(out: Output, header: &Header, content: Content) -> Result<Writer> {
        let bytes = header.to_bytes()?;
        let Output { mut file, path } = out;
        let path = path.as_path();
        file.write_all(&bytes)
            .map_err(|e| Error::io("writing", path, e))?;
        let reading = file
            .try_clone()
            .map_err(|e| Error::io("opening", path, e))?;
        let state = State {
            file_bytes: bytes.len() as u64,
            frames_in_memory: 1,
            ..State::default()
        };
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            state: Mutex::new(state),
            frame_stored: Condvar::new(),
        });
        let encoder = Encoder::new(content)?;
        let (sealed, receiver) = channel();
        let storing = std::thread::Builder::new()
            .name("store-frames".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || store_frames(&shared, file, encoder, &receiver)
            })
            .map_err(|e| Error::io("starting a thread for", path, e))?;
        Ok(Writer {
            disks: header.disks.clone(),
            open: FrameBuffer::new(0),
            next_sequence: 1,
            totals: vec![Totals::default(); header.disks.len()],
            requests: 0,
            last_complete_ns: 0,
            shared,
            sealed,
            storing,
            cache: PieceCache::new(reading),
        })
    }

    /// Keep the recording within `room` from now on.
    pub fn keep_within(&mut self, room: Room) {
        self.shared.lock().room = Some(room);
    }

    /// The reason why every request is refused, if there is one.
    pub fn check(&self) -> Result<()> {
        self.shared.lock().check()
    }

    /// Refuse every further request, for a reason of the caller's.
    pub fn fail(&mut self, kind: ErrorKind, what: impl Into<String>) {
        self.shared.lock().failed.get_or_insert((kind, what.into()));
    }

    /// Space for the next write's content, at least
    /// [`MAX_REQUEST_BYTES`](crate::MAX_REQUEST_BYTES): fill its beginning, then
    /// [`append`](Self::append). What is not appended is overwritten by the next.
    pub fn space(&mut self) -> &mut [u8] {
        self.open.space()
    }

    /// Log one request. The content of a write is already at the beginning of
    /// [`space`](Self::space); the returned location says
    /// where it stays. Times may not run backwards.
    pub fn append(&mut self, event: Event) -> Result<Location> {
        event
            .check(&self.disks)
            .map_err(|what| Error::new(ErrorKind::Invalid, what))?;
        if let Some(totals) = self.totals.get_mut(usize::from(event.disk)) {
            totals.add(&event);
        }
        self.requests += 1;
        let content_bytes = if event.op == Op::Write {
            event.length as usize
        } else {
            0
        };
        self.push(event, content_bytes)
    }

    /// Log a mark; everything before it is sent on its way to the file.
    pub fn mark(&mut self, mark: &Mark, at_ns: u64) -> Result<()> {
        let bytes = mark.to_bytes()?;
        self.open.space()[..bytes.len()].copy_from_slice(&bytes);
        let event = Event {
            submit_ns: at_ns,
            complete_ns: at_ns,
            offset: 0,
            length: bytes.len() as u64,
            content_offset: 0,
            disk: 0,
            op: Op::Mark,
            fua: false,
        };
        self.push(event, bytes.len())?;
        self.seal()
    }

    fn push(&mut self, mut event: Event, content_bytes: usize) -> Result<Location> {
        // Once storing has failed, every request is refused, not only the one that fills a frame.
        self.shared.lock().check()?;
        event.complete_ns = event.complete_ns.max(self.last_complete_ns);
        self.last_complete_ns = event.complete_ns;
        let frame = self.open.sequence;
        let content_offset = self.open.push(event, content_bytes);
        if self.open.is_full()
            && let Err(error) = self.seal()
        {
            // It will never be stored; emptied, it still has space for the content of the requests
            // that are refused.
            self.open.reset(self.open.sequence);
            return Err(error);
        }
        Ok(Location {
            frame,
            content_offset,
        })
    }

    /// Hand the frame being filled to the storing thread, unless it is empty. Waits while too many
    /// are unstored.
    pub fn seal(&mut self) -> Result<()> {
        if self.open.is_empty() {
            return self.shared.lock().check();
        }
        let mut state = self.shared.lock();
        while state.free.is_empty()
            && state.frames_in_memory >= FRAMES_IN_MEMORY
            && state.failed.is_none()
        {
            state = self
                .shared
                .frame_stored
                .wait(state)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        state.check()?;
        let next = match state.free.pop() {
            Some(mut buffer) => {
                buffer.reset(self.next_sequence);
                buffer
            }
            None => {
                state.frames_in_memory += 1;
                FrameBuffer::new(self.next_sequence)
            }
        };
        self.next_sequence += 1;
        let full = Arc::new(std::mem::replace(&mut self.open, next));
        state.pending.push_back(Arc::clone(&full));
        drop(state);
        // The receiver is gone only after a failure, which the next check reports.
        let _ = self.sealed.send(full);
        Ok(())
    }

    /// Copy content that was appended earlier.
    pub fn read(&mut self, location: Location, into: &mut [u8]) -> Result<()> {
        let from = location.content_offset as usize;
        let range = from..from + into.len();
        if location.frame == self.open.sequence {
            into.copy_from_slice(&self.open.content()[range]);
            return Ok(());
        }
        let state = self.shared.lock();
        if let Some(frame) = state.pending.iter().find(|f| f.sequence == location.frame) {
            into.copy_from_slice(&frame.content()[range]);
            return Ok(());
        }
        let at = state.frames_at.get(location.frame as usize).copied();
        drop(state);
        let at = at.ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("frame {} was not stored", location.frame),
            )
        })?;
        self.cache.read(at, location, into)
    }

    /// The disks that the recording was begun with.
    pub fn disks(&self) -> &[DiskInfo] {
        &self.disks
    }

    /// Sums so far, per disk.
    pub fn totals(&self) -> &[Totals] {
        &self.totals
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Store everything and the frame that says that the recording is whole.
    pub fn finish(self) -> Result<Summary> {
        self.store(true)
    }

    /// Store everything, but say that more should have come: a copy of a recording that was cut is
    /// cut, too.
    pub fn cut(self) -> Result<Summary> {
        self.store(false)
    }

    fn store(mut self, whole: bool) -> Result<Summary> {
        self.seal()?;
        let Writer {
            sealed,
            storing,
            shared,
            totals,
            requests,
            ..
        } = self;
        drop(sealed);
        let Ok(mut file) = storing.join() else {
            return Err(Error::new(
                ErrorKind::Io,
                format!("storing {} stopped", shared.path.display()),
            ));
        };
        let mut state = shared.lock();
        state.check()?;
        if whole {
            let end = end_frame(state.frames_at.len() as u32, self.last_complete_ns);
            file.write_all(end.as_bytes())
                .map_err(|e| Error::io("writing", &shared.path, e))?;
            state.file_bytes += end.as_bytes().len() as u64;
        }
        Ok(Summary {
            totals,
            requests,
            file_bytes: state.file_bytes,
        })
    }
}

/// The storing thread: ends when the writer is dropped, or at the first failure, after which every
/// request fails. Gives the file back, for
/// its last frame: opened again by its name, it could be another.
fn store_frames(
    shared: &Shared,
    mut file: File,
    mut encoder: Encoder,
    sealed: &Receiver<Arc<FrameBuffer>>,
) -> File {
    let _ending = Ending(shared);
    let mut encoded = EncodedFrame::default();
    while let Ok(frame) = sealed.recv() {
        fail_point("storing");
        let stored = encoder.encode(&frame, &mut encoded).and_then(|()| {
            let written = encoded.write(&frame, &mut file);
            written.map_err(|e| Error::io("writing", &shared.path, e))
        });
        let mut state = shared.lock();
        let (room, file_bytes) = (state.room, state.file_bytes + encoded.stored_bytes());
        let stored = stored.and_then(|()| match room {
            Some(room) => room.check(&file, &shared.path, file_bytes),
            None => Ok(()),
        });
        if let Err(error) = stored {
            // Cut what was half written: the file ends with its last complete frame.
            let _ = file.set_len(state.file_bytes);
            state.failed = Some((error.kind, error.context));
            shared.frame_stored.notify_all();
            return file;
        }
        let at = state.file_bytes;
        state.frames_at.push(at);
        state.file_bytes += encoded.stored_bytes();
        state.pending.pop_front();
        match Arc::try_unwrap(frame) {
            Ok(buffer) => state.free.push(buffer),
            Err(_) => state.frames_in_memory -= 1,
        }
        shared.frame_stored.notify_all();
    }
    file
}

/// Held by the storing thread: however it ends, nobody waits for it any more.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let what = format!(
                "storing {} stopped: a defect of fscost",
                self.0.path.display()
            );
            self.0.lock().failed.get_or_insert((ErrorKind::Io, what));
        }
        self.0.frame_stored.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `seal` waits while all buffers are unstored; without the guard this test never ends.
    #[test]
    fn nobody_waits_for_a_storing_thread_that_panicked() {
        let shared = Arc::new(Shared {
            path: "x".into(),
            state: Mutex::default(),
            frame_stored: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        let storing = std::thread::spawn(move || {
            let _ending = Ending(&theirs);
            panic!("injected");
        });
        let state = shared.lock();
        let wait = shared
            .frame_stored
            .wait_while(state, |state| state.failed.is_none());
        assert_eq!(wait.unwrap().check().unwrap_err().kind, ErrorKind::Io);
        assert!(storing.join().is_err());
    }
}
