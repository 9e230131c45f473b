//! A timer that wakes one thread within microseconds of an instant, without keeping a core busy.
//!
//! timerfd(2) has no slack, unlike poll(2) and nanosleep(2), but a core that was idle, or a guest's,
//! wakes tens of microseconds after its timer (measured in a guest of KVM: 40 to 70 µs, 5 ms beside
//! other work without the scheduling class below). The timer therefore expires early, by what
//! wake-ups have lately taken, and the thread spins for the rest, with a quarter of a core at most.

use crate::store::Clock;
use rustix::{
    fd::OwnedFd,
    io::Errno,
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};
use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

/// No wake-up is asked for so much earlier or more.
const MOST_LEAD_NS: u64 = 100_000;
/// Of the time that has passed, the part that may be spent spinning.
const SPIN_SHARE: u64 = 4;
/// What may be saved up of it.
const MOST_SPIN_NS: u64 = 1_000_000;
const NEVER: u64 = u64::MAX;

/// The timer; instants are those of the recording.
pub struct Timer {
    descriptor: OwnedFd,
    clock: Clock,
    due_ns: AtomicU64,
    lead_ns: AtomicU64,
}

/// What the waiting thread knows.
pub struct Waiter {
    spin_ns: u64,
    refilled_ns: u64,
}

impl Timer {
    pub fn new(clock: Clock) -> io::Result<Self> {
        Ok(Self {
            descriptor: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?,
            clock,
            due_ns: AtomicU64::new(NEVER),
            lead_ns: AtomicU64::new(0),
        })
    }

    /// Wake the waiting thread at an instant, or never. Only one thread at a time may call it.
    pub fn set(&self, due_ns: Option<u64>) {
        let due_ns = due_ns.unwrap_or(NEVER);
        if self.due_ns.swap(due_ns, Ordering::AcqRel) == due_ns {
            return;
        }
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let at = match due_ns {
            NEVER => zero,
            _ => self.expiry(due_ns),
        };
        let times = Itimerspec {
            it_interval: zero,
            it_value: at,
        };
        if timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &times).is_err() {
            // No reply would ever be sent.
            std::process::abort();
        }
    }

    fn expiry(&self, due_ns: u64) -> Timespec {
        let early_ns = due_ns.saturating_sub(self.lead_ns.load(Ordering::Relaxed));
        // Zero would disarm the timer.
        let ns = self.clock.monotonic_ns(early_ns).max(1);
        Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as _,
        }
    }

    /// Wait until the instant that was set last, which may change meanwhile; now.
    pub fn wait(&self, waiter: &mut Waiter) -> u64 {
        let mut expirations = [0; 8];
        loop {
            match rustix::io::read(&self.descriptor, &mut expirations) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(_) => std::process::abort(),
            }
        }
        let woken_ns = self.clock.now_ns();
        self.learn(woken_ns);
        waiter.refill(woken_ns);
        let mut now_ns = woken_ns;
        while now_ns < self.due_ns.load(Ordering::Acquire) && now_ns - woken_ns < waiter.spin_ns {
            std::hint::spin_loop();
            now_ns = self.clock.now_ns();
        }
        waiter.spin_ns -= waiter.spin_ns.min(now_ns - woken_ns);
        self.due_ns.store(NEVER, Ordering::Release);
        now_ns
    }

    /// Most wake-ups shall come in time: the lead grows fast and shrinks slowly.
    fn learn(&self, woken_ns: u64) {
        let due_ns = self.due_ns.load(Ordering::Acquire);
        let lead_ns = self.lead_ns.load(Ordering::Relaxed);
        let took_ns = (woken_ns + lead_ns).saturating_sub(due_ns);
        let lead_ns = if took_ns > lead_ns {
            lead_ns + (took_ns - lead_ns).div_ceil(4)
        } else {
            lead_ns - (lead_ns - took_ns) / 64
        };
        self.lead_ns
            .store(lead_ns.min(MOST_LEAD_NS), Ordering::Relaxed);
    }
}

impl Waiter {
    pub fn new() -> Self {
        Self {
            spin_ns: 0,
            refilled_ns: 0,
        }
    }

    fn refill(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.refilled_ns);
        self.spin_ns = (self.spin_ns + passed_ns / SPIN_SHARE).min(MOST_SPIN_NS);
        self.refilled_ns = now_ns;
    }
}

/// Put the calling thread before all ordinary ones: a device does not wait for a processor either.
/// It runs for a few microseconds a request. Without the privilege (CAP_SYS_NICE) nothing changes.
pub fn run_first() {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel copies the parameters, which live until the call returns.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
}
