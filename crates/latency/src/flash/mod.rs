//! Devices of NAND flash: channels with dies behind a controller, and a write buffer.
//!
//! Each resource (controller, interface, channel, die) is booked in the order of arrival, so a
//! completion is known as soon as a request is taken. Garbage collection, SLC caches and the map's
//! own reads are not modelled: the device is fresh.

mod dies;
mod drive;
mod parameters;
mod units;

pub(crate) use drive::FlashDrive;
pub(crate) use parameters::Flash;
