//! Operations of a record, and how those of one transaction become items
//! (fs/xfs/libxfs/xfs_log_format.h, `xlog_op_header`).

use super::super::bytes::{be32, le16, le32};
use super::record::Record;
use super::regions::Regions;
use std::ops::Range;

const HEADER_BYTES: usize = 12;
/// A transaction begins.
pub const START: u8 = 1;
/// It is whole.
pub const COMMIT: u8 = 2;
/// The region goes on in the next record.
const CONTINUES: u8 = 4;
/// The region began in an earlier record.
const CONTINUED: u8 = 8;
/// The file system was unmounted: nothing before it is to be replayed.
pub const UNMOUNT: u8 = 32;
/// `XFS_TRANS_HEADER_MAGIC`, and its bytes with the header's.
const TRANSACTION_MAGIC: u32 = 0x5452_414e;
const TRANSACTION_HEADER_BYTES: usize = 16;
/// More than any item has; what claims more is not understood.
const MOST_ITEM_BYTES: usize = 4 << 20;

/// One operation.
pub struct Operation<'a> {
    /// The transaction's number in the log.
    pub id: u32,
    /// [`START`] and so on.
    pub flags: u8,
    /// Bytes of the record, the operation's header included.
    pub range: Range<usize>,
    /// A region, or a part of one.
    pub payload: &'a [u8],
}

impl Record {
    /// The record's operations, as far as they can be read.
    pub fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        let mut at = self.content_at;
        (0..self.operation_count).map_while(move |_| {
            let begin = at.checked_add(HEADER_BYTES)?;
            let header = self.bytes.get(at..begin)?;
            let end = begin.checked_add(be32(header, 4)? as usize)?;
            let operation = Operation {
                id: be32(header, 0)?,
                flags: header[9],
                range: at..end,
                payload: self.bytes.get(begin..end)?,
            };
            at = end;
            Some(operation)
        })
    }
}

/// What an operation is to its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The transaction's own header.
    Header,
    /// An item, which goes on.
    Item,
    /// An item, which is whole with this.
    LastOfItem,
}

/// Puts one transaction's items together.
#[derive(Debug, Default)]
pub struct Items {
    header: usize,
    is_partial: bool,
    /// Regions of the present item; whoever has read a whole one clears them.
    pub regions: Regions,
}

impl Items {
    /// The next operation.
    pub fn take(&mut self, operation: &Operation<'_>) -> Part {
        let (flags, payload) = (operation.flags, operation.payload);
        let is_continued = flags & CONTINUED != 0 && self.is_partial;
        self.is_partial = flags & CONTINUES != 0;
        if self.header < TRANSACTION_HEADER_BYTES {
            let begins = self.header > 0 || le32(payload, 0) == Some(TRANSACTION_MAGIC);
            self.header = match begins {
                true => self.header + payload.len(),
                false => TRANSACTION_HEADER_BYTES,
            };
            if begins {
                return Part::Header;
            }
        }
        match is_continued {
            true => self.regions.extend(payload),
            false => self.regions.push(payload),
        }
        let goes_on = self.is_partial || !self.is_whole();
        match goes_on && self.regions.bytes() < MOST_ITEM_BYTES {
            true => Part::Item,
            false => Part::LastOfItem,
        }
    }

    /// Whether all regions are there: every format begins with type and number of regions.
    fn is_whole(&self) -> bool {
        let count = self.regions.get(0).and_then(|first| le16(first, 2));
        count.is_some_and(|count| self.regions.count() >= usize::from(count))
    }
}
