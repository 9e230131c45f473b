//! Start times of intervals in an emulated machine: the same instruction of its clock in every run.
//!
//! Under QEMU's `-icount shift=0` the time-stamp counter counts the guest's instructions
//! (docs/devel/tcg-icount.rst). While the guest waits for the host, the counter advances by an
//! amount that depends on the host. The timer's ticks would then hit the following work at other
//! points, and its threads would be scheduled differently. Nothing is measured between intervals,
//! so the agent waits there, exact to the instruction, for an instant that depends only on the end
//! of the last interval.

/// Grid of start times, a multiple of every kernel's tick (1, 3⅓, 4 or 10 ms).
const GRID: u64 = 20_000_000;
/// Grid of the first start time. It is coarse, because the earliest possible start depends on how
/// fast the host assembled the machine.
const FIRST_GRID: u64 = 500_000_000;
/// Minimum time between two intervals, in which the host answers the mark.
const PAUSE: u64 = 40_000_000;
/// Offset from a point of the grid: after the tick there, and before the next one.
const AFTER_TICK: u64 = 900_000;
/// Time before the start that is spent in counted instructions.
const EARLY: u64 = 700_000;
/// Instructions that the counting itself takes without interrupts.
const EXACT: u64 = 64;
const ATTEMPTS: u32 = 20;

/// End of the last interval.
#[derive(Debug, Default)]
pub struct Schedule {
    ended: Option<u64>,
}

impl Schedule {
    /// Waits for the start of the next interval. If every attempt is interrupted, the interval
    /// starts slightly late.
    pub fn wait(&self) {
        for _ in 0..ATTEMPTS {
            let now = time_stamp();
            let begin = begin(self.ended, now);
            // Busy-waits instead of sleeping: nothing arrives from the host meanwhile, and the wait
            // takes almost none of the host's time.
            while time_stamp() < begin - EARLY {
                pass_time();
            }
            if let Some(left) = begin.checked_sub(time_stamp()) {
                run_instructions(left);
                if time_stamp() - begin < EXACT {
                    return;
                }
            }
        }
    }

    /// Notes the end of an interval.
    pub fn end(&mut self) {
        self.ended = Some(time_stamp());
    }
}

/// Returns the first start time at or after `now` that leaves at least [`EARLY`].
fn begin(ended: Option<u64>, now: u64) -> u64 {
    let first = match ended {
        Some(ended) => (ended + PAUSE).next_multiple_of(GRID),
        None => now.next_multiple_of(FIRST_GRID),
    };
    let soonest = (now + EARLY)
        .saturating_sub(AFTER_TICK)
        .next_multiple_of(GRID);
    first.max(soonest) + AFTER_TICK
}

#[cfg(target_arch = "x86_64")]
fn time_stamp() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and nothing forbids it to us
    // (PR_SET_TSC).
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Executes `count` instructions, and a few more whose number is constant.
#[cfg(target_arch = "x86_64")]
fn run_instructions(count: u64) {
    // SAFETY: touches a register and the flags, as declared.
    unsafe {
        std::arch::asm!(
            "shr {pairs}",
            "jnc 2f",
            "nop",
            "2:",
            "dec {pairs}",
            "jnz 2b",
            pairs = inout(reg) count.max(2) => _,
            options(nomem, nostack),
        );
    }
}

/// Fallback: guests are x86-64.
#[cfg(not(target_arch = "x86_64"))]
use crate::sync_calls::monotonic_ns as time_stamp;

#[cfg(not(target_arch = "x86_64"))]
fn run_instructions(_: u64) {}

/// Spends ten microseconds of guest time. Emulating a `nop` costs nothing, so the host needs no
/// longer than that.
#[cfg(target_arch = "x86_64")]
pub fn pass_time() {
    // SAFETY: touches a register and the flags, as declared.
    unsafe {
        std::arch::asm!(
            "2:",
            ".rept 198",
            "nop",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            rounds = inout(reg) 50_u64 => _,
            options(nomem, nostack),
        );
    }
}

/// Fallback: guests are x86-64.
#[cfg(not(target_arch = "x86_64"))]
pub fn pass_time() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_end_gives_the_same_begin_however_late_the_host_is() {
        let ended = 8_294_665_025;
        let begins = [0, 5_000_000, 39_000_000].map(|late| begin(Some(ended), ended + late));
        assert_eq!(begins, [8_340_900_000; 3]);
    }

    #[test]
    fn a_late_host_costs_whole_ticks() {
        let ended = 8_294_665_025;
        for late in [45_500_000, 60_000_000, 1_000_000_007] {
            let now = ended + late;
            let begin = begin(Some(ended), now);
            assert_eq!(begin % GRID, AFTER_TICK);
            assert!(
                (EARLY..=GRID + EARLY).contains(&(begin - now)),
                "{begin} after {now}"
            );
        }
    }

    #[test]
    fn the_first_interval_waits_for_a_coarse_grid() {
        let begins = [7_908_979_276, 7_962_390_334].map(|now| begin(None, now));
        assert_eq!(begins, [8_000_900_000; 2]);
    }

    #[test]
    fn counting_ends_for_small_counts_too() {
        (0..8).for_each(run_instructions);
    }
}
