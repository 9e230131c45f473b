//! The targets' allocator, with a limit: an allocation beyond it fails, which aborts the process.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ptr::null_mut,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The system's allocator with a limit.
pub struct Limited {
    allocated: AtomicUsize,
    limit: AtomicUsize,
}

impl Limited {
    /// An allocator without a limit so far.
    pub const fn new() -> Self {
        Self {
            allocated: AtomicUsize::new(0),
            limit: AtomicUsize::new(usize::MAX),
        }
    }

    /// Allow this many bytes more than are in use.
    pub fn allow(&self, more: usize) {
        let limit = self.allocated.load(Relaxed).saturating_add(more);
        self.limit.store(limit, Relaxed);
    }

    fn take(&self, bytes: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
        let allocated = self
            .allocated
            .fetch_add(bytes, Relaxed)
            .saturating_add(bytes);
        let memory = if allocated > self.limit.load(Relaxed) {
            null_mut()
        } else {
            allocate()
        };
        if memory.is_null() {
            self.allocated.fetch_sub(bytes, Relaxed);
        }
        memory
    }
}

// SAFETY: every call goes to the system's allocator with the caller's arguments; a null pointer
// means that there is no memory.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see above.
        self.take(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see above.
        self.take(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: see above.
        unsafe { System.dealloc(memory, layout) };
        self.allocated.fetch_sub(layout.size(), Relaxed);
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: see above.
        let moved = self.take(size, || unsafe { System.realloc(memory, layout, size) });
        if !moved.is_null() {
            self.allocated.fetch_sub(layout.size(), Relaxed);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_limit_is_refused() {
        let limited = Limited::new();
        let [small, large] = [100, 300].map(|size| Layout::from_size_align(size, 8).unwrap());
        // SAFETY: the layouts are not empty, and each block is freed with its own.
        unsafe {
            let first = limited.alloc(small);
            limited.allow(200);
            assert!(limited.alloc_zeroed(large).is_null());
            assert!(limited.realloc(first, small, 400).is_null());
            let second = limited.alloc(small);
            assert!(!second.is_null());
            for block in [first, second] {
                limited.dealloc(block, small);
            }
        }
        assert_eq!(limited.allocated.into_inner(), 0);
    }
}
