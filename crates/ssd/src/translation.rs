//! The interface of translation layers.

use crate::nand::Nand;
use crate::{Charge, Counters, Geometry};

/// A write of consecutive units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// First logical unit.
    pub first: u32,
    /// Number of units.
    pub count: u32,
    /// Tag to which the write is charged.
    pub tag: u16,
    /// Stream of the host that the write belongs to. If the device has fewer streams, the last one
    /// is used.
    pub stream: u8,
}

impl Write {
    /// Creates a write of the host's first stream.
    #[must_use]
    pub fn new(first: u32, count: u32, tag: u16) -> Write {
        Write {
            first,
            count,
            tag,
            stream: 0,
        }
    }
}

/// A translation layer. Addresses must lie within [`Geometry::logical_units`];
/// [`Device`](crate::Device) checks them.
pub trait Translation {
    /// Type that receives each program, move and invalidation.
    type Charges: Charge;

    /// Returns the NAND of the device.
    fn nand(&self) -> &Nand<Self::Charges>;
    /// Returns the location of a logical unit; `None` if it was never written, or was trimmed.
    fn physical(&self, logical: u32) -> Option<u32>;
    /// Performs the writes in order.
    fn write_all(&mut self, writes: &[Write]);
    /// Trims units.
    fn trim(&mut self, first: u32, count: u32, tag: u16);
    /// Makes everything written durable.
    fn flush(&mut self, tag: u16);

    /// Returns the geometry of the device.
    fn geometry(&self) -> &Geometry {
        &self.nand().geometry
    }

    /// Returns the totals so far.
    fn counters(&self) -> Counters {
        self.nand().counters
    }

    /// Returns the erase count of each block.
    fn erases(&self) -> &[u32] {
        &self.nand().erases
    }

    /// Returns the charges of each tag.
    fn charges(&self) -> &Self::Charges {
        &self.nand().charges
    }
}
