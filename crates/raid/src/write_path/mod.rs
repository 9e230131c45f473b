//! Requests that an array's members receive for the requests of the array device, as Linux md
//! issues them.
//!
//! Levels without parity (`drivers/md/{md-linear,raid0,raid1,raid10}.c`) split a request at chunk
//! boundaries. The model submits the pieces at once, and merges pieces of one request that are
//! contiguous on a member.
//!
//! Levels with parity (`drivers/md/raid5.c`) write through the [stripe cache](stripes). Blocks of a
//! batch gather in 4 KiB stripes, and md then chooses between read-modify-write and
//! reconstruct-write for each stripe. The caller ends a batch with [`Array::settle`]; a flush ends
//! it too.
//!
//! The model covers a clean array with all its members, without resync, journal or partial parity
//! log. It omits writes to md's superblocks and write-intent bitmap.

mod load;
mod stripes;

pub use load::{Load, Queues};
pub use stripes::{Method, Rmw, Row, RowCounts};

use crate::{Geometry, Map, Place};
use stripes::Stripes;

/// `max_sectors_kb` of most disks (`BLK_DEF_MAX_SECTORS_CAP`): contiguous pieces are merged up to
/// this size.
const MAX_REQUEST_BYTES: u64 = 1280 << 10;

/// Kind of a request to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Read that the array's user requested.
    Read,
    /// Read that md needs to compute parity.
    Preread,
    /// Write of data, of parity, or of both where they are contiguous.
    Write,
    /// Discard.
    Discard,
    /// Flush of the member's cache.
    Flush,
}

/// A request to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemberRequest {
    /// Index of the member.
    pub member: usize,
    /// Kind of the request.
    pub operation: Operation,
    /// Byte offset in the member's data area.
    pub offset: u64,
    /// Length in bytes; 0 for a flush.
    pub bytes: u64,
    /// Part of `bytes` that is parity (P and Q), or a copy after the first.
    pub redundant_bytes: u64,
}

/// Requests to members, in the order in which they are issued.
pub type Requests = Vec<MemberRequest>;

/// An array without a modelled write path, or a request that the array cannot serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No array has this shape: [`Map::new`] rejects it.
    #[error("no array has this level, layout, chunk and number of members")]
    Shape,
    /// The chunk size is not a multiple of the 4 KiB blocks of RAID 4, 5 and 6.
    #[error("a chunk of {chunk_bytes} bytes: RAID 4, 5 and 6 take multiples of 4096")]
    Chunk {
        /// Size of the chunk in bytes.
        chunk_bytes: u64,
    },
    /// The request ends beyond the array.
    #[error("a request ends at byte {end}, and the array has {array_bytes}")]
    BeyondEnd {
        /// End of the request.
        end: u64,
        /// Size of the array.
        array_bytes: u64,
    },
    /// The array has more members than the write path of RAID 4, 5 and 6 covers.
    #[error(
        "{members} members: RAID 4, 5 and 6 are modelled for at most {}",
        stripes::MOST_MEMBERS
    )]
    TooManyMembers {
        /// Number of members of the array.
        members: usize,
    },
}

/// Settings of md besides the array's geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WritePath {
    /// Condition for computing parity from old parity (`rmw_level` in sysfs).
    pub rmw: Rmw,
    /// Stripes of 4 KiB on each member that md caches (`stripe_cache_size` in sysfs). md enlarges
    /// its cache under load; the model does not.
    pub cached_stripes: usize,
}

impl Default for WritePath {
    /// Returns md's defaults for a new array.
    fn default() -> WritePath {
        WritePath {
            rmw: Rmw::WhenFewerReads,
            cached_stripes: 256,
        }
    }
}

/// An array that serves requests.
#[derive(Debug, Clone)]
pub struct Array {
    map: Map,
    members: usize,
    stripes: Option<Stripes>,
}

impl Array {
    /// Creates an array of this shape with an empty cache.
    pub fn new(geometry: &Geometry, options: WritePath) -> Result<Array, Error> {
        let map = Map::new(geometry).ok_or(Error::Shape)?;
        let (members, chunk_bytes) = (geometry.member_bytes.len(), geometry.chunk_bytes);
        let stripes = match &map {
            Map::Striped(_) | Map::Mirrored(_) => None,
            Map::Parity(_) if members > stripes::MOST_MEMBERS => {
                return Err(Error::TooManyMembers { members });
            }
            Map::Parity(_) if !chunk_bytes.is_multiple_of(stripes::BLOCK_BYTES) => {
                return Err(Error::Chunk { chunk_bytes });
            }
            Map::Parity(map) => Some(Stripes::new(map.clone(), options)),
        };
        Ok(Array {
            map,
            members,
            stripes,
        })
    }

