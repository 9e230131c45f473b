//! A perf event and the ring to which the kernel writes its samples (perf_event_open(2)).

use crate::{Error, Result};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of the ring: 16,384 samples between two readings, as a header and a time take 16 bytes.
/// With the thread's number a sample takes 24 bytes, which leaves room for 10,922.
const DATA_BYTES: usize = 256 * 1024;

// include/uapi/linux/perf_event.h
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_SAMPLE_TID: u64 = 1 << 1;
const PERF_SAMPLE_TIME: u64 = 1 << 2;
const PERF_RECORD_SAMPLE: u32 = 9;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
const FLAG_INHERIT: u64 = 1 << 1;
const FLAG_USE_CLOCKID: u64 = 1 << 25;
/// Values of `pid` in perf_event_open(2).
const THIS_THREAD: libc::pid_t = 0;
const EVERY_PROCESS: libc::pid_t = -1;
/// Offsets in `struct perf_event_mmap_page`: two counters that start their own cache line at 1 KiB.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
const WORD_BYTES: u64 = 8;

/// The passes that a ring observes, and the content of its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Times of this thread and of every process that it starts.
    Times,
    /// Times and threads of this thread and of every process that it starts.
    Threads,
    /// Times and threads of every process of the machine. The number of a thread outside the PID
    /// namespace of the opener is 0 (kernel/events/core.c, `perf_event_pid_type`).
    Everyone,
}

/// `struct perf_event_attr` as of Linux 4.1 (PERF_ATTR_SIZE_VER5); newer kernels accept it too.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// A tracepoint on one CPU.
#[derive(Debug)]
pub struct Ring {
    event: OwnedFd,
    /// Mapping of a control page followed by [`DATA_BYTES`] of samples.
    map: NonNull<u8>,
    page_bytes: usize,
    kind: Kind,
}

// SAFETY: the map belongs to this value alone and is valid in every thread of the process.
unsafe impl Send for Ring {}

impl Ring {
    /// Starts observing tracepoint `id` on `cpu`.
    pub fn open(id: u64, cpu: u32, kind: Kind) -> io::Result<Self> {
        let (target, inherit) = match kind {
            Kind::Times | Kind::Threads => (THIS_THREAD, FLAG_INHERIT),
            Kind::Everyone => (EVERY_PROCESS, 0),
        };
        let thread = if kind == Kind::Times {
            0
        } else {
            PERF_SAMPLE_TID
        };
        let attributes = Attributes {
            kind: PERF_TYPE_TRACEPOINT,
            size: size_of::<Attributes>() as u32,
            config: id,
            sample_period: 1,
            sample_type: PERF_SAMPLE_TIME | thread,
            flags: FLAG_USE_CLOCKID | inherit,
            clockid: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        let no_group = -1;
        // SAFETY: the kernel reads `size` bytes of `attributes`, which live until the call returns.
        let number = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                target,
                cpu as libc::c_int,
                no_group as libc::c_int,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made the descriptor for us.
        let event = unsafe { OwnedFd::from_raw_fd(number as libc::c_int) };
        let page_bytes = rustix::param::page_size();
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let map = unsafe {
            mmap(
                std::ptr::null_mut(),
                page_bytes + DATA_BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &event,
                0,
            )
        }?;
        let map =
            NonNull::new(map.cast()).ok_or_else(|| io::Error::other("mmap gave no address"))?;
        Ok(Self {
            event,
            map,
            page_bytes,
            kind,
        })
    }

    /// Returns the number of times that the tracepoint was passed since `open`.
    pub fn count(&self) -> Result<u64> {
        let mut count = [0; 8];
        rustix::io::read(&self.event, &mut count)
            .map_err(|e| Error::new("read a tracepoint's count", e))?;
        Ok(u64::from_ne_bytes(count))
    }

    /// Passes the time and the thread (0 if unknown) of each sample to `each`, and empties the
    /// ring.
    pub fn take(&mut self, mut each: impl FnMut(u64, u32)) {
        let mut tail = self.counter(DATA_TAIL).load(Ordering::Relaxed);
        // Acquire: the samples before the head are read after it, as the header file requires.
        let head = self.counter(DATA_HEAD).load(Ordering::Acquire);
        while tail < head {
            // `struct perf_event_header`: `__u32 type; __u16 misc; __u16 size`.
            let [k0, k1, k2, k3, _, _, s0, s1] = self.word(tail).to_ne_bytes();
            if u32::from_ne_bytes([k0, k1, k2, k3]) == PERF_RECORD_SAMPLE {
                // `{u32 pid, tid;} u64 time`, in the order of their bits in `sample_type`.
                let first = self.word(tail + WORD_BYTES);
                if self.kind == Kind::Times {
                    each(first, 0);
                } else {
                    let [_, _, _, _, t0, t1, t2, t3] = first.to_ne_bytes();
                    let thread = u32::from_ne_bytes([t0, t1, t2, t3]);
                    each(self.word(tail + 2 * WORD_BYTES), thread);
                }
            }
            // Advance by at least the size of a header, so that the loop ends even on a damaged
            // ring.
            tail += u64::from(u16::from_ne_bytes([s0, s1])).max(WORD_BYTES);
        }
        // Release: the kernel may overwrite the samples once it sees the tail.
        self.counter(DATA_TAIL).store(head, Ordering::Release);
    }

    fn counter(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets lie in the control page, are multiples of 8, and hold a `__u64` that
        // the kernel and we access atomically only.
        unsafe { AtomicU64::from_ptr(self.map.as_ptr().add(offset).cast()) }
    }

    /// Reads eight bytes of the ring. Records are multiples of 8 bytes, so a word never wraps.
    fn word(&self, at: u64) -> u64 {
        let offset = self.page_bytes + ((at as usize % DATA_BYTES) & !7);
        // SAFETY: the offset is a multiple of 8 within the mapping; the kernel does not write
        // between tail and head, and any bits are a u64.
        unsafe { self.map.as_ptr().add(offset).cast::<u64>().read_volatile() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: `open` mapped this range, and no reference into it outlives `self`.
        // It cannot fail: the range is a whole mapping (munmap(2)).
        let _ = unsafe { munmap(self.map.as_ptr().cast(), self.page_bytes + DATA_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_the_size_of_version_5() {
        assert_eq!(size_of::<Attributes>(), 112);
        assert_eq!(std::mem::offset_of!(Attributes, clockid), 92);
    }
}
