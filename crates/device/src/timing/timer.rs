//! A timer that wakes one thread within microseconds of an instant, without keeping a core busy.
//!
//! timerfd(2) has no slack, unlike poll(2) and nanosleep(2), but an idle core or a
//! virtual CPU wakes tens of microseconds after its timer: 40 to 70 µs were measured in a KVM
//! guest, and 5 ms beside other work without the scheduling class below. The timer therefore expires
//! early, by a lead that more than 99.8 % of the recent wake-ups stayed below, and the thread spins
//! for the rest. Spinning is limited to a quarter of the elapsed time; near that limit, the timer
//! expires later.

use crate::backend::Clock;
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

/// Largest lead of the timer before the wanted time.
const MOST_LEAD_NS: u64 = 300_000;
const FIRST_LEAD_NS: u64 = 50_000;
/// Divisors for adapting the lead. A wake-up that takes longer than the lead makes it larger by one
/// part in `GROWTH`; any other makes it smaller by one part in `DECAY`. The lead settles where one
/// in 513 wake-ups takes longer, however long the longest are.
const GROWTH: u64 = 4;
const DECAY: u64 = 2048;
/// Minimum growth, so that a small lead grows, too.
const LEAST_GROWTH_NS: u64 = 1000;
/// Divisor of the elapsed time: one part in this many may be spent spinning.
const SPIN_SHARE: u64 = 4;
/// Largest spinning time that can be saved up.
const MOST_SPIN_NS: u64 = 1_000_000;
const NEVER: u64 = u64::MAX;

/// The timer. Times are those of the recording.
pub struct Timer {
    descriptor: OwnedFd,
    clock: Clock,
    due_ns: AtomicU64,
    /// Current or last expiry of the timer.
    expiry_ns: AtomicU64,
    lead_ns: AtomicU64,
    /// Spinning time left at the last wake-up.
    spin_ns: AtomicU64,
}

/// State of the waiting thread.
#[derive(Default)]
pub struct Waiter {
    refilled_ns: u64,
}

impl Timer {
    pub fn new(clock: Clock) -> io::Result<Self> {
        Ok(Self {
            descriptor: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?,
            clock,
            due_ns: AtomicU64::new(NEVER),
            expiry_ns: AtomicU64::new(NEVER),
            lead_ns: AtomicU64::new(FIRST_LEAD_NS),
            spin_ns: AtomicU64::new(MOST_SPIN_NS),
        })
    }

    /// Wake the waiting thread at a given time, or never. Only one thread at a time may call this.
    pub fn set(&self, due_ns: Option<u64>) {
        let due_ns = due_ns.unwrap_or(NEVER);
        if self.due_ns.swap(due_ns, Ordering::AcqRel) == due_ns {
            return;
        }
        let zero = Timespec::default();
        let at = match due_ns {
            NEVER => zero,
            _ => self.expiry(due_ns),
        };
        let times = Itimerspec {
            it_interval: zero,
            it_value: at,
        };
        if timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &times).is_err() {
            // Without the timer, no reply would ever be sent.
            std::process::abort();
        }
    }

    fn expiry(&self, due_ns: u64) -> Timespec {
        let lead_ns = self.lead_ns.load(Ordering::Relaxed);
        let lead_ns = lead_ns.min(self.spin_ns.load(Ordering::Relaxed));
        let early_ns = due_ns.saturating_sub(lead_ns);
        // A timer in the past expires now.
        let expiry_ns = early_ns.max(self.clock.now_ns());
        self.expiry_ns.store(expiry_ns, Ordering::Release);
        // Zero would disarm the timer.
        let ns = self.clock.monotonic_ns(early_ns).max(1);
        Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as _,
        }
    }

    /// Wait until the time that was set last, which may change meanwhile; returns the current time.
    /// Calls `prepare` shortly before that time.
    pub fn wait(&self, waiter: &mut Waiter, prepare: impl FnOnce()) -> u64 {
        let mut expirations = [0; 8];
        loop {
            match rustix::io::read(&self.descriptor, &mut expirations) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(_) => std::process::abort(),
            }
        }
        if self.clock.now_ns() < self.due_ns.load(Ordering::Acquire) {
            prepare();
        }
        let ready_ns = self.clock.now_ns();
        self.learn(ready_ns.saturating_sub(self.expiry_ns.load(Ordering::Acquire)));
        let allowed_ns = self.allowed_ns(waiter, ready_ns);
        let mut now_ns = ready_ns;
        while now_ns < self.due_ns.load(Ordering::Acquire) && now_ns - ready_ns < allowed_ns {
            std::hint::spin_loop();
            now_ns = self.clock.now_ns();
        }
        let left_ns = allowed_ns.saturating_sub(now_ns - ready_ns);
        self.spin_ns.store(left_ns, Ordering::Relaxed);
        self.due_ns.store(NEVER, Ordering::Release);
        now_ns
    }

    /// Returns the spinning time left now.
    fn allowed_ns(&self, waiter: &mut Waiter, now_ns: u64) -> u64 {
        let passed_ns = now_ns.saturating_sub(waiter.refilled_ns);
        waiter.refilled_ns = now_ns;
        let left_ns = self.spin_ns.load(Ordering::Relaxed);
        (left_ns + passed_ns / SPIN_SHARE).min(MOST_SPIN_NS)
    }

    /// Adapt the lead, so that nearly all wake-ups come in time.
    fn learn(&self, took_ns: u64) {
        let lead_ns = self.lead_ns.load(Ordering::Relaxed);
        self.lead_ns
            .store(learnt(lead_ns, took_ns), Ordering::Relaxed);
    }
}

fn learnt(lead_ns: u64, took_ns: u64) -> u64 {
    let lead_ns = if took_ns > lead_ns {
        lead_ns + lead_ns / GROWTH + LEAST_GROWTH_NS
    } else {
        lead_ns - lead_ns.div_ceil(DECAY)
    };
    lead_ns.min(MOST_LEAD_NS)
}

/// Run the calling thread before all ordinary ones, because a device does not wait for a processor
/// either. It runs for a few microseconds per request. Without the privilege (CAP_SYS_NICE),
/// nothing changes.
pub fn run_first() {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel copies the parameters, which live until the call returns.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_covers_nearly_all_wake_ups() {
        // Most wake-ups take 5 to 15 µs, one in 1,000 takes 5 ms: no lead is worth that.
        let mut random = 7_u64;
        let mut draw = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        let (mut lead_ns, mut late, mut spun_ns) = (FIRST_LEAD_NS, 0, 0);
        for number in 0..20_000_u64 {
            let took_ns = match draw(1000) {
                0 => 5_000_000,
                _ => 5000 + draw(10_000),
            };
            if number >= 5000 {
                late += u64::from(took_ns > lead_ns);
                spun_ns += lead_ns.saturating_sub(took_ns);
            }
            lead_ns = learnt(lead_ns, took_ns);
        }
        assert!(late < 45, "{late} of 15000 were late");
        assert!(
            spun_ns / 15_000 < 16_000,
            "{spun_ns} ns were spent spinning"
        );
    }

    #[test]
    fn a_lead_is_found_from_nothing_and_given_up() {
        let grown = (0..20).fold(0, |lead_ns, _| learnt(lead_ns, 60_000));
        assert!((60_000..=100_000).contains(&grown), "{grown}");
        assert_eq!((0..20_000).fold(grown, |lead_ns, _| learnt(lead_ns, 0)), 0);
        assert_eq!(learnt(MOST_LEAD_NS, u64::MAX), MOST_LEAD_NS);
    }
}
