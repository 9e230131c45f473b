//! The kernel's block statistics of a device.
//!
//! Fields of `/sys/block/NAME/stat` (Documentation/block/stat.rst): 1 read I/Os, 3 read sectors, 5
//! write I/Os, 7 write sectors, 9 in flight, 12 discard I/Os, 14 discard sectors (since 4.19), 16
//! flush I/Os (since 5.5). Sectors are 512 bytes whatever the device's own sector size is.

use crate::error::{CellError, Context, Kind, Result};
use serde::Serialize;

const SECTOR_BYTES: u64 = 512;

/// Counters of a device, either cumulative or a difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Read requests completed.
    pub read_requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Write requests completed, including write-zeroes.
    pub write_requests: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Discard requests completed.
    pub discard_requests: u64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// Flush requests completed.
    pub flush_requests: u64,
}

/// One reading of `stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockStat {
    /// Counters since boot: they survive the detaching of a loop device.
    pub counters: Counters,
    /// Requests issued but not completed, which the counters do not include yet.
    pub in_flight: u64,
}

impl BlockStat {
    /// Returns the current statistics of a device or partition.
    pub fn of(kernel_name: &str) -> Result<Self> {
        let path = format!("/sys/class/block/{kernel_name}/stat");
        let text =
            std::fs::read_to_string(&path).context(Kind::Attach, || format!("read {path}"))?;
        Self::parse(&text).ok_or_else(|| {
            CellError::new(
                Kind::Attach,
                format!("unexpected content in {path}: {text}"),
            )
        })
    }

    /// Parses the text of a `stat` file. Fields that an old kernel lacks are zero.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text
            .split_whitespace()
            .map(|field| field.parse().ok())
            .collect::<Option<_>>()?;
        if fields.len() < 11 {
            return None;
        }
        let field = |number: usize| fields.get(number - 1).copied().unwrap_or(0);
        Some(Self {
            counters: Counters {
                read_requests: field(1),
                read_bytes: field(3) * SECTOR_BYTES,
                write_requests: field(5),
                write_bytes: field(7) * SECTOR_BYTES,
                discard_requests: field(12),
                discard_bytes: field(14) * SECTOR_BYTES,
                flush_requests: field(16),
            },
            in_flight: field(9),
        })
    }
}

impl Counters {
    /// Returns the difference from `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            read_requests: self.read_requests.saturating_sub(earlier.read_requests),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            write_requests: self.write_requests.saturating_sub(earlier.write_requests),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
            discard_requests: self
                .discard_requests
                .saturating_sub(earlier.discard_requests),
            discard_bytes: self.discard_bytes.saturating_sub(earlier.discard_bytes),
            flush_requests: self.flush_requests.saturating_sub(earlier.flush_requests),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seventeen_fields_of_a_new_kernel() {
        let stat = BlockStat::parse("  1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n").unwrap();
        assert_eq!(stat.in_flight, 9);
        assert_eq!(
            stat.counters,
            Counters {
                read_requests: 1,
                read_bytes: 3 * 512,
                write_requests: 5,
                write_bytes: 7 * 512,
                discard_requests: 12,
                discard_bytes: 14 * 512,
                flush_requests: 16,
            }
        );
    }

    #[test]
    fn the_eleven_fields_of_an_old_kernel() {
        let stat = BlockStat::parse("1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!(
            (stat.counters.write_bytes, stat.counters.discard_bytes),
            (7 * 512, 0)
        );
        assert_eq!(BlockStat::parse("1 2 3"), None);
        assert_eq!(BlockStat::parse("1 2 3 4 5 6 7 8 9 10 eleven"), None);
    }

    #[test]
    fn a_difference() {
        let early = Counters {
            write_bytes: 10,
            ..Counters::default()
        };
        let late = Counters {
            write_bytes: 30,
            flush_requests: 2,
            ..Counters::default()
        };
        assert_eq!(
            late.since(&early),
            Counters {
                write_bytes: 20,
                flush_requests: 2,
                ..Counters::default()
            }
        );
    }
}
