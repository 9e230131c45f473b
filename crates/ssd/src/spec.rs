//! A device as described by its data sheet, and its model scaled to the size of a recorded disk.

use crate::{Error, Geometry, LogBlocks, PageMapOptions};

/// Minimum number of erase blocks. Fewer blocks would make collection coarser than on any real
/// device.
const FEWEST_BLOCKS: u64 = 256;
/// Block size below which blocks are not divided further; smaller blocks are those of real NAND.
const SMALLEST_BLOCK_UNITS: u32 = 64;

/// A mapping and its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapping {
    /// Page mapping: any logical unit can be stored anywhere.
    Page(PageMapOptions),
    /// Block mapping with `open_blocks` open blocks.
    Block {
        /// Number of blocks that can be continued in ascending order.
        open_blocks: u32,
    },
    /// Block mapping with log blocks for writes in any order.
    Log(LogBlocks),
}

impl Mapping {
    /// Returns the number of blocks that never hold settled data: those reserved for collection or
    /// merging, and all open ones except the first.
    #[must_use]
    pub fn reserved_blocks(&self) -> u32 {
        match self {
            Mapping::Page(options) => options.reserved_blocks + options.frontiers() - 1,
            Mapping::Block { open_blocks } => open_blocks + 1,
            Mapping::Log(options) => options.log_blocks + 1,
        }
    }
}

/// A device at its real size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    /// Bytes that the host can address.
    pub capacity_bytes: u64,
    /// Spare share: (physical − logical) ÷ physical.
    pub spare: f64,
    /// Bytes of one mapping unit.
    pub unit_bytes: u32,
    /// Bytes of a NAND page; a flush pads the open page.
    pub page_bytes: u32,
    /// Bytes that are erased together (a superblock if the device stripes over dies).
    pub block_bytes: u64,
    /// The translation layer.
    pub mapping: Mapping,
    /// Bytes of the write buffer; 0 if there is none.
    pub buffer_bytes: u64,
    /// True if flushes need not write the buffer, because capacitors protect it.
    pub is_power_loss_protected: bool,
}

/// A model of a device, scaled to the size of a disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaled {
    /// Geometry of the device.
    pub geometry: Geometry,
    /// Translation layer of the device, with all its log blocks and open blocks.
    pub mapping: Mapping,
    /// Units of the write buffer.
    pub buffer_units: u32,
}

impl Spec {
    /// Returns the unit in which a disk of `disk_bytes` is mapped: `unit_bytes`, doubled until 32
    /// bits can number all units.
    #[must_use]
    pub fn unit_bytes_for(&self, disk_bytes: u64) -> u32 {
        let physical = disk_bytes as f64 / (1.0 - self.spare.clamp(0.0, 0.99));
        let mut unit = self.unit_bytes.max(1);
        while physical / f64::from(unit) > f64::from(u32::MAX) * 0.99 && unit < 1 << 30 {
            unit *= 2;
        }
        unit
    }

    /// Scales the device to the size of the disk, with the same share of spare blocks and the same
    /// mapping. Blocks of a page-mapped device are halved while there are fewer than 256 of them.
    /// Blocks of other mappings keep their size, because it determines how much a write copies.
    /// Log blocks and open blocks keep their number: a file system writes in as many places at once
    /// on a small disk as on a large one, and each place needs a block of its own.
    pub fn scaled(&self, disk_bytes: u64) -> Result<Scaled, Error> {
        let unit_bytes = self.unit_bytes_for(disk_bytes);
        let units = disk_bytes.div_ceil(u64::from(unit_bytes));
        let logical_units = u32::try_from(units).unwrap_or(u32::MAX);
        let units_per_page = (self.page_bytes / unit_bytes.max(1)).max(1);
        let mut units_per_block = u32::try_from(self.block_bytes / u64::from(unit_bytes))
            .unwrap_or(u32::MAX)
            .max(1)
            .next_multiple_of(units_per_page);
        if matches!(self.mapping, Mapping::Page(_)) {
            let physical = units as f64 / (1.0 - self.spare);
            while physical / f64::from(units_per_block) < FEWEST_BLOCKS as f64
                && units_per_block / 2 >= SMALLEST_BLOCK_UNITS
                && (units_per_block / 2).is_multiple_of(units_per_page)
            {
                units_per_block /= 2;
            }
        }
        let mapping = self.mapping_for(disk_bytes);
        let mut geometry = Geometry {
            unit_bytes,
            units_per_page,
            units_per_block,
            blocks: 1,
            logical_units,
        };
        geometry.blocks = self.blocks(&geometry, mapping.reserved_blocks());
        geometry.check(mapping.reserved_blocks())?;
        Ok(Scaled {
            geometry,
            mapping,
            buffer_units: u32::try_from(self.buffer_bytes / u64::from(unit_bytes))
                .unwrap_or(u32::MAX),
        })
    }

