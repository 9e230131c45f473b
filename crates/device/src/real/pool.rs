//! Threads that carry out requests on devices.

use super::disk::RealDisk;
use crate::{
    backend::{Clock, Request},
    timing::{Part, Replies, lock, run_first},
};
use fscost_recording::MAX_REQUEST_BYTES;
use std::{
    collections::VecDeque,
    io,
    ops::Range,
    sync::{Arc, Barrier, Condvar, Mutex, PoisonError},
    thread::JoinHandle,
};

/// Number of threads: as many as FUSE has requests in flight.
const THREADS: usize = 128;
const PAGE_BYTES: usize = 4096;
const STACK_BYTES: usize = 128 << 10;

/// Result of a request: the data read, or the error.
pub type Outcome<'a> = io::Result<&'a [u8]>;

/// A request for a device.
pub struct Job {
    /// Number of the request in the recording.
    pub number: u64,
    pub disk: Arc<RealDisk>,
    pub request: Request,
    /// Buffer of a read or a write.
    pub buffer: Option<Buffer>,
    /// Ranges that read as zeros.
    pub unwritten: Vec<Range<usize>>,
    pub reply: Box<dyn FnOnce(Outcome<'_>) + Send>,
}

/// Memory for direct I/O, aligned to a page.
pub struct Buffer {
    memory: Vec<u8>,
    begin: usize,
    length: usize,
}

impl Buffer {
    fn new() -> Self {
        let memory = vec![0; MAX_REQUEST_BYTES + PAGE_BYTES];
        let begin = memory.as_ptr().align_offset(PAGE_BYTES);
        Self {
            memory,
            begin,
            length: 0,
        }
    }

    /// The requested number of bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + self.length]
    }
}

/// The threads and their shared state.
pub struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    queue: Mutex<Queue>,
    some: Condvar,
    free: Mutex<Vec<Buffer>>,
    failure: Mutex<Option<String>>,
    replies: Arc<Replies>,
    clock: Clock,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    is_ending: bool,
}

impl Pool {
    /// Start the threads, with their scheduling class, which needs a privilege.
    pub fn start(clock: Clock, replies: Arc<Replies>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            some: Condvar::new(),
            free: Mutex::default(),
            failure: Mutex::default(),
            replies,
            clock,
        });
        let started = Arc::new(Barrier::new(THREADS + 1));
        let start = |number| {
            let (shared, started) = (Arc::clone(&shared), Arc::clone(&started));
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            builder.name(format!("device-{number}")).spawn(move || {
                run_first();
                started.wait();
                shared.work();
            })
        };
        let threads = (0..THREADS).map(start).collect::<io::Result<_>>()?;
        started.wait();
        Ok(Self {
            shared,
            threads: Mutex::new(threads),
        })
    }

    /// Get a buffer of `length` bytes with unspecified content.
    pub fn buffer(&self, length: usize) -> Buffer {
        let free = lock(&self.shared.free).pop();
        let mut buffer = free.unwrap_or_else(Buffer::new);
        buffer.length = length.min(MAX_REQUEST_BYTES);
        buffer
    }

    /// Pass a request to a thread.
    pub fn submit(&self, job: Job) {
        lock(&self.shared.queue).jobs.push_back(job);
        self.shared.some.notify_one();
    }

    /// Returns the first failure of a device, if any.
    pub fn failure(&self) -> Option<String> {
        lock(&self.shared.failure).clone()
    }

    /// Wait until all requests are done.
    pub fn finish(&self) {
        lock(&self.shared.queue).is_ending = true;
        self.shared.some.notify_all();
        for thread in lock(&self.threads).drain(..) {
            // A thread that panicked has aborted the process.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        let _guard = crate::timing::AbortOnPanic;
        while let Some(job) = self.next() {
            self.carry_out(job);
        }
    }

    /// Get the next request, or none at the end.
    fn next(&self) -> Option<Job> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.is_ending {
                return None;
            }
            queue = self
                .some
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn carry_out(&self, mut job: Job) {
        let mut none = [];
        let content = job.buffer.as_mut().map_or(&mut none[..], Buffer::bytes);
        let done = job.disk.carry_out(&job.request, content);
        let at_ns = self.clock.now_ns();
        for range in job.unwritten {
            content[range].fill(0);
        }
        if let Err(error) = &done {
            self.note_failure(&job.disk, &job.request, error);
        }
        (job.reply)(done.map(|()| &*content));
        let part = Part {
            number: job.number,
            at_ns,
        };
        self.replies.note(&[part], self.clock.now_ns());
        lock(&self.free).extend(job.buffer);
    }

    fn note_failure(&self, disk: &RealDisk, request: &Request, error: &io::Error) {
        let Request {
            op, offset, length, ..
        } = request;
        let what = format!(
            "{} failed a request ({}, {length} bytes at byte {offset}): {error}",
            disk.path,
            op.name()
        );
        lock(&self.failure).get_or_insert(what);
    }
}
