//! A perf event and the ring to which the kernel writes its samples (perf_event_open(2)).

use crate::{Error, Result};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a ring without a tracepoint's fields: 10,922 samples of 24 bytes between two readings.
const SMALL_BYTES: usize = 256 * 1024;
/// Size of a ring with them, or with names: a sample takes about 72 bytes, which leaves room for
/// 14,000.
const LARGE_BYTES: usize = 1024 * 1024;

// include/uapi/linux/perf_event.h
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_COUNT_SW_DUMMY: u64 = 9;
const PERF_SAMPLE_TID: u64 = 1 << 1;
const PERF_SAMPLE_TIME: u64 = 1 << 2;
const PERF_SAMPLE_RAW: u64 = 1 << 10;
const PERF_RECORD_COMM: u32 = 3;
const PERF_RECORD_FORK: u32 = 7;
const PERF_RECORD_SAMPLE: u32 = 9;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
const FLAG_INHERIT: u64 = 1 << 1;
const FLAG_COMM: u64 = 1 << 9;
const FLAG_TASK: u64 = 1 << 13;
const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
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
    /// Times, threads and inodes of this thread and of every process that it starts. `inode` is
    /// the offset of the tracepoint's field and its size in bytes, if it has one.
    Inodes { inode: Option<(u64, u64)> },
    /// Times and threads of this thread and of every process that it starts.
    Threads,
    /// Times and threads of every process of the machine. The number of a thread outside the PID
    /// namespace of the opener is 0 (kernel/events/core.c, `perf_event_pid_type`).
    Everyone,
}

/// A pass through a tracepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// CLOCK_MONOTONIC time.
    pub at_ns: u64,
    /// Process, as the PID namespace of the opener numbers it; 0 outside it.
    pub process: u32,
    /// Thread, numbered likewise.
    pub thread: u32,
    /// The tracepoint's field `ino`.
    pub inode: Option<u64>,
}

/// A change of a thread's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Naming {
    /// The thread began, with the name of the thread that started it.
    Forked { thread: u32, by: u32 },
    /// The thread got this name, mostly by execve(2).
    Named { thread: u32, name: String },
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

impl Attributes {
    fn new() -> Self {
        Self {
            size: size_of::<Self>() as u32,
            clockid: libc::CLOCK_MONOTONIC,
            ..Self::default()
        }
    }
}

/// A tracepoint on one CPU, or the names of threads there.
#[derive(Debug)]
pub struct Ring {
    event: OwnedFd,
    /// Mapping of a control page followed by `data_bytes` of samples.
    map: NonNull<u8>,
    page_bytes: usize,
    data_bytes: usize,
    /// Offset of the inode in the tracepoint's fields, and its size.
    inode: Option<(u64, u64)>,
}

// SAFETY: the map belongs to this value alone and is valid in every thread of the process.
unsafe impl Send for Ring {}

impl Ring {
    /// Starts observing tracepoint `id` on `cpu`.
    pub fn open(id: u64, cpu: u32, kind: Kind) -> io::Result<Self> {
        let (target, inherit) = match kind {
            Kind::Inodes { .. } | Kind::Threads => (THIS_THREAD, FLAG_INHERIT),
            Kind::Everyone => (EVERY_PROCESS, 0),
        };
        let (inode, fields, data_bytes) = match kind {
            Kind::Inodes { inode } => (inode, PERF_SAMPLE_RAW, LARGE_BYTES),
            Kind::Threads | Kind::Everyone => (None, 0, SMALL_BYTES),
        };
        let attributes = Attributes {
            kind: PERF_TYPE_TRACEPOINT,
            config: id,
            sample_period: 1,
            sample_type: PERF_SAMPLE_TID | PERF_SAMPLE_TIME | fields,
            flags: FLAG_USE_CLOCKID | inherit,
            ..Attributes::new()
        };
        Self::map(&attributes, target, cpu, data_bytes, inode)
    }

    /// Starts observing on `cpu` the names of this thread and of every process that it starts.
    pub fn open_names(cpu: u32) -> io::Result<Self> {
        let attributes = Attributes {
            kind: PERF_TYPE_SOFTWARE,
            config: PERF_COUNT_SW_DUMMY,
            sample_type: PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
            flags: FLAG_USE_CLOCKID | FLAG_INHERIT | FLAG_COMM | FLAG_TASK | FLAG_SAMPLE_ID_ALL,
            ..Attributes::new()
        };
        Self::map(&attributes, THIS_THREAD, cpu, LARGE_BYTES, None)
    }

