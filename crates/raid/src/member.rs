//! Areas of a member: data and md metadata.

/// A part of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// Part of the data area; [`crate::Map::piece`] returns its role.
    Data {
        /// Byte offset in the data area.
        offset: u64,
    },
    /// Superblock.
    Superblock,
    /// List of bad blocks.
    BadBlocks,
    /// Write-intent bitmap.
    Bitmap,
    /// Partial parity log of RAID 5.
    PartialParityLog,
    /// Unused space.
    Unused,
}

/// Areas of a member by start offset; each area ends where the next begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    starts: Vec<(u64, Area)>,
    end: u64,
}

impl Member {
    /// Creates the areas of a member. Each entry of `areas` is a start offset, a maximum length and
    /// a kind. If two areas overlap, the one that begins later wins. `end` is the member's size.
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

    /// Returns the area at `offset`, and the number of bytes from there to its end (at least 1).
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