    /// Returns the number of blocks given by `spare`, but at least the number that the mapping
    /// needs.
    fn blocks(&self, geometry: &Geometry, reserved: u32) -> u32 {
        let per_block = f64::from(geometry.units_per_block);
        let nominal = f64::from(geometry.logical_units) / (1.0 - self.spare) / per_block;
        let least = geometry.logical_units.div_ceil(geometry.units_per_block);
        (nominal.round() as u32).max(least.saturating_add(reserved).saturating_add(1))
    }

    fn mapping_for(&self, disk_bytes: u64) -> Mapping {
        let share = disk_bytes as f64 / self.capacity_bytes.max(1) as f64;
        match self.mapping {
            Mapping::Page(options) => Mapping::Page(PageMapOptions {
                reserved_blocks: (f64::from(options.reserved_blocks) * share)
                    .round()
                    .max(1.0) as u32,
                ..options
            }),
            Mapping::Log(_) | Mapping::Block { .. } => self.mapping,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Association;

    const SPEC: Spec = Spec {
        capacity_bytes: 1 << 40,
        spare: 0.07,
        unit_bytes: 4096,
        page_bytes: 16384,
        block_bytes: 64 << 20,
        mapping: Mapping::Page(PageMapOptions {
            reserved_blocks: 1,
            collection: crate::Collection::Greedy,
            separation: crate::Separation::Mixed,
            streams: 1,
            levelling_gap: None,
            seed: 0,
        }),
        buffer_bytes: 1 << 20,
        is_power_loss_protected: false,
    };

    #[test]
    fn a_scaled_device_keeps_the_spare_and_has_enough_blocks() {
        let scaled = SPEC.scaled(4 << 30).unwrap();
        assert_eq!(scaled.geometry.logical_units, 1 << 20);
        assert!((scaled.geometry.spare(0) - 0.07).abs() < 1e-3);
        // 64 MiB would be 69 blocks; 16 MiB are 275.
        assert_eq!(scaled.geometry.units_per_block, 4096);
        assert_eq!(scaled.geometry.units_per_page, 4);
        assert_eq!(scaled.buffer_units, 256);
    }

    #[test]
    fn sixteen_tebibytes_fit_with_a_larger_unit() {
        let scaled = SPEC.scaled(16 << 40).unwrap();
        assert_eq!(scaled.geometry.unit_bytes, 8192);
        assert_eq!(scaled.geometry.logical_units, 1 << 31);
        assert!((scaled.geometry.spare(0) - 0.07).abs() < 1e-3);
    }

    #[test]
    fn log_blocks_and_block_sizes_are_not_scaled() {
        let log = Spec {
            mapping: Mapping::Log(LogBlocks {
                association: Association::Full,
                log_blocks: 256,
            }),
            ..SPEC
        };
        let scaled = log.scaled(1 << 30).unwrap();
        assert_eq!(scaled.geometry.units_per_block, 16384);
        assert!(matches!(
            scaled.mapping,
            Mapping::Log(LogBlocks {
                log_blocks: 256,
                ..
            })
        ));
        assert!(scaled.geometry.blocks > 16 + 256);
    }
}
