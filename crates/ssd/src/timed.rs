//! Time for which requests keep a device busy: the sum of its NAND operations.

use crate::{Counters, Device, Error, Extent, NoCharges, Spec, UNATTRIBUTED, Write};

/// Times of NAND operations (data sheets: tR, tPROG, tBERS).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Seconds to read a page.
    pub read_s: f64,
    /// Seconds to program a page.
    pub program_s: f64,
    /// Seconds to erase a block.
    pub erase_s: f64,
    /// Pages that are read or programmed in parallel: channels × planes.
    pub parallel_pages: u32,
}

/// A device that was written once from end to end, and that returns the time each request takes. It
/// serves one request at a time and collects garbage in the foreground, as drives without a queue
/// do. The bus and the firmware take no time.
pub struct TimedDevice {
    device: Device<NoCharges>,
    timing: Timing,
    before: Counters,
    taken: Counters,
    /// True if programs wait in a buffer until all dies have one.
    is_buffered: bool,
    /// Programmed units whose time has not passed yet.
    owed_units: u64,
}

impl TimedDevice {
    /// Creates a device as large as a disk.
    pub fn new(spec: &Spec, timing: Timing, disk_bytes: u64) -> Result<TimedDevice, Error> {
        let scaled = spec.scaled(disk_bytes, Extent::Part)?;
        let mut device = Device::new(&scaled, NoCharges)?;
        let all_units = scaled.geometry.logical_units;
        device.write_units(Write::new(0, all_units, UNATTRIBUTED))?;
        device.flush(UNATTRIBUTED);
        let start = device.counters();
        let block_units = spec.block_units(scaled.geometry.unit_bytes);
        let share = f64::from(scaled.geometry.units_per_block) / f64::from(block_units);
        Ok(TimedDevice {
            device,
            // A block that was scaled down is a part of the one that an erase takes.
            timing: Timing {
                erase_s: timing.erase_s * share,
                ..timing
            },
            before: start,
            taken: start,
            is_buffered: scaled.buffer_units > 0,
            owed_units: 0,
        })
    }

    /// Returns the seconds that a read takes.
    #[must_use]
    pub fn read(&self, bytes: u64) -> f64 {
        let unit = u64::from(self.device.geometry().unit_bytes);
        self.pages(bytes.div_ceil(unit)) * self.timing.read_s
    }

    /// Performs a write, and returns the seconds that it takes.
    pub fn write(&mut self, offset: u64, bytes: u64) -> Result<f64, Error> {
        self.device.write(offset, bytes, UNATTRIBUTED, 0)?;
        self.device.settle();
        let round = u64::from(self.device.geometry().units_per_page)
            * u64::from(self.timing.parallel_pages.max(1));
        Ok(self.passed(if self.is_buffered { round } else { 1 }))
    }

    /// Performs a flush, and returns the seconds that it takes.
    pub fn flush(&mut self) -> f64 {
        self.device.flush(UNATTRIBUTED);
        self.passed(1)
    }

    /// Returns the operations since the last call, or since the device was filled.
    pub fn take_counters(&mut self) -> Counters {
        let now = self.device.counters();
        now - std::mem::replace(&mut self.taken, now)
    }

    /// Returns the bytes of a unit, in which [`take_counters`](TimedDevice::take_counters) counts.
    #[must_use]
    pub fn unit_bytes(&self) -> u32 {
        self.device.geometry().unit_bytes
    }

    /// Returns the seconds taken by the device's operations since the last call. Programs of fewer
    /// than `together` units wait for later ones.
    fn passed(&mut self, together: u64) -> f64 {
        let now = self.device.counters();
        let done = now - self.before;
        self.before = now;
        let programmed = self.owed_units + done.programmed_units();
        self.owed_units = programmed % together;
        self.pages(programmed - self.owed_units) * self.timing.program_s
            + self.pages(done.copied_units) * self.timing.read_s
            + done.erases as f64 * self.timing.erase_s
    }

