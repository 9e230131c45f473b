//! The part of the mapping table that a device without DRAM holds in memory: its own SRAM, or a
//! host memory buffer (NVM Express base specification, Host Memory Buffer).

/// Bytes of a page of the table. Its entries are 4 bytes long, and map 4 KiB each.
pub(super) const TABLE_PAGE_BYTES: u64 = 4096;
/// Bytes that the entries of a page map.
const MAPPED_BYTES: u64 = TABLE_PAGE_BYTES / 4 * 4096;

/// A direct-mapped cache of the table's pages: a range no larger than the cache is held completely.
#[derive(Debug, Clone)]
pub(super) struct MapCache {
    /// Page held in each slot, plus 1; 0 if none. Empty if the whole table is in memory.
    slots: Vec<u64>,
}

impl MapCache {
    /// Creates a cache of this size; 0: the whole table is in memory.
    pub(super) fn new(bytes: u64) -> MapCache {
        MapCache {
            slots: vec![0; bytes.div_ceil(TABLE_PAGE_BYTES) as usize],
        }
    }

    /// Brings the pages that map a range into the cache. Returns the number that were missing.
    pub(super) fn load(&mut self, offset: u64, length: u64) -> u64 {
        if self.slots.is_empty() {
            return 0;
        }
        let count = self.slots.len() as u64;
        let mut missing = 0;
        for page in offset / MAPPED_BYTES..(offset + length).div_ceil(MAPPED_BYTES) {
            if let Some(slot) = self.slots.get_mut((page % count) as usize)
                && *slot != page + 1
            {
                *slot = page + 1;
                missing += 1;
            }
        }
        missing
    }
}
