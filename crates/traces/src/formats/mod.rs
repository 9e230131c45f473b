//! The formats, one module each, and their detection.

pub(crate) mod alibaba;
pub(crate) mod blkparse;
pub(crate) mod blktrace;
mod csv;
mod detect;
pub(crate) mod disksim;
pub(crate) mod dm_log_writes;
pub(crate) mod fio;
pub(crate) mod fiu;
pub(crate) mod msr;
pub(crate) mod spc;
pub(crate) mod systor17;
pub(crate) mod tencent;
mod words;

use crate::{
    error::{Problem, Result},
    request::Output,
};

pub(crate) use detect::{HEAD_BYTES, detect};

/// Number of lines or records that are read at once.
const BATCH: usize = 1024;

/// A format of block I/O traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Text of blkparse(1) in its default format.
    Blkparse,
    /// Binary output of blktrace(8), versions 7 and 8 (`blk_io_trace2`).
    Blktrace,
    /// MSR Cambridge (SNIA IOTTA 388), CSV.
    Msr,
    /// fio's iolog, versions 2 and 3.
    Fio,
    /// SYSTOR '17 (SNIA IOTTA 4964), CSV.
    Systor17,
    /// Alibaba block traces, CSV.
    Alibaba,
    /// Tencent block storage (SNIA IOTTA 27917), CSV.
    Tencent,
    /// Storage Performance Council, as in the UMass Trace Repository, CSV.
    Spc,
    /// Florida International University (SNIA IOTTA 411).
    Fiu,
    /// ASCII format of `DiskSim`.
    Disksim,
    /// ASCII format of `MQSim`.
    Mqsim,
    /// Log of the kernel's dm-log-writes target.
    DmLogWrites,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 12] = [
        Format::Blkparse,
        Format::Blktrace,
        Format::Msr,
        Format::Fio,
        Format::Systor17,
        Format::Alibaba,
        Format::Tencent,
        Format::Spc,
        Format::Fiu,
        Format::Disksim,
        Format::Mqsim,
        Format::DmLogWrites,
    ];

    /// Returns the name used in options and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Blkparse => "blkparse",
            Format::Blktrace => "blktrace",
            Format::Msr => "msr",
            Format::Fio => "fio",
            Format::Systor17 => "systor17",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::Spc => "spc",
            Format::Fiu => "fiu",
            Format::Disksim => "disksim",
            Format::Mqsim => "mqsim",
            Format::DmLogWrites => "dm-log-writes",
        }
    }

    /// Returns the format with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// A file that is read in steps.
pub(crate) trait Reader: Send {
    /// Adds the requests of the next line or record, if any. False at the end.
    fn step(&mut self, out: &mut Output) -> Result<bool>;

    /// Adds the requests of the next lines or records. False at the end. One call covers many
    /// steps, so that each reader has its own loop.
    fn fill(&mut self, out: &mut Output) -> Result<bool> {
        for _ in 0..BATCH {
            if !self.step(out)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A text format, read line by line.
pub(crate) trait Text: Send {
    /// First line that may name the columns.
    const HEADER: &str = "";

    /// Adds the requests of a line; none for a comment, or an event that does not count.
    fn line(&mut self, line: &[u8], out: &mut Output) -> std::result::Result<(), Problem>;
}