    /// Returns the number of sequential page operations for `units` units; each operates on
    /// `parallel_pages` pages.
    fn pages(&self, units: u64) -> f64 {
        let pages = units.div_ceil(u64::from(self.device.geometry().units_per_page));
        pages.div_ceil(u64::from(self.timing.parallel_pages.max(1))) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mapping;

    /// 128 KiB blocks of 2 KiB pages: a write of 4 KiB programs 64 pages, reads the 62 that it
    /// copies, and erases a block.
    #[test]
    fn closed_form_a_small_write_on_a_block_map_takes_a_whole_block() {
        let spec = Spec {
            capacity_bytes: 16 << 20,
            spare: 0.07,
            unit_bytes: 2048,
            page_bytes: 2048,
            block_bytes: 128 << 10,
            mapping: Mapping::Block { open_blocks: 0 },
            buffer_bytes: 0,
            is_power_loss_protected: false,
        };
        let timing = Timing {
            read_s: 1.0,
            program_s: 100.0,
            erase_s: 10_000.0,
            parallel_pages: 1,
        };
        let mut device = TimedDevice::new(&spec, timing, 16 << 20).unwrap();
        assert_eq!(device.write(8192, 4096), Ok(16_462.0));
        assert_eq!(device.write(0, 128 << 10), Ok(16_400.0), "nothing to copy");
        assert_eq!((device.read(2048), device.read(6144)), (1.0, 3.0));
        assert_eq!(device.flush(), 0.0);
        assert_eq!(device.take_counters().programmed_units(), 128);
        let parallel = Timing {
            parallel_pages: 4,
            ..timing
        };
        let mut device = TimedDevice::new(&spec, parallel, 16 << 20).unwrap();
        assert_eq!(device.write(8192, 4096), Ok(11_616.0));
    }

    const TIMING: Timing = Timing {
        read_s: 0.0,
        program_s: 0.0,
        erase_s: 0.0,
        parallel_pages: 4,
    };

    fn page_mapped() -> Spec {
        Spec {
            capacity_bytes: 1 << 30,
            spare: 0.1,
            unit_bytes: 4096,
            page_bytes: 16384,
            block_bytes: 4 << 20,
            mapping: Mapping::Page(crate::PageMapOptions {
                reserved_blocks: 1,
                collection: crate::Collection::Greedy,
                separation: crate::Separation::Mixed,
                streams: 1,
                levelling_gap: None,
                seed: 0,
            }),
            buffer_bytes: 1 << 20,
            is_power_loss_protected: false,
        }
    }

    /// Returns the seconds of writes in order, of four times the disk.
    fn seconds(timing: Timing, disk_bytes: u64, length: u64) -> f64 {
        let mut device = TimedDevice::new(&page_mapped(), timing, disk_bytes).unwrap();
        let writes = (0..4 * disk_bytes / length).map(|at| at * length % disk_bytes);
        let took: f64 = writes.map(|at| device.write(at, length).unwrap()).sum();
        took + device.flush()
    }

    /// The blocks of a disk of 16 MiB are scaled down.
    #[test]
    fn closed_form_an_erase_takes_its_share_of_a_block() {
        let timing = Timing {
            erase_s: 1.0,
            ..TIMING
        };
        for disk_bytes in [16 << 20, 64 << 20] {
            let expected = 4.0 * disk_bytes as f64 / f64::from(4 << 20);
            let found = seconds(timing, disk_bytes, 1 << 18);
            assert!((found / expected - 1.0).abs() < 0.05, "{found} {expected}");
        }
    }

    /// Four dies program pages of 16 KiB side by side.
    #[test]
    fn closed_form_a_full_buffer_keeps_all_dies_busy() {
        let timing = Timing {
            program_s: 1.0,
            ..TIMING
        };
        let disk_bytes: u32 = 16 << 20;
        for length in [4096, 1 << 17] {
            let found = seconds(timing, u64::from(disk_bytes), length);
            assert_eq!(found, 4.0 * f64::from(disk_bytes / 65536), "{length}");
        }
    }
}
