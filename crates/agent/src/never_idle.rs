//! Keeps an emulated machine from being idle, so that its clock depends on its instructions alone.
//!
//! While a guest halts, QEMU's virtual clock follows the host's, to the next timer and past it
//! by what the host is late
//! (docs/devel/tcg-icount.rst). The kernel's ticks would then find other work in each run, and
//! leave it to other moments of what follows.

use crate::schedule::pass_time;
use rustix::thread::sched_yield;

/// The guest's first process has this argument where it is emulated.
pub const ARGUMENT: &str = "never_idle";

/// Starts the thread that runs when no other would.
pub fn start() {
    std::thread::spawn(|| {
        let parameters = nix::libc::sched_param { sched_priority: 0 };
        // SAFETY: reads `parameters`, which live. It cannot fail (sched(7): no privilege is
        // needed).
        unsafe { nix::libc::sched_setscheduler(0, nix::libc::SCHED_IDLE, &raw const parameters) };
        loop {
            pass_time();
            // The scheduler gives even the least of all threads a part, until the next tick: it is
            // handed back at once.
            sched_yield();
        }
    });
}
