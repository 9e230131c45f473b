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
    /// Creates the geometry of a device of `capacity_bytes`, in which the share `spare` of the
    /// physical units is not addressable. `spare` is (physical − logical) ÷ physical, *not*
    /// over-provisioning, which divides by logical.
    pub fn with_spare(
        capacity_bytes: u64,
        spare: f64,
        unit_bytes: u32,
        units_per_page: u32,
        units_per_block: u32,
    ) -> Result<Geometry, Error> {
        if !(0.0..1.0).contains(&spare) {
            return Err(Error::Field {
                field: "spare in percent",
                value: (spare * 100.0) as u64,
                rule: "at least 0 and less than 100",
            });
        }
        let logical = capacity_bytes / u64::from(unit_bytes.max(1));
        let physical = logical as f64 / (1.0 - spare);
        let blocks = (physical / f64::from(units_per_block.max(1))).round();
        let geometry = Geometry {
            unit_bytes,
            units_per_page,
            units_per_block,
            // A value that does not fit saturates, and `check` rejects it.
            blocks: blocks as u32,
            logical_units: u32::try_from(logical).unwrap_or(u32::MAX),
        };
        geometry.check(0)?;
        Ok(geometry)
    }

    /// Checks that a mapping with `reserved_blocks` reserved blocks can run on this geometry.
    pub fn check(&self, reserved_blocks: u32) -> Result<(), Error> {
        let positive = |field, value: u32| {
            let rule = "at least 1";
            let value = u64::from(value);
            if value == 0 {
                Err(Error::Field { field, value, rule })
            } else {
                Ok(())
            }
        };
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
                field: "physical units",
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

    /// Returns the number of bytes that the host can address.
    #[must_use]
    pub fn logical_bytes(&self) -> u64 {
        u64::from(self.logical_units) * u64::from(self.unit_bytes)
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
        let geometry = Geometry::with_spare(1 << 30, 0.28, 4096, 1, 256).unwrap();
        assert_eq!(geometry.logical_units, 1 << 18);
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
            .starts_with("physical units is 4294967296")
        );
        assert!(
            refused(good, 2)
                .starts_with("10 blocks of 64 units cannot hold 512 logical units and 2 reserved")
        );
        assert!(Geometry::with_spare(1 << 50, 0.07, 4096, 1, 256).is_err());
        assert!(Geometry::with_spare(1 << 30, 1.0, 4096, 1, 256).is_err());
    }
}
