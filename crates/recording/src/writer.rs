//! Writer of a recording while disks are served. Content goes straight into the frame being filled.
//! A second thread encodes and stores sealed frames, so that a request waits for neither.

use crate::{
    Error, ErrorKind, Event, Location, Mark, Op, Output, Reply, Result, Room, Totals,
    encoding::{self, Frames, Sealed},
    fail_point,
    format::{DiskInfo, Header},
    frame::{Content, FrameBuffer, end_frame},
    piece_cache::PieceCache,
};
use std::{
    collections::VecDeque,
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};
use zerocopy::IntoBytes;

/// Maximum number of frames in memory, including the one being filled. It bounds the server's
/// memory at about 21 MiB.
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
    sealed: Sealed,
    /// Returns the file at the end. By then, its path may lead to another file or be inaccessible.
    storing: JoinHandle<File>,
    cache: PieceCache,
}

/// Totals of a finished recording.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Totals per disk, in the header's order.
    pub totals: Vec<Totals>,
    /// Number of requests, excluding marks.
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
    /// Offset of each stored frame.
    frames_at: Vec<u64>,
    file_bytes: u64,
    failed: Option<(ErrorKind, String)>,
    /// Limits of the file; `None` if only the file system limits it.
    room: Option<Room>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic of the other thread, sums and queues are still consistent entry by entry.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Begins a recording at `path`, which must not exist. Content is stored uncompressed:
    /// a [`Packer`](crate::Packer) compresses a finished recording.
    pub fn create(path: &Path, header: &Header) -> Result<Writer> {
        Self::fill(Output::create(path)?, header)
    }

    /// Begins a recording in an empty file.
    pub fn fill(out: Output, header: &Header) -> Result<Writer> {
        Self::begin(out, header, Content::AsItIs)
    }

    /// Begins a recording whose content is compressed at zstd's `level`, for callers that copy an
    /// earlier recording.
    pub fn fill_compressed(out: Output, header: &Header, level: i32) -> Result<Writer> {
        Self::begin(out, header, Content::Compressed(level))
    }

    fn begin(out: Output, header: &Header, content: Content) -> Result<Writer> {
        let bytes = header.to_bytes()?;
        let Output { mut file, path } = out;
        let path = path.as_path();
        file.write_all(&bytes)
            .map_err(|e| Error::io("writing", path, e))?;
        let cache = PieceCache::new(&file, path)?;
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
        let guard = || Ending(Arc::clone(&shared));
        let (sealed, frames) = encoding::queue(content, path, guard)?;
        let for_thread = Arc::clone(&shared);
        let store = move || store_frames(&for_thread, file, frames);
        let thread = std::thread::Builder::new().name("store-frames".into());
        let storing = thread
            .spawn(store)
            .map_err(|e| Error::io("starting a thread for", path, e))?;
        Ok(Writer {
            disks: header.disks.clone(),
            open: FrameBuffer::new(),
            next_sequence: 1,
            totals: vec![Totals::default(); header.disks.len()],
            requests: 0,
            last_complete_ns: 0,
            shared,
            sealed,
            storing,
            cache,
        })
    }

    /// Limits the recording to `room` from now on.
    pub fn keep_within(&mut self, room: Room) {
        self.shared.lock().room = Some(room);
    }

    /// Fails with the reason if every request is refused.
    pub fn check(&self) -> Result<()> {
        self.shared.lock().check()
    }

    /// Refuses every further request, for a reason given by the caller.
    pub fn fail(&mut self, kind: ErrorKind, what: impl Into<String>) {
        self.shared.lock().failed.get_or_insert((kind, what.into()));
    }

    /// Returns the space for the next write's content, at least
    /// [`MAX_REQUEST_BYTES`](crate::MAX_REQUEST_BYTES). Fill its beginning, then call
    /// [`append`](Self::append). Content that is not appended is overwritten by the next write.
    pub fn space(&mut self) -> &mut [u8] {
        self.open.space()
    }

    /// Logs one request. The content of a write must already be at the beginning of
    /// [`space`](Self::space); the returned location says where it is kept. Times must not run
    /// backwards.
    pub fn append(&mut self, event: Event) -> Result<Location> {
        event.check(&self.disks).map_err(Error::invalid)?;
        if let Some(totals) = self.totals.get_mut(usize::from(event.disk)) {
            totals.add(&event);
        }
        self.requests += 1;
        self.push(event)
    }

    /// Logs a mark, and starts storing everything before it.
    pub fn mark(&mut self, mark: &Mark, at_ns: u64) -> Result<()> {
        let bytes = mark.to_bytes()?;
        self.open.space()[..bytes.len()].copy_from_slice(&bytes);
        let event = Event {
            length: bytes.len() as u64,
            ..Event::new(Op::Mark, at_ns)
        };
        self.push(event)?;
        self.seal()
    }

    fn push(&mut self, mut event: Event) -> Result<Location> {
        // Once storing has failed, every request is refused, not only one that fills a frame.
        self.shared.lock().check()?;
        event.complete_ns = event.complete_ns.max(self.last_complete_ns);
        self.last_complete_ns = event.complete_ns;
        let frame = self.open.sequence;
        let content_offset = self.open.push(event);
        self.seal_if_full()?;
        Ok(Location {
            frame,
            content_offset,
        })
    }

    /// Logs the reply to a request that was appended earlier.
    /// Content in [`space`](Self::space) that was not appended is lost.
    pub fn reply(&mut self, reply: Reply) -> Result<()> {
        self.shared.lock().check()?;
        self.open.push_reply(reply);
        self.seal_if_full()
    }

    fn seal_if_full(&mut self) -> Result<()> {
        if self.open.is_full()
            && let Err(error) = self.seal()
        {
            // The frame will never be stored. Once emptied, it still has space for the content of
            // refused requests.
            self.open.reset(self.open.sequence, self.last_complete_ns);
            return Err(error);
        }
        Ok(())
    }

    /// Passes the frame being filled to the storing thread, unless it is empty. Blocks while too
    /// many frames are unstored.
    pub fn seal(&mut self) -> Result<()> {
        if self.open.is_empty() {
            return self.shared.lock().check();
        }
        let must_wait = |state: &State| {
            let is_full = state.frames_in_memory >= FRAMES_IN_MEMORY;
            state.free.is_empty() && is_full && state.failed.is_none()
        };
        let mut state = self.shared.lock();
        // Not `wait_while`, which stops waiting once the lock is poisoned.
        while must_wait(&state) {
            let waited = self.shared.frame_stored.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.check()?;
        let mut next = state.free.pop().unwrap_or_else(|| {
            state.frames_in_memory += 1;
            FrameBuffer::new()
        });
        next.reset(self.next_sequence, self.last_complete_ns);
        self.next_sequence += 1;
        let full = Arc::new(std::mem::replace(&mut self.open, next));
        state.pending.push_back(Arc::clone(&full));
        drop(state);
        self.sealed.send(full);
        Ok(())
    }

    /// Copies content that was appended earlier.
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
        let missing = || Error::invalid(format!("frame {} was not stored", location.frame));
        self.cache.read(at.ok_or_else(missing)?, location, into)
    }

    /// Returns the disks given at the beginning of the recording.
    pub fn disks(&self) -> &[DiskInfo] {
        &self.disks
    }

    /// Returns the totals so far, per disk.
    pub fn totals(&self) -> &[Totals] {
        &self.totals
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Stores everything and the end frame, which marks the recording as complete.
    pub fn finish(self) -> Result<Summary> {
        self.store(true)
    }

    /// Stores everything without an end frame: a copy of a truncated recording is truncated, too.
    pub fn cut(self) -> Result<Summary> {
        self.store(false)
    }

    fn store(mut self, whole: bool) -> Result<Summary> {
        self.seal()?;
        drop(self.sealed);
        let path = &self.shared.path;
        let Ok(mut file) = self.storing.join() else {
            let what = format!("the thread that stores {} panicked", path.display());
            return Err(Error::new(ErrorKind::Io, what));
        };
        let mut state = self.shared.lock();
        state.check()?;
        if whole {
            let end = end_frame(state.frames_at.len() as u32, self.last_complete_ns);
            file.write_all(end.as_bytes())
                .map_err(|e| Error::io("writing", path, e))?;
            state.file_bytes += end.as_bytes().len() as u64;
        }
        Ok(Summary {
            totals: self.totals,
            requests: self.requests,
            file_bytes: state.file_bytes,
        })
    }
}

