//! Sealed frames on their way to the storing thread, which encodes them itself or lets other
//! threads do it ahead.

use crate::{
    Error, Result,
    frame::{Content, EncodedFrame, Encoder, FrameBuffer},
};
use std::{
    num::NonZero,
    path::Path,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

/// Largest number of encoding threads. More would only wait for frames, of which the writer has at
/// most sixteen.
const MAX_THREADS: usize = 8;

/// A frame with its encoding.
type Encoded = (Arc<FrameBuffer>, Result<EncodedFrame>);

/// The end of the queue where frames are put.
pub(crate) struct Sealed {
    queues: Vec<Sender<Arc<FrameBuffer>>>,
    next: usize,
}

impl Sealed {
    /// Passes a frame on. A receiver that is gone has failed, which the writer's next check
    /// reports.
    pub fn send(&mut self, frame: Arc<FrameBuffer>) {
        let _ = self.queues[self.next].send(frame);
        self.next = (self.next + 1) % self.queues.len();
    }
}

/// The end of the queue from which the storing thread takes frames, in the order of sealing.
pub(crate) struct Frames {
    source: Source,
    encoded: EncodedFrame,
}

enum Source {
    /// The storing thread encodes.
    Here(Receiver<Arc<FrameBuffer>>, Encoder),
    /// Each thread encodes every nth frame.
    Ahead {
        threads: Vec<Receiver<Encoded>>,
        next: usize,
    },
}

impl Frames {
    fn new(source: Source) -> Frames {
        let encoded = EncodedFrame::default();
        Frames { source, encoded }
    }

    /// Returns the next frame with its encoding; `None` after the last.
    pub fn next(&mut self) -> Option<(Arc<FrameBuffer>, Result<&EncodedFrame>)> {
        let (frame, result) = match &mut self.source {
            Source::Here(sealed, encoder) => {
                let frame = sealed.recv().ok()?;
                let result = encoder.encode(&frame, &mut self.encoded);
                (frame, result)
            }
            Source::Ahead { threads, next } => {
                // Frames are dealt in turn: if the next thread has none, there are no more frames.
                let (frame, result) = threads[*next].recv().ok()?;
                *next = (*next + 1) % threads.len();
                (frame, result.map(|encoded| self.encoded = encoded))
            }
        };
        Some((frame, result.map(|()| &self.encoded)))
    }
}

/// Creates a queue. Compression at a level takes longer than storing, so it gets a thread for each
/// core; each of them holds a guard that `guard` makes.
pub(crate) fn queue<G: Send + 'static>(
    content: Content,
    path: &Path,
    guard: impl Fn() -> G,
) -> Result<(Sealed, Frames)> {
    let Content::Compressed(_) = content else {
        let (sender, sealed) = channel();
        let source = Source::Here(sealed, Encoder::new(content)?);
        let queues = vec![sender];
        return Ok((Sealed { queues, next: 0 }, Frames::new(source)));
    };
    let count = thread::available_parallelism().map_or(1, NonZero::get);
    let (mut queues, mut threads) = (Vec::new(), Vec::new());
    for _ in 0..count.min(MAX_THREADS) {
        let (queue, sealed) = channel::<Arc<FrameBuffer>>();
        let (done, encoded) = channel();
        let (mut encoder, guard) = (Encoder::new(content)?, guard());
        let encode = move || {
            let _guard = guard;
            for frame in sealed {
                let mut encoded = EncodedFrame::default();
                let result = encoder.encode(&frame, &mut encoded);
                if done.send((frame, result.map(|()| encoded))).is_err() {
                    return;
                }
            }
        };
        let name = thread::Builder::new().name("encode-frames".into());
        name.spawn(encode)
            .map_err(|e| Error::io("starting a thread for", path, e))?;
        queues.push(queue);
        threads.push(encoded);
    }
    let source = Source::Ahead { threads, next: 0 };
    Ok((Sealed { queues, next: 0 }, Frames::new(source)))
}
