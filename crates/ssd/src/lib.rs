//! Models of flash translation layers: the effect of a stream of host writes on NAND pages and
//! erase blocks.
//!
//! A [`Device`] is a [`Geometry`] and a [`Mapping`]. It takes batches of [`Write`]s, trims and
//! flushes, counted in *units*: the granularity at which the device maps logical to physical
//! addresses. It keeps [`Counters`] and erase counts of each block ([`Wear`]). On request, it also
//! keeps the cost of each tag (a row of an explanation) as [`Charges`].
//!
//! [`replay`] runs a [`Workload`] on the model of a real device ([`Spec`]) until its write
//! amplification is steady.
//!
//! Everything is deterministic: the same geometry, mapping, seed and stream give the same result.
//!
//! Sources: Desnoyers, "Analytic Modeling of SSD Write Performance" (SYSTOR'12); Van Houdt, "A Mean
//! Field Model for a Class of Garbage Collection Algorithms in Flash-based Solid State Drives"
//! (SIGMETRICS'13); Kim et al., "A space-efficient flash translation layer for CompactFlash
//! systems" (BAST, 2002); Lee et al., "A log buffer-based flash translation layer using
//! fully-associative sector translation" (FAST, 2007). `tests/closed_form.rs` compares the models
//! with their formulas.

// Only `memory` may give hints to the kernel and the processor.
#![deny(unsafe_code)]
// Libraries report errors; they never print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod block_map;
mod buffer;
mod charges;
mod counters;
mod device;
mod geometry;
mod holds;
mod log_blocks;
mod memory;
mod nand;
mod page_map;
mod replay;
mod spec;
mod timed;
mod translation;
mod variation;
mod wear;
mod workload;

pub use block_map::BlockMap;
pub use charges::{Charge, Charges, ChargesByTag, NoCharges, UNATTRIBUTED};
pub use counters::Counters;
pub use device::Device;
pub use geometry::{Error, Geometry};
pub use log_blocks::{Association, LogBlockMap, LogBlocks};
pub use page_map::{Collection, PageMap, PageMapOptions, Separation};
pub use replay::{Options, Repeat, Replay, replay};
pub use spec::{Extent, Mapping, Scaled, Spec};
pub use timed::{TimedDevice, Timing};
pub use translation::{Translation, Write};
pub use wear::Wear;
pub use workload::{Kind, Part, Step, Workload};
