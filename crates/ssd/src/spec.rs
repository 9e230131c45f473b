//! A device as described by its data sheet, and its model scaled to the size of a recorded disk.

use crate::{Error, Geometry, LogBlocks, PageMapOptions};

/// Minimum number of erase blocks. Fewer blocks would make collection coarser than on any real
/// device.
const FEWEST_BLOCKS: u64 = 256;
/// Block size below which blocks are not divided further; smaller blocks are those of real NAND.
const SMALLEST_BLOCK_UNITS: u32 = 64;

/// Part of the device that a disk stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    /// The disk is the part of the device that the workload uses.
    #[default]
    Part,
    /// The disk stands for the whole device, at a smaller scale.
    Whole,
}

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
    /// Logical blocks of the device beyond the disk.
    pub blocks_beyond: u32,
    /// Those of them that hold data, which is never rewritten. Without page mapping, such a block
    /// has no effect on the others: they are not part of the model.
    pub cold_blocks: u32,
}

impl Scaled {
    /// Fills this share of the device beyond the disk. The rest becomes free blocks.
    #[must_use]
    pub fn filled(mut self, fill: f64) -> Scaled {
        let cold = (f64::from(self.blocks_beyond) * fill.clamp(0.0, 1.0)).ceil() as u32;
        self.geometry.blocks += self.cold_blocks;
        self.geometry.blocks -= cold;
        self.cold_blocks = cold;
        self
    }

    /// Returns (physical − logical) ÷ physical units of the device.
    #[must_use]
    pub fn nominal_spare(&self) -> f64 {
        let beyond = f64::from(self.blocks_beyond) * f64::from(self.geometry.units_per_block);
        1.0 - (f64::from(self.geometry.logical_units) + beyond) / self.physical_units()
    }

    /// Returns the share of the device's units that hold no data if `mapped_units` of the disk do,
    /// excluding the blocks that the mapping reserves.
    #[must_use]
    pub fn effective_spare(&self, mapped_units: u64) -> f64 {
        let per_block = f64::from(self.geometry.units_per_block);
        let reserved = f64::from(self.mapping.reserved_blocks()) * per_block;
        let cold = f64::from(self.cold_blocks) * per_block;
        1.0 - (mapped_units as f64 + cold) / (self.physical_units() - reserved)
    }

    fn physical_units(&self) -> f64 {
        let cold = u64::from(self.cold_blocks) * u64::from(self.geometry.units_per_block);
        (self.geometry.physical_units() + cold) as f64
    }
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

    /// Scales the device to the size of the disk.
    ///
    /// A page-mapped device keeps its share of spare blocks, because any data can be collected. Its
    /// blocks are halved while there are fewer than 256 of them.
    ///
    /// Blocks of other mappings keep their size, because it determines how much a write copies.
    /// Log, open and spare blocks keep their number: a file system writes in as many places at once
    /// on a small disk as on a large one, and all spare blocks take turns with the blocks that it
    /// writes. Only if the disk is the `Whole` device do spare blocks shrink with it.
    pub fn scaled(&self, disk_bytes: u64, extent: Extent) -> Result<Scaled, Error> {
        let unit_bytes = self.unit_bytes_for(disk_bytes);
        let units_of =
            |bytes: u64| u32::try_from(bytes.div_ceil(u64::from(unit_bytes))).unwrap_or(u32::MAX);
        let units_per_page = (self.page_bytes / unit_bytes.max(1)).max(1);
        let mut geometry = Geometry {
            unit_bytes,
            units_per_page,
            units_per_block: self.block_units(unit_bytes),
            blocks: 1,
            logical_units: units_of(disk_bytes),
        };
        let (mut whole_units, mut blocks_beyond) = (geometry.logical_units, 0);
        if matches!(self.mapping, Mapping::Page(_)) {
            geometry.units_per_block = self.page_mapped_block(&geometry);
        } else if extent == Extent::Part {
            whole_units = units_of(self.capacity_bytes);
            let blocks = whole_units.div_ceil(geometry.units_per_block);
            blocks_beyond = blocks.saturating_sub(geometry.logical_blocks() as u32);
        }
        let mapping = self.mapping_for(disk_bytes);
        geometry.blocks = self.blocks(&geometry, whole_units, mapping.reserved_blocks());
        geometry.check(mapping.reserved_blocks())?;
        Ok(Scaled {
            geometry,
            mapping,
            buffer_units: u32::try_from(self.buffer_bytes / u64::from(unit_bytes))
                .unwrap_or(u32::MAX),
            blocks_beyond,
            cold_blocks: blocks_beyond,
        })
    }

