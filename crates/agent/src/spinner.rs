//! Keeps an emulated machine from being idle, so that its clock depends only on its instructions.
//!
//! While a guest halts, QEMU's virtual clock follows the host's, up to the next timer and past it
//! by the host's delay (docs/devel/tcg-icount.rst). The kernel's ticks would then interrupt
//! different work in each run, and so shift the work that follows.

use crate::schedule::pass_time;
use rustix::thread::sched_yield;

/// Argument of the guest's first process in an emulated machine.
pub const ARGUMENT: &str = "never_idle";

/// Starts the thread that runs when no other thread does.
pub fn start() {
    std::thread::spawn(|| {
        let parameters = nix::libc::sched_param { sched_priority: 0 };
        // SAFETY: reads `parameters`, which live until the call returns. It cannot fail (sched(7):
        // no privilege is needed).
        unsafe { nix::libc::sched_setscheduler(0, nix::libc::SCHED_IDLE, &raw const parameters) };
        loop {
            pass_time();
            // The scheduler gives even the lowest class a share, until the next tick; this thread
            // returns it at once.
            sched_yield();
        }
    });
}
