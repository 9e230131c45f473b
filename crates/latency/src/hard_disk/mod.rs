//! Hard disks: one arm that moves over spinning tracks, a buffer, and a queue that the drive
//! reorders.

mod arm;
mod drive;
mod extents;
mod geometry;
mod parameters;
mod read_cache;
mod write_cache;

pub(crate) use drive::Drive;
pub(crate) use parameters::HardDisk;