    /// Returns the size of the array in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.map.size_bytes()
    }

    /// Returns the number of members.
    #[must_use]
    pub fn members(&self) -> usize {
        self.members
    }

    /// Returns the number of 4 KiB rows written, by method of computing parity. All 0 without
    /// parity.
    #[must_use]
    pub fn rows(&self) -> RowCounts {
        let stripes = self.stripes.as_ref();
        stripes.map(|stripes| stripes.counts).unwrap_or_default()
    }

    /// Reads a range. If there are several copies, the first is read, as md does while no other
    /// read is in progress on that member. The total over all members is exact in any case.
    pub fn read(&mut self, offset: u64, bytes: u64, out: &mut Requests) -> Result<(), Error> {
        self.check(offset, bytes)?;
        self.send(Operation::Read, offset, bytes, out);
        Ok(())
    }

    /// Writes a range. With parity, the members' requests are issued by the next
    /// [`settle`](Array::settle), or earlier if the cache is full.
    pub fn write(&mut self, offset: u64, bytes: u64, out: &mut Requests) -> Result<(), Error> {
        self.check(offset, bytes)?;
        match &mut self.stripes {
            Some(stripes) => stripes.write(offset, bytes, out),
            None => self.send(Operation::Write, offset, bytes, out),
        }
        Ok(())
    }

    /// Discards a range. With parity, md drops discards: `devices_handle_discard_safely` of raid456
    /// is off.
    pub fn discard(&mut self, offset: u64, bytes: u64, out: &mut Requests) -> Result<(), Error> {
        self.check(offset, bytes)?;
        if self.stripes.is_none() {
            self.send(Operation::Discard, offset, bytes, out);
        }
        Ok(())
    }

    /// Flushes every member (`md_flush_request()`) after issuing the pending writes.
    pub fn flush(&mut self, out: &mut Requests) {
        self.settle(out);
        out.extend((0..self.members).map(|member| MemberRequest {
            member,
            operation: Operation::Flush,
            offset: 0,
            bytes: 0,
            redundant_bytes: 0,
        }));
    }

    /// Ends a batch by writing every stripe that gathered writes.
    pub fn settle(&mut self, out: &mut Requests) {
        if let Some(stripes) = &mut self.stripes {
            stripes.settle(out);
        }
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<(), Error> {
        let (end, array_bytes) = (offset.saturating_add(bytes), self.size_bytes());
        match end > array_bytes {
            true => Err(Error::BeyondEnd { end, array_bytes }),
            false => Ok(()),
        }
    }

    /// Issues the pieces of a request: a read on the first of its places, others on all.
    fn send(&self, operation: Operation, offset: u64, bytes: u64, out: &mut Requests) {
        let copies = match operation {
            Operation::Read => 1,
            _ => usize::MAX,
        };
        let (mut at, end) = (offset, offset + bytes);
        let mut pieces = Vec::new();
        while at < end {
            let (places, length) = self.map.places(at);
            let length = length.min(end - at);
            for (copy, &Place { member, offset }) in places.iter().take(copies).enumerate() {
                pieces.push(MemberRequest {
                    member,
                    operation,
                    offset,
                    bytes: length,
                    redundant_bytes: if copy == 0 { 0 } else { length },
                });
            }
            at += length;
        }
        merge(pieces, out);
    }
}

/// Merges contiguous pieces of one kind into one request.
fn merge(mut pieces: Requests, out: &mut Requests) {
    pieces.sort_by_key(|piece| (piece.member, piece.operation, piece.offset));
    let begin = out.len();
    for piece in pieces {
        match out[begin..].last_mut() {
            Some(last)
                if (last.member, last.operation) == (piece.member, piece.operation)
                    && last.offset + last.bytes == piece.offset
                    && last.bytes + piece.bytes <= MAX_REQUEST_BYTES =>
            {
                last.bytes += piece.bytes;
                last.redundant_bytes += piece.redundant_bytes;
            }
            _ => out.push(piece),
        }
    }
}
