//! Disks with the timing of a model. A request is carried out and recorded at once, and its reply
//! waits until the model has completed it.
//!
//! A model sees each request at the submission time in the recording, so that the same submissions
//! always have the same completions. A separate thread sends replies.

mod awake;
pub mod models;
mod queue;
mod rehearsal;
mod replies;
mod timer;

pub use queue::{Part, Reply, Ticket};
pub use replies::Replies;
pub use timer::run_first;

use crate::backend::{Clock, Request};
use awake::Awake;
use fscost_latency::Device;
use queue::{Due, Queue};
use rehearsal::Rehearsal;
use std::{
    io,
    sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError, RwLock},
    thread::JoinHandle,
};
use timer::{Timer, Waiter};

/// More than the time in which most requests are carried out and recorded.
const SOON_NS: u64 = 50_000;

/// The models of a cell's disks, and the replies that wait for them.
pub struct Timing {
    shared: Arc<Shared>,
    sender: Mutex<Option<JoinHandle<()>>>,
    _awake: Option<Awake>,
}

struct Shared {
    state: Mutex<State>,
    replies: Arc<Replies>,
    /// Held by threads that send: a client that has its reply may end the recording at once.
    sending: RwLock<()>,
    timer: Timer,
    clock: Clock,
}

struct State {
    queue: Queue,
    is_ending: bool,
}

impl Timing {
    /// Start the thread that sends replies, with its scheduling class, and keep the processors
    /// awake. Both need a privilege.
    pub fn start(
        models: Vec<Option<Device>>,
        clock: Clock,
        replies: Arc<Replies>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                queue: Queue::new(models),
                is_ending: false,
            }),
            replies,
            sending: RwLock::default(),
            timer: Timer::new(clock)?,
            clock,
        });
        // Before the caller enters its filter of system calls, which makes no sockets.
        let rehearsal = Rehearsal::new();
        let started = Arc::new(Barrier::new(2));
        let sender = std::thread::Builder::new().name("reply".into()).spawn({
            let (shared, started) = (Arc::clone(&shared), Arc::clone(&started));
            move || {
                let _guard = AbortOnPanic;
                run_first();
                started.wait();
                shared.send_replies(rehearsal);
            }
        })?;
        started.wait();
        Ok(Self {
            shared,
            sender: Mutex::new(Some(sender)),
            _awake: Awake::begin(),
        })
    }

    /// Submit a request to the model of its disk, and set its submission time; returns none if the
    /// disk has no model. `first` is the request's number in the recording. If the recording splits
    /// the request into several `parts`, they are numbered from `first` on, and each is one request
    /// to the model.
    pub fn submit(&self, first: u64, parts: &mut [Request]) -> Option<Ticket> {
        let mut state = lock(&self.shared.state);
        // Read under the lock, so that the times passed to a model never run backwards.
        let now_ns = self.shared.clock.now_ns();
        let ticket = state.queue.submit(now_ns, first, parts)?;
        // The sender precedes this thread on its processor, so it would delay a request that the
        // model completes at once. `reply` sets the timer for such a request.
        let next_ns = state.queue.next_ns();
        if next_ns.is_none_or(|next_ns| next_ns > now_ns + SOON_NS) {
            self.shared.timer.set(next_ns);
        }
        Some(ticket)
    }

    /// Send a reply once the model has completed all parts of its request: now, if it has.
    pub fn reply(&self, ticket: Ticket, reply: Reply) {
        let _sending = self.shared.sending.read();
        let mut state = lock(&self.shared.state);
        let mut due = state.queue.advance(self.shared.clock.now_ns());
        due.extend(state.queue.reply(ticket, reply));
        self.shared.timer.set(state.queue.next_ns());
        drop(state);
        self.shared.send(due);
    }

    /// Send all waiting replies at once. Afterwards, every reply is noted.
    pub fn finish(&self) {
        let mut state = lock(&self.shared.state);
        state.is_ending = true;
        let left = state.queue.drain();
        // A time long past, to wake and end the sender.
        self.shared.timer.set(Some(1));
        drop(state);
        self.shared.send(left);
        if let Some(sender) = lock(&self.sender).take() {
            // The thread cannot have panicked: that would have aborted the process.
            let _ = sender.join();
        }
        // Wait until the last reply is noted.
        drop(self.shared.sending.write());
    }
}

impl Shared {
    fn send_replies(&self, mut rehearsal: Rehearsal) {
        let mut waiter = Waiter::default();
        loop {
            let now_ns = self.timer.wait(&mut waiter, || rehearsal.hold());
            let mut state = lock(&self.state);
            if state.is_ending {
                return;
            }
            let due = state.queue.advance(now_ns);
            self.timer.set(state.queue.next_ns());
            drop(state);
            self.send(due);
        }
    }

    fn send(&self, due: Vec<Due>) {
        for each in due {
            (each.reply)();
            self.replies.note(&each.parts, self.clock.now_ns());
        }
    }
}

/// Locks a mutex, even if a thread panicked while holding it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Aborts the process if its thread panics. Without the sender or the device's thread, a request
/// would hang in the kernel forever.
pub struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fscost_latency::Model;
    use fscost_recording::Op;
    use std::sync::mpsc;

    const AT_ONCE: &str = "[latency]\nmodel = \"constant\"\nwrite_us = 0.001\nflush_us = 0.001\n";

    #[test]
    fn a_reply_that_is_due_does_not_wait_for_the_sender() {
        let model = Model::parse("at-once", AT_ONCE).unwrap();
        let devices = vec![Some(Device::new(&model, 1 << 20, 1))];
        let noted = Arc::new(Replies::default());
        let timing = Timing::start(devices, Clock::start(), Arc::clone(&noted)).unwrap();
        let (sent, replies) = mpsc::channel();
        for number in 0..100 {
            let mut parts = [Request {
                submit_ns: 0,
                disk: 0,
                op: if number % 2 == 0 {
                    Op::Write
                } else {
                    Op::Flush
                },
                offset: 0,
                length: 0,
                fua: false,
            }];
            let ticket = timing.submit(number, &mut parts).unwrap();
            let sent = sent.clone();
            timing.reply(
                ticket,
                Box::new(move || sent.send(std::thread::current().id()).unwrap()),
            );
            assert_eq!(replies.try_recv(), Ok(std::thread::current().id()));
        }
        timing.finish();
        let mut replies = Vec::new();
        noted.take(&mut replies);
        let requests: Vec<u64> = replies.iter().map(|reply| reply.request).collect();
        assert_eq!(requests, (0..100).collect::<Vec<_>>());
    }
}
