//! Memory hints for the page map: huge pages for large tables, and prefetching of entries.
#![allow(unsafe_code)] // two hints to the kernel and the processor; neither changes a value

use rustix::mm::{Advice, madvise};

/// Size below which a table gets no huge pages, because it fits the processor's caches and TLB.
const SMALLEST_ADVISED_BYTES: usize = 4 << 20;
const PAGE_BYTES: usize = 4096;

/// Creates a table with the same value everywhere, in huge pages if the kernel provides them.
pub fn table<T: Copy>(value: T, count: usize) -> Vec<T> {
    let mut found = Vec::with_capacity(count);
    advise(&mut found);
    found.resize(count, value);
    found
}

fn advise<T>(table: &mut Vec<T>) {
    let bytes = table.capacity() * size_of::<T>();
    let begin = table.as_mut_ptr().cast::<u8>();
    let skipped = begin.align_offset(PAGE_BYTES);
    if bytes < SMALLEST_ADVISED_BYTES || skipped >= bytes {
        return;
    }
    let whole = (bytes - skipped) / PAGE_BYTES * PAGE_BYTES;
    // SAFETY: the range lies inside the table's own allocation, and MADV_HUGEPAGE leaves its
    // content as it is
    // (madvise(2)). Without huge pages the table works all the same, so the answer does not matter.
    let _ = unsafe { madvise(begin.add(skipped).cast(), whole, Advice::LinuxHugepage) };
}

/// Prefetches an entry that will be read or written soon. An index beyond the end is ignored.
#[inline(always)]
pub fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = table.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of a valid address; it changes nothing that a program can see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, index);
}
