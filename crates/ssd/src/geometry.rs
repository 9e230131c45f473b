//! The size of a device in units, pages and erase blocks.

use thiserror::Error;

/// A geometry that no model supports.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// A field is out of range.
    #[error("{field} is {value}: it must be {rule}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: u64,
        /// Rule that the value breaks.
        rule: &'static str,
    },
    /// The blocks cannot hold the logical units and the mapping's reserved blocks.
    #[error(
        "{blocks} blocks of {units_per_block} units cannot hold {logical_units} logical units and \
         {reserved_blocks} reserved blocks with at least one block to spare"
    )]
    NoSpare {
        /// Number of physical blocks.
        blocks: u32,
        /// Units in each block.
        units_per_block: u32,
        /// Units that the host sees.
        logical_units: u32,
        /// Blocks that never hold settled data.
        reserved_blocks: u32,
    },
    /// A request ends beyond the last logical unit.
    #[error("a request ends at unit {end_units}, and the device has {logical_units}")]
    BeyondEnd {
        /// End of the request.
        end_units: u64,
        /// Units that the host can address.
        logical_units: u64,
    },
    /// The caller stopped the replay.
    #[error("the replay was stopped")]
    Stopped,
}

/// Checks that a field is at least 1.
pub(crate) fn positive(field: &'static str, value: u32) -> Result<(), Error> {
    let (value, rule) = (u64::from(value), "at least 1");
    match value {
        0 => Err(Error::Field { field, value, rule }),
        _ => Ok(()),
    }
}

/// The size of a device. A *unit* is the range that one entry of the mapping table covers: often 4
/// KiB, independent of the NAND page size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of one mapping unit.
    pub unit_bytes: u32,
    /// Units of one NAND page; a flush pads the open page.
    pub units_per_page: u32,
    /// Units of one erase block.
    pub units_per_block: u32,
    /// Number of physical erase blocks, excluding bad blocks.
    pub blocks: u32,
    /// Units that the host can address.
    pub logical_units: u32,
}

impl Geometry {
    /// Checks that a mapping with `reserved_blocks` reserved blocks can run on this geometry.
    pub fn check(&self, reserved_blocks: u32) -> Result<(), Error> {
        positive("unit_bytes", self.unit_bytes)?;
        positive("units_per_page", self.units_per_page)?;
        positive("units_per_block", self.units_per_block)?;
        positive("blocks", self.blocks)?;
        positive("logical_units", self.logical_units)?;
        if !self.units_per_block.is_multiple_of(self.units_per_page) {
            return Err(Error::Field {
                field: "units_per_block",
                value: u64::from(self.units_per_block),
                rule: "a multiple of units_per_page",
            });
        }
        // Physical addresses are 32 bits wide, and the last one means "nowhere".
        if self.physical_units() >= u64::from(u32::MAX) {
            return Err(Error::Field {
                field: "the number of physical units",
                value: self.physical_units(),
                rule: "less than 2^32 - 1 (use a larger unit_bytes: large drives map 16 KiB or \
                    more at once)",
            });
        }
        let usable = u64::from(self.blocks.saturating_sub(reserved_blocks))
            * u64::from(self.units_per_block);
        if usable < u64::from(self.logical_units) + u64::from(self.units_per_block) {
            return Err(Error::NoSpare {
                blocks: self.blocks,
                units_per_block: self.units_per_block,
                logical_units: self.logical_units,
                reserved_blocks,
            });
        }
        Ok(())
    }

    /// Returns the number of units in all blocks.
    #[must_use]
    pub fn physical_units(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.units_per_block)
    }

    pub(crate) fn logical_blocks(&self) -> usize {
        self.logical_units.div_ceil(self.units_per_block) as usize
    }

    /// Returns (physical − logical) ÷ physical, excluding `reserved_blocks` from the physical
    /// units. With 0, this is the nominal spare.
    #[must_use]
    pub fn spare(&self, reserved_blocks: u32) -> f64 {
        let physical =
            self.physical_units() - u64::from(reserved_blocks) * u64::from(self.units_per_block);
        1.0 - f64::from(self.logical_units) / physical as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nominal_and_effective_spare_differ_by_the_reserved_blocks() {
        let geometry = Geometry {
            unit_bytes: 4096,
            units_per_page: 1,
            units_per_block: 256,
            blocks: 1422,
            logical_units: 1 << 18,
        };
        assert!((geometry.spare(0) - 0.28).abs() < 1e-3);
        assert!(geometry.spare(100) < 0.25);
    }

    #[test]
    fn what_cannot_run_is_refused_by_name() {
        let good = Geometry {
            unit_bytes: 4096,
            units_per_page: 4,
            units_per_block: 64,
            blocks: 10,
            logical_units: 512,
        };
        assert_eq!(good.check(1), Ok(()));
        let refused =
            |geometry: Geometry, reserved| geometry.check(reserved).unwrap_err().to_string();
        assert!(refused(Geometry { blocks: 0, ..good }, 0).starts_with("blocks is 0"));
        assert!(
            refused(
                Geometry {
                    units_per_page: 3,
                    ..good
                },
                0
            )
            .starts_with("units_per_block is 64")
        );
        assert!(
            refused(
                Geometry {
                    blocks: 1 << 26,
                    ..good
                },
                0
            )
            .starts_with("the number of physical units is 4294967296")
        );
        assert!(
            refused(good, 2)
                .starts_with("10 blocks of 64 units cannot hold 512 logical units and 2 reserved")
        );
    }
}
