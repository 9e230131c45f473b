//! Frame read-ahead on other threads. Unpacking takes most of the time of any walk that looks at
//! all content.

use crate::{Contents, Error, Expected, Frame, Recording, Result};
use std::{
    num::NonZero,
    sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    thread,
};

/// Largest number of reading threads. More would only wait for the thread that visits the frames.
const MAX_THREADS: usize = 4;
/// Unpacked frames that wait to be visited, per thread. With the one being filled and the one being
/// visited, a thread has four, each of at most 1.25 MiB.
const WAITING_FRAMES: usize = 2;

impl Recording {
    /// Visits all events and their content in order of completion, like
    /// [`for_each_frame`](Self::for_each_frame). The calling thread only visits.
    ///
    /// The other threads unpack the packed content that `expected` predicts to be read. The
    /// prediction precedes the visit, so a wrong prediction only costs time.
    pub fn for_each_frame_ahead(
        &self,
        contents: Contents,
        expected: &Expected<'_>,
        visit: impl FnMut(usize, &mut Frame) -> Result<bool>,
    ) -> Result<()> {
        let all: Vec<_> = (0..self.frames().len()).collect();
        self.for_frames_ahead(&all, contents, expected, visit)
    }

    /// Visits only these frames, in the same way.
    pub(crate) fn for_frames_ahead(
        &self,
        frames: &[usize],
        contents: Contents,
        expected: &Expected<'_>,
        mut visit: impl FnMut(usize, &mut Frame) -> Result<bool>,
    ) -> Result<()> {
        // One thread per core: unpacking takes longer than most visits. If it does not, the threads
        // wait.
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = cores.min(MAX_THREADS);
        thread::scope(|scope| {
            let mut readers = Vec::new();
            for first in 0..threads {
                let (full, next) = sync_channel(WAITING_FRAMES);
                let (used, empty) = channel();
                let mine = frames.iter().skip(first).step_by(threads);
                let read = move || self.read_each(mine, contents, expected, &full, &empty);
                let name = thread::Builder::new().name("read-frames".into());
                name.spawn_scoped(scope, read)
                    .map_err(|e| Error::io("starting a thread for", self.path(), e))?;
                readers.push((next, used));
            }
            for (turn, &index) in frames.iter().enumerate() {
                let (next, used): &(Receiver<Result<Frame>>, Sender<Frame>) =
                    &readers[turn % threads];
                // A reader ends early only after an error, which it sends first, or by a panic,
                // which the scope propagates.
                let Ok(frame) = next.recv() else {
                    return Ok(());
                };
                let mut frame = frame?;
                if !visit(index, &mut frame)? {
                    return Ok(());
                }
                // Fails once the reader has read its last frame.
                let _ = used.send(frame);
            }
            Ok(())
        })
    }

    /// Reads these frames until the receiver is dropped.
    fn read_each<'f>(
        &self,
        frames: impl Iterator<Item = &'f usize>,
        contents: Contents,
        expected: &Expected<'_>,
        full: &SyncSender<Result<Frame>>,
        empty: &Receiver<Frame>,
    ) {
        for &index in frames {
            let mut frame = empty.try_recv().unwrap_or_default();
            let read = self.read_frame_with(index, contents, &mut frame).map(|()| {
                frame.unpack_expected(expected);
                frame
            });
            let failed = read.is_err();
            if full.send(read).is_err() || failed {
                return;
            }
        }
    }
}
