//! What the parts of a member are: data, and what md keeps beside it.

/// A part of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// Part of the data area: [`crate::Map::piece`] says what it is.
    Data {
        /// Byte offset in the data area.
        offset: u64,
    },
    /// The superblock.
    Superblock,
    /// The list of bad blocks.
    BadBlocks,
    /// The write-intent bitmap.
    Bitmap,
    /// The partial parity log of RAID 5.
    PartialParityLog,
    /// Nothing.
    Unused,
}

/// Areas of a member that begin at these offsets; each ends with the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    starts: Vec<(u64, Area)>,
    end: u64,
}

impl Member {
    /// `areas`: begin, greatest length, and kind; where two overlap, the one that begins later
    /// wins.
    /// `end` is the member's size.
    pub(crate) fn new(end: u64, areas: &[(u64, u64, Area)]) -> Member {
        let mut areas = areas.to_vec();
        areas.sort_by_key(|&(start, ..)| start);
        let mut starts = vec![(0, Area::Unused)];
        for (number, &(start, length, area)) in areas.iter().enumerate() {
            let stop = start.saturating_add(length);
            starts.retain(|&(at, _)| at < start);
            starts.push((start, area));
            if areas.get(number + 1).is_none_or(|&(next, ..)| next > stop) {
                starts.push((stop, Area::Unused));
            }
        }
        Member { starts, end }
    }

    /// What is at `offset`, and how many bytes of it follow (at least 1).
    pub fn area(&self, offset: u64) -> (Area, u64) {
        let after = self.starts.partition_point(|&(start, _)| start <= offset);
        let (start, area) = self.starts[after - 1];
        let end = self.starts.get(after).map_or(self.end, |&(next, _)| next);
        let area = match area {
            Area::Data { .. } => Area::Data {
                offset: offset - start,
            },
            area => area,
        };
        (area, end.saturating_sub(offset).max(1))
    }
}
