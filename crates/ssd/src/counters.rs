//! Counters of a device, in units.

/// Totals since the device was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Units that the host wrote; a partially written unit counts as one.
    pub host_units: u64,
    /// Mapped units that the host trimmed.
    pub trimmed_units: u64,
    /// Units that were rewritten or trimmed in the write buffer and therefore never programmed.
    pub absorbed_units: u64,
    /// Units programmed because the host wrote them.
    pub written_units: u64,
    /// Units programmed because garbage collection, a merge or wear levelling moved them.
    pub copied_units: u64,
    /// Part of `copied_units` that static wear levelling moved.
    pub levelled_units: u64,
    /// Units left empty to fill the open page at a flush.
    pub padded_units: u64,
    /// Blocks erased.
    pub erases: u64,
}

impl Counters {
    /// Returns the number of units that NAND programmed, for any reason.
    #[must_use]
    pub fn programmed_units(&self) -> u64 {
        self.written_units + self.copied_units + self.padded_units
    }

    /// Returns the NAND programs per unit that the host wrote; `None` if the host wrote nothing.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        (self.host_units > 0).then(|| self.programmed_units() as f64 / self.host_units as f64)
    }
}

impl std::ops::Sub for Counters {
    type Output = Counters;

    /// Returns the difference between two readings.
    fn sub(self, earlier: Counters) -> Counters {
        Counters {
            host_units: self.host_units - earlier.host_units,
            trimmed_units: self.trimmed_units - earlier.trimmed_units,
            absorbed_units: self.absorbed_units - earlier.absorbed_units,
            written_units: self.written_units - earlier.written_units,
            copied_units: self.copied_units - earlier.copied_units,
            levelled_units: self.levelled_units - earlier.levelled_units,
            padded_units: self.padded_units - earlier.padded_units,
            erases: self.erases - earlier.erases,
        }
    }
}