    /// Returns how many neighbouring units the device places together: those of an erase block, or
    /// one if it maps pages.
    #[must_use]
    pub fn units_together(&self, unit_bytes: u32) -> u32 {
        match self.mapping {
            Mapping::Page(_) => 1,
            Mapping::Block { .. } | Mapping::Log(_) => self.block_units(unit_bytes),
        }
    }

    pub(crate) fn block_units(&self, unit_bytes: u32) -> u32 {
        u32::try_from(self.block_bytes / u64::from(unit_bytes.max(1)))
            .unwrap_or(u32::MAX)
            .max(1)
            .next_multiple_of((self.page_bytes / unit_bytes.max(1)).max(1))
    }

    /// Returns the units of a block of a page-mapped device, of which there are enough.
    fn page_mapped_block(&self, geometry: &Geometry) -> u32 {
        let mut units = geometry.units_per_block;
        let physical = f64::from(geometry.logical_units) / (1.0 - self.spare);
        while physical / f64::from(units) < FEWEST_BLOCKS as f64
            && units / 2 >= SMALLEST_BLOCK_UNITS
            && (units / 2).is_multiple_of(geometry.units_per_page)
        {
            units /= 2;
        }
        units
    }

    /// Returns the number of blocks of the disk and the spare ones of `whole_units`, but at least
    /// the number that the mapping needs.
    fn blocks(&self, geometry: &Geometry, whole_units: u32, reserved: u32) -> u32 {
        let per_block = f64::from(geometry.units_per_block);
        let spare_units = f64::from(whole_units) * self.spare / (1.0 - self.spare);
        let nominal = ((f64::from(geometry.logical_units) + spare_units) / per_block).round();
        let least = geometry.logical_blocks() as u32;
        (nominal as u32).max(least.saturating_add(reserved).saturating_add(1))
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
        let scaled = SPEC.scaled(4 << 30, Extent::Part).unwrap();
        assert_eq!(scaled.geometry.logical_units, 1 << 20);
        assert!((scaled.geometry.spare(0) - 0.07).abs() < 1e-3);
        // 64 MiB would be 69 blocks; 16 MiB are 275.
        assert_eq!(scaled.geometry.units_per_block, 4096);
        assert_eq!(scaled.geometry.units_per_page, 4);
        assert_eq!(scaled.buffer_units, 256);
    }

    #[test]
    fn sixteen_tebibytes_fit_with_a_larger_unit() {
        let scaled = SPEC.scaled(16 << 40, Extent::Part).unwrap();
        assert_eq!(scaled.geometry.unit_bytes, 8192);
        assert_eq!(scaled.geometry.logical_units, 1 << 31);
        assert!((scaled.geometry.spare(0) - 0.07).abs() < 1e-3);
    }

    #[test]
    fn log_spare_and_block_sizes_are_not_scaled() {
        let log = Spec {
            mapping: Mapping::Log(LogBlocks {
                association: Association::Full,
                log_blocks: 256,
            }),
            ..SPEC
        };
        let scaled = log.scaled(1 << 30, Extent::Part).unwrap();
        assert_eq!(scaled.geometry.units_per_block, 16384);
        assert!(matches!(
            scaled.mapping,
            Mapping::Log(LogBlocks {
                log_blocks: 256,
                ..
            })
        ));
        // 7 % of 2^40 ÷ 0.93, in blocks of 64 MiB, beside the 16 blocks of the disk.
        assert_eq!(scaled.geometry.blocks, 1233 + 16);
        let whole = log.scaled(1 << 30, Extent::Whole).unwrap();
        assert_eq!(whole.geometry.blocks, 16 + 256 + 1 + 1);
    }
}
