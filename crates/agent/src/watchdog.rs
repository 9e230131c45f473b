//! A thread that ends what would not end by itself: a step that exceeds its time limit, processes
//! that a step leaves running, and work on a disk whose server has died.

use crate::error::{CellError, Context, Kind, Result};
use crate::event::{Event, Failed, emit};
use crate::reap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time for which descendants of a command may outlive it.
const LEFTOVER_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for killed processes to end, and for system calls on a dead disk to return.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Number of processes that a message lists.
const MOST_NAMES: usize = 10;
const KILL_PAUSE: Duration = Duration::from_millis(100);

/// Reason for the watchdog's action.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// The step exceeded this time limit.
    Timeout(Duration),
    /// The step's command was stopped and not continued.
    Stopped,
    /// These processes outlived the step's command.
    LeftRunning(Vec<String>),
    /// The disk server has ended or reported an error.
    DiskServer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Stopped,
    Leftover,
    Over,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    deadline: Instant,
    verdict: Option<Verdict>,
}

/// A running watchdog.
#[derive(Debug)]
pub struct Watchdog {
    state: Arc<Mutex<State>>,
    /// A datagram socket, because read and write calls would be counted as the workload's (see
    /// `usage`).
    wake: UnixDatagram,
    thread: Option<JoinHandle<()>>,
    step: String,
    step_deadline: Instant,
}

impl Watchdog {
    /// Watches `step` for `limit`. `server` is the control socket, on which no message may be
    /// expected meanwhile.
    pub fn start(step: &str, limit: Duration, server: Option<OwnedFd>) -> Result<Self> {
        let (wake, woken) = UnixDatagram::pair().internal(|| "make a socket pair")?;
        let step_deadline = Instant::now() + limit;
        let state = Arc::new(Mutex::new(State {
            phase: Phase::Running,
            deadline: step_deadline,
            verdict: None,
        }));
        let guard = Guard {
            state: Arc::clone(&state),
            woken,
            server,
            limit,
            step: step.to_owned(),
        };
        let thread = std::thread::Builder::new()
            .name("watchdog".into())
            .spawn(move || guard.run())
            .internal(|| "start the watchdog")?;
        Ok(Self {
            state,
            wake,
            thread: Some(thread),
            step: step.to_owned(),
            step_deadline,
        })
    }

    /// Notes that the command has ended: its remaining descendants have little time.
    pub fn command_ended(&self) {
        self.change(Phase::Leftover, Instant::now() + LEFTOVER_LIMIT);
    }

    /// Notes that the command was stopped (SIGSTOP) or continued.
    pub fn command_stopped(&self, is_stopped: bool) {
        if is_stopped {
            let deadline = self.step_deadline.min(Instant::now() + LEFTOVER_LIMIT);
            self.change(Phase::Stopped, deadline);
        } else {
            self.change(Phase::Running, self.step_deadline);
        }
    }

    /// Notes that the command and its descendants have ended. What follows has the rest of the
    /// step's time.
    pub fn command_gone(&self) {
        self.change(Phase::Running, self.step_deadline);
    }

    /// Returns the reason for the watchdog's action as a failure, if it acted. If the disk server
    /// ended, it may know the real cause.
    pub fn failure(&self) -> Option<CellError> {
        let verdict = lock(&self.state).verdict.clone();
        verdict.map(|verdict| failure(&self.step, &verdict))
    }

    fn change(&self, phase: Phase, deadline: Instant) {
        let mut state = lock(&self.state);
        state.phase = phase;
        state.deadline = deadline;
        drop(state);
        // If the thread has ended, there is nobody to wake.
        let _ = self.wake.send(&[0]);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.change(Phase::Over, Instant::now());
        if let Some(thread) = self.thread.take() {
            // The thread does not panic; if it did, the step would be over all the same.
            let _ = thread.join();
        }
    }
}

struct Guard {
    state: Arc<Mutex<State>>,
    woken: UnixDatagram,
    server: Option<OwnedFd>,
    limit: Duration,
    step: String,
}