/// Runs the storing thread. It ends when the writer is dropped, or at the first failure, after
/// which every request fails. Returns the file for its last frame, because the path could lead to
/// another file by then.
fn store_frames(shared: &Arc<Shared>, mut file: File, mut frames: Frames) -> File {
    let _ending = Ending(Arc::clone(shared));
    while let Some((frame, encoded)) = frames.next() {
        fail_point("storing");
        let stored = encoded.and_then(|encoded| {
            let written = encoded.write(&frame, &mut file);
            written.map_err(|e| Error::io("writing", &shared.path, e))?;
            Ok(encoded.stored_bytes())
        });
        let mut state = shared.lock();
        let at = state.file_bytes;
        let stored = stored.and_then(|bytes| match state.room {
            Some(room) => room.check(&file, &shared.path, at + bytes).map(|()| bytes),
            None => Ok(bytes),
        });
        match stored {
            Ok(bytes) => state.file_bytes += bytes,
            Err(error) => {
                // Truncate a partial write: the file ends with its last complete frame.
                let _ = file.set_len(at);
                state.failed = Some((error.kind, error.context));
                return file;
            }
        }
        state.frames_at.push(at);
        state.pending.pop_front();
        match Arc::try_unwrap(frame) {
            Ok(buffer) => state.free.push(buffer),
            Err(_) => state.frames_in_memory -= 1,
        }
        shared.frame_stored.notify_all();
    }
    file
}

/// Guard held by the threads that encode and store: however they end, no thread keeps waiting for
/// them.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let path = self.0.path.display();
            let what = format!("the thread that stores {path} panicked: a bug in fscost");
            self.0.lock().failed.get_or_insert((ErrorKind::Io, what));
        }
        self.0.frame_stored.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests `seal`, which blocks while all buffers are unstored. Without the guard, this test
    /// never ends.
    #[test]
    fn nobody_waits_for_a_storing_thread_that_panicked() {
        let shared = Arc::new(Shared {
            path: "x".into(),
            state: Mutex::default(),
            frame_stored: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        let storing = std::thread::spawn(move || {
            let _ending = Ending(theirs);
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
