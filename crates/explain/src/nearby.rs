//! Prediction of the content that families will read, for the threads that unpack it ahead of them.
//! An event is predicted to be read if the last write of about the same length to the same region
//! was read: file systems keep data and metadata in separate regions, and long writes are mostly
//! data.

use fscost_recording::{Event, Header};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Number of regions of a disk. Frames are unpacked some MiB ahead of the families, so a region
/// must be much larger than that.
const REGIONS: u64 = 64;
/// Minimum length of a long write.
const LONG_BYTES: u64 = 128 << 10;

/// For each region of each disk: whether its last short and its last long write were read.
pub struct Nearby {
    disks: Vec<Disk>,
}

struct Disk {
    region_bytes: u64,
    was_read: Vec<[AtomicBool; 2]>,
}

impl Nearby {
    /// Creates the initial prediction: all content is read.
    pub fn new(header: &Header) -> Nearby {
        let disks = header.disks.iter().map(|disk| Disk {
            region_bytes: (disk.size_bytes / REGIONS).max(1),
            was_read: (0..=REGIONS)
                .map(|_| [true, true].map(AtomicBool::new))
                .collect(),
        });
        Nearby {
            disks: disks.collect(),
        }
    }

    /// Records whether the content of a write was read.
    pub fn learn(&self, event: &Event, is_read: bool) {
        if let Some(region) = self.region(event) {
            region.store(is_read, Relaxed);
        }
    }

    /// Predicts whether the content of this event will be read.
    pub fn expects(&self, event: &Event) -> bool {
        self.region(event).is_none_or(|region| region.load(Relaxed))
    }

    fn region(&self, event: &Event) -> Option<&AtomicBool> {
        let disk = self.disks.get(usize::from(event.disk))?;
        let number = event.offset / disk.region_bytes;
        let region = disk.was_read.get(usize::try_from(number).ok()?)?;
        region.get(usize::from(event.length >= LONG_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fscost_recording::{DiskInfo, Op, Stripped};

    fn write(offset: u64) -> Event {
        Event {
            submit_ns: 0,
            complete_ns: 0,
            offset,
            length: 4096,
            content_offset: 0,
            disk: 0,
            op: Op::Write,
            fua: false,
        }
    }

    #[test]
    fn the_last_write_of_a_region_tells_of_the_next() {
        let disk = |size_bytes| DiskInfo {
            name: "main".into(),
            size_bytes,
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
        };
        for size_bytes in [64 << 20, 0, u64::MAX] {
            let nearby = Nearby::new(&Header {
                begin_unix_ns: 0,
                disks: vec![disk(size_bytes)],
                stripped: Stripped::No,
            });
            let (here, beside, end) = (write(4096), write(size_bytes / 2), write(size_bytes));
            nearby.learn(&here, false);
            assert_eq!(nearby.expects(&here), size_bytes == 0);
            assert!(nearby.expects(&beside) && nearby.expects(&end));
            nearby.learn(&here, true);
            assert!(nearby.expects(&here));
        }
    }
}