    fn map(
        attributes: &Attributes,
        target: libc::pid_t,
        cpu: u32,
        data_bytes: usize,
        inode: Option<(u64, u64)>,
    ) -> io::Result<Self> {
        let no_group = -1;
        // SAFETY: the kernel reads `size` bytes of `attributes`, which live until the call returns.
        let number = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(attributes),
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
                page_bytes + data_bytes,
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
            data_bytes,
            inode,
        })
    }

    /// Returns the number of times that the tracepoint was passed since `open`.
    pub fn count(&self) -> Result<u64> {
        let mut count = [0; 8];
        rustix::io::read(&self.event, &mut count)
            .map_err(|e| Error::new("read a tracepoint's count", e))?;
        Ok(u64::from_ne_bytes(count))
    }

    /// Passes each sample to `each`, and empties the ring.
    pub fn take(&mut self, mut each: impl FnMut(Pass)) {
        self.records(|ring, kind, at, _| {
            if kind != PERF_RECORD_SAMPLE {
                return;
            }
            // `{u32 pid, tid;} u64 time; {u32 size; char data[size];}`, in the order of their bits
            // in `sample_type`.
            let data = at + 20;
            each(Pass {
                at_ns: ring.word(at + WORD_BYTES),
                process: ring.half(at),
                thread: ring.half(at + 4),
                inode: ring.inode.map(|(offset, bytes)| {
                    let low = u64::from(ring.half(data + offset));
                    let high = u64::from(ring.half(data + offset + 4));
                    if bytes == WORD_BYTES {
                        high << 32 | low
                    } else {
                        low
                    }
                }),
            });
        });
    }

    /// Passes the time of each change of a name to `each`, and empties the ring.
    pub fn take_names(&mut self, mut each: impl FnMut(u64, Naming)) {
        self.records(|ring, kind, at, end| {
            // Each record ends with `{u32 pid, tid;} u64 time` (`struct sample_id`).
            let at_ns = ring.word(end - WORD_BYTES);
            if kind == PERF_RECORD_FORK {
                // `u32 pid, ppid; u32 tid, ptid; u64 time`
                let (thread, by) = (ring.half(at + 8), ring.half(at + 12));
                each(at_ns, Naming::Forked { thread, by });
            } else if kind == PERF_RECORD_COMM {
                // `u32 pid, tid; char comm[]`, padded with zeroes
                let name: Vec<u8> = (at + WORD_BYTES..end - 2 * WORD_BYTES)
                    .step_by(WORD_BYTES as usize)
                    .flat_map(|word| ring.word(word).to_ne_bytes())
                    .take_while(|&byte| byte != 0)
                    .collect();
                let name = String::from_utf8_lossy(&name).into_owned();
                let thread = ring.half(at + 4);
                each(at_ns, Naming::Named { thread, name });
            }
        });
    }

    /// Passes the kind, the beginning behind its header and the end of each record to `each`, and
    /// empties the ring.
    fn records(&mut self, mut each: impl FnMut(&Self, u32, u64, u64)) {
        let mut tail = self.counter(DATA_TAIL).load(Ordering::Relaxed);
        // Acquire: the samples before the head are read after it, as the header file requires.
        let head = self.counter(DATA_HEAD).load(Ordering::Acquire);
        while tail < head {
            // `struct perf_event_header`: `__u32 type; __u16 misc; __u16 size`.
            let [.., s0, s1] = self.word(tail).to_ne_bytes();
            // Advance by at least the size of a header, so that the loop ends even on a damaged
            // ring.
            let end = tail + u64::from(u16::from_ne_bytes([s0, s1])).max(WORD_BYTES);
            each(self, self.half(tail), tail + WORD_BYTES, end);
            tail = end;
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
        let offset = self.page_bytes + ((at as usize % self.data_bytes) & !7);
        // SAFETY: the offset is a multiple of 8 within the mapping; the kernel does not write
        // between tail and head, and any bits are a u64.
        unsafe { self.map.as_ptr().add(offset).cast::<u64>().read_volatile() }
    }

    /// Reads four bytes of the ring, at a multiple of 4.
    fn half(&self, at: u64) -> u32 {
        let [a, b, c, d, e, f, g, h] = self.word(at).to_ne_bytes();
        u32::from_ne_bytes(if at & 4 == 0 {
            [a, b, c, d]
        } else {
            [e, f, g, h]
        })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let bytes = self.page_bytes + self.data_bytes;
        // SAFETY: `map` mapped this range, and no reference into it outlives `self`.
        // It cannot fail: the range is a whole mapping (munmap(2)).
        let _ = unsafe { munmap(self.map.as_ptr().cast(), bytes) };
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
