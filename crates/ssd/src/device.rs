//! A device with any mapping, addressed in bytes.

use crate::buffer::Buffer;
use crate::{
    BlockMap, Charge, Counters, Error, Geometry, LogBlockMap, Mapping, PageMap, Scaled,
    Translation, Write,
};

/// A device: a write buffer in front of a mapping, addressed in bytes.
pub struct Device<C> {
    mapping: Box<dyn Translation<Charges = C>>,
    buffer: Buffer,
    /// Writes that wait to be performed together.
    batch: Vec<Write>,
    absorbed_units: u64,
}

/// Number of writes performed together. [`PageMap`] looks ahead within them.
const BATCH: usize = 1024;

impl<C: Charge + 'static> Device<C> {
    /// Creates an unwritten device. Without a buffer, every write reaches NAND.
    pub fn new(model: &Scaled, charges: C) -> Result<Device<C>, Error> {
        let geometry = model.geometry;
        let mapping: Box<dyn Translation<Charges = C>> = match model.mapping {
            Mapping::Page(options) => Box::new(PageMap::new(geometry, options, charges)?),
            Mapping::Block { open_blocks } => {
                Box::new(BlockMap::new(geometry, open_blocks, charges)?)
            }
            Mapping::Log(options) => Box::new(LogBlockMap::new(geometry, options, charges)?),
        };
        Ok(Device {
            mapping,
            buffer: Buffer::new(model.buffer_units),
            batch: Vec::with_capacity(BATCH),
            absorbed_units: 0,
        })
    }

    /// Writes bytes. Every unit that the range touches is written as a whole.
    pub fn write(&mut self, offset: u64, bytes: u64, tag: u16, stream: u8) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        let unit = u64::from(self.geometry().unit_bytes);
        let (first, end) = (offset / unit, offset.saturating_add(bytes).div_ceil(unit));
        self.check(end)?;
        self.write_units(Write {
            first: first as u32,
            count: (end - first) as u32,
            tag,
            stream,
        })
    }

    /// Writes units.
    pub fn write_units(&mut self, write: Write) -> Result<(), Error> {
        self.check(u64::from(write.first) + u64::from(write.count))?;
        if self.buffer.holds_nothing_ever() {
            self.batch.push(write);
            self.drain_batch(BATCH - 1);
        } else {
            self.absorbed_units += self.buffer.write(write, &mut self.batch);
            self.drain_batch(BATCH);
        }
        Ok(())
    }

    /// Trims bytes. Units that lie only partly in the range are kept, as on real devices.
    pub fn trim(&mut self, offset: u64, bytes: u64, tag: u16) -> Result<(), Error> {
        let unit = u64::from(self.geometry().unit_bytes);
        let (first, end) = (offset.div_ceil(unit), offset.saturating_add(bytes) / unit);
        if end <= first {
            return Ok(());
        }
        self.check(end)?;
        self.trim_units(first as u32, (end - first) as u32, tag)
    }

    /// Trims units.
    pub fn trim_units(&mut self, first: u32, count: u32, tag: u16) -> Result<(), Error> {
        self.check(u64::from(first) + u64::from(count))?;
        self.absorbed_units += self.buffer.trim(first, count);
        self.drain_batch(0);
        self.mapping.trim(first, count, tag);
        Ok(())
    }

    /// Makes everything written durable: drains the buffer and pads the open page.
    pub fn flush(&mut self, tag: u16) {
        self.buffer.drain(&mut self.batch);
        self.drain_batch(0);
        self.mapping.flush(tag);
    }

    /// Performs waiting writes, so that [`counters`](Device::counters) include them. Buffered units
    /// stay in the buffer.
    pub fn settle(&mut self) {
        self.drain_batch(0);
    }

    /// Returns the geometry of the device.
    pub fn geometry(&self) -> &Geometry {
        self.mapping.geometry()
    }

    /// Returns the totals as of the last [`settle`](Device::settle) or [`flush`](Device::flush).
    pub fn counters(&self) -> Counters {
        let made = self.mapping.counters();
        Counters {
            absorbed_units: self.absorbed_units,
            host_units: made.host_units + self.absorbed_units,
            ..made
        }
    }

    /// Returns the erase count of each block.
    pub fn erases(&self) -> &[u32] {
        self.mapping.erases()
    }

    /// Returns the charges of each tag.
    pub fn charges(&self) -> &C {
        self.mapping.charges()
    }

    fn check(&self, end: u64) -> Result<(), Error> {
        let logical = u64::from(self.geometry().logical_units);
        if end > logical {
            return Err(Error::BeyondEnd {
                end_units: end,
                logical_units: logical,
            });
        }
        Ok(())
    }

    /// Performs the waiting writes if there are more than `keep`.
    fn drain_batch(&mut self, keep: usize) {
        if self.batch.len() > keep {
            let batch = std::mem::take(&mut self.batch);
            self.mapping.write_all(&batch);
            self.batch = batch;
            self.batch.clear();
        }
    }
}
