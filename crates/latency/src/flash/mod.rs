//! Devices of NAND flash: channels with dies behind a controller, and a write buffer.
//!
//! Each resource (controller, interface, channel, die) is booked in order of arrival, so a
//! request's completion time is known as soon as the request is accepted. Garbage collection is not
//! modelled: the device is fresh.

mod dies;
mod drive;
mod map;
mod parameters;
mod slc;
mod units;

pub(crate) use drive::FlashDrive;
pub(crate) use parameters::Flash;