impl Guard {
    fn run(self) {
        if !self.wait_for_cause() {
            return;
        }
        let start = Instant::now();
        loop {
            // Repeated, because processes may be starting others.
            let _ = reap::kill_all();
            if start.elapsed() > END_LIMIT {
                self.give_up();
            }
            if lock(&self.state).phase == Phase::Over {
                return;
            }
            // From now on, the server's socket would be readable all the time.
            self.sleep(Instant::now() + KILL_PAUSE, None);
        }
    }

    /// Waits until there is a reason to act, and notes it; returns false if the step is over before.
    fn wait_for_cause(&self) -> bool {
        loop {
            let deadline = lock(&self.state).deadline;
            let server_spoke = self.sleep(deadline, self.server.as_ref());
            let mut state = lock(&self.state);
            let verdict = match state.phase {
                Phase::Over => return false,
                _ if server_spoke => Verdict::DiskServer,
                _ if Instant::now() < state.deadline => continue,
                Phase::Running => Verdict::Timeout(self.limit),
                Phase::Stopped => Verdict::Stopped,
                Phase::Leftover => Verdict::LeftRunning(names()),
            };
            state.verdict = Some(verdict);
            return true;
        }
    }

    /// Sleeps until `until` or until woken; true if the server's socket has data to read.
    fn sleep(&self, until: Instant, server: Option<&OwnedFd>) -> bool {
        let mut fds = vec![PollFd::new(&self.woken, PollFlags::IN)];
        fds.extend(server.map(|server| PollFd::new(server, PollFlags::IN)));
        let wait = until.saturating_duration_since(Instant::now());
        let wait = Timespec::try_from(wait).unwrap_or_default();
        if poll(&mut fds, Some(&wait)).is_err() {
            return false;
        }
        let server_spoke = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        if !fds[0].revents().is_empty() {
            let _ = self.woken.recv(&mut [0; 8]);
        }
        server_spoke
    }

    /// Reports that the main thread hangs in the kernel, and exits. `supervisor` then ends the disk
    /// server, so that the hanging call returns.
    fn give_up(&self) -> ! {
        let verdict = lock(&self.state)
            .verdict
            .clone()
            .unwrap_or(Verdict::Timeout(self.limit));
        let mut error = failure(&self.step, &verdict);
        let left = names();
        if left.is_empty() {
            error
                .message
                .push_str("; a system call on the file system does not return");
        } else {
            error.message.push_str(&format!(
                "; these processes do not exit: {}",
                left.join(", ")
            ));
        }
        let _ = emit(&Event::Failed(Failed::new(&self.step, &error, Vec::new())));
        std::process::exit(1);
    }
}

fn failure(step: &str, verdict: &Verdict) -> CellError {
    let seconds = LEFTOVER_LIMIT.as_secs();
    let (kind, message) = match verdict {
        Verdict::Timeout(limit) => (
            Kind::Timeout,
            format!(
                "{step} exceeded {} s and was stopped; raise --timeout, or give it less to do",
                limit.as_secs()
            ),
        ),
        Verdict::Stopped => (
            Kind::Timeout,
            format!(
                "the command of {step} was stopped by a signal (SIGSTOP), and was not \
                continued within {seconds} s"
            ),
        ),
        Verdict::LeftRunning(names) => (
            Kind::LeftRunning,
            format!(
                "the command of {step} ended, but these ran for {seconds} s longer: {}; end them \
                in the step itself, so that their writes are counted",
                names.join(", ")
            ),
        ),
        Verdict::DiskServer => (
            Kind::DiskServer,
            format!("the disk server ended during {step}"),
        ),
    };
    CellError::new(kind, message)
}

/// Names the first few remaining processes and counts the rest.
fn names() -> Vec<String> {
    let processes = reap::processes();
    let more = processes.len().saturating_sub(MOST_NAMES);
    let names = processes.into_iter().take(MOST_NAMES);
    let mut names: Vec<String> = names.map(|(pid, name)| format!("{name} ({pid})")).collect();
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // If the lock is poisoned, its holder panicked between two assignments; either value will do.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
