//! Reads frames ahead on other threads: unpacking takes most of the time of whoever looks at all
//! content.

use crate::{Contents, Error, Event, Frame, Recording, Result};
use std::{
    num::NonZero,
    sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    thread,
};

/// More would only wait for the one that looks at the frames.
const MAX_THREADS: usize = 4;
/// Unpacked frames that wait for their turn, per thread. With the one that is filled and the one
/// that is looked at, a thread has four, each of at most
/// 1.25 MiB.
const WAITING_FRAMES: usize = 2;

/// Says whether the content of an event will be looked at.
pub type Expected<'e> = dyn Fn(&Event) -> bool + Sync + 'e;

impl Recording {
    /// All events and their content, in order of completion, as
    /// [`for_each_frame`](Self::for_each_frame) gives them; the calling thread does nothing
    /// but visit.
    ///
    /// Of content that stays packed, the other threads unpack what `expected` says will be looked at. That is
    /// asked ahead of the visit, so a wrong answer costs time and changes nothing.
    pub fn for_each_frame_ahead(
        &self,
        contents: Contents,
        expected: &Expected<'_>,
        visit: impl FnMut(usize, &mut Frame) -> Result<bool>,
    ) -> Result<()> {
        let all: Vec<_> = (0..self.frames().len()).collect();
        self.for_frames_ahead(&all, contents, expected, visit)
    }

    /// The same of these frames only.
    pub(crate) fn for_frames_ahead(
        &self,
        frames: &[usize],
        contents: Contents,
        expected: &Expected<'_>,
        mut visit: impl FnMut(usize, &mut Frame) -> Result<bool>,
    ) -> Result<()> {
        // As many as cores: unpacking takes longer than most visits, and where it does not, they
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
                // which the scope passes on.
                let Ok(frame) = next.recv() else {
                    return Ok(());
                };
                let mut frame = frame?;
                if !visit(index, &mut frame)? {
                    return Ok(());
                }
                // Refused once its reader has read its last frame.
                let _ = used.send(frame);
            }
            Ok(())
        })
    }

    /// Read these frames until nobody wants them.
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
