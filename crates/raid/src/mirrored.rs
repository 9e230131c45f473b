//! RAID 1 and RAID 10: the layout determines how often each byte is stored (`drivers/md/raid10.c`,
//! `setup_geo` and `__raid10_find_phys`).

use crate::{Geometry, Level, Place, Role};

/// The map of RAID 1 and RAID 10. RAID 1 is treated as a single chunk with a near copy on every
/// member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirrored {
    members: u64,
    /// Copies of a chunk on adjacent members (near copies).
    near: u64,
    /// Copies of the whole near layout at higher offsets (far copies).
    far: u64,
    /// Distance in bytes from one far copy to the next on a member.
    stride_bytes: u64,
    /// True if far copies follow each stripe instead of all data.
    is_offset: bool,
    /// Number of members within which far copies rotate.
    far_set: u64,
    chunk_bytes: u64,
    size_bytes: u64,
}

impl Mirrored {
    pub(crate) fn new(geometry: &Geometry) -> Option<Mirrored> {
        let members = geometry.member_bytes.len() as u64;
        let member_bytes = geometry.member_bytes.iter().copied().min()?;
        if geometry.level == Level::Raid1 {
            return (member_bytes > 0).then_some(Mirrored {
                members,
                near: members,
                far: 1,
                stride_bytes: member_bytes,
                is_offset: false,
                far_set: members,
                chunk_bytes: member_bytes,
                size_bytes: member_bytes,
            });
        }
        let layout = u64::from(geometry.layout);
        let (near, far, is_offset) = (layout & 255, layout >> 8 & 255, layout >> 16 & 1 == 1);
        let is_sound = near > 0 && far > 0 && near * far <= members;
        // If a stripe does not end at the last member, the kernel places it over the far copies of
        // the previous stripe.
        if !is_sound || (is_offset && !members.is_multiple_of(near)) {
            return None;
        }
        let far_set = match layout >> 17 {
            0 => members,
            1 => members / far,
            2 => far * near,
            _ => return None,
        };
        let chunk_bytes = geometry.chunk_bytes;
        // calc_sectors() and raid10_size().
        let chunks = member_bytes / chunk_bytes / far * members / near;
        let member_chunks = (chunks * near * far).div_ceil(members);
        let stride = if is_offset { 1 } else { member_chunks / far };
        (far_set > 0 && stride > 0).then_some(Mirrored {
            members,
            near,
            far,
            stride_bytes: stride * chunk_bytes,
            is_offset,
            far_set,
            chunk_bytes,
            size_bytes: member_chunks / far * members / near * chunk_bytes,
        })
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub(crate) fn copies(&self) -> usize {
        (self.near * self.far) as usize
    }

    pub(crate) fn role(&self, member: usize, offset: u64) -> (Role, u64) {
        let (row, in_chunk) = (offset / self.chunk_bytes, offset % self.chunk_bytes);
        let length = self.chunk_bytes - in_chunk;
        let rows = self.stride_bytes / self.chunk_bytes;
        let (far, row) = match self.is_offset {
            true => (row % self.far, row / self.far),
            false => (row / rows, row % rows),
        };
        let first = (0..self.members).find(|&at| self.moved(at, far) == member as u64);
        let (Some(first), true) = (first, far < self.far) else {
            return (Role::Unused, length);
        };
        let slot = row * self.members + first;
        let array_offset = slot / self.near * self.chunk_bytes + in_chunk;
        if array_offset >= self.size_bytes {
            return (Role::Unused, length);
        }
        let copy = (slot % self.near * self.far + far) as u8;
        (Role::Data { array_offset, copy }, length)
    }

    pub(crate) fn places(&self, offset: u64) -> (Vec<Place>, u64) {
        let (chunk, in_chunk) = (offset / self.chunk_bytes, offset % self.chunk_bytes);
        let mut places = Vec::new();
        for near in 0..self.near {
            let slot = chunk * self.near + near;
            let (row, first) = (slot / self.members, slot % self.members);
            let row = if self.is_offset { row * self.far } else { row };
            for far in 0..self.far {
                places.push(Place {
                    member: self.moved(first, far) as usize,
                    offset: row * self.chunk_bytes + far * self.stride_bytes + in_chunk,
                });
            }
        }
        (places, self.chunk_bytes - in_chunk)
    }

    /// Returns the member that stores far copy number `far` of the data whose first copy is on
    /// `member`.
    fn moved(&self, member: u64, far: u64) -> u64 {
        let rest = self.members % self.far_set;
        // The last set also contains the left-over members.
        let last = (self.members / self.far_set - 1) * self.far_set;
        let (begin, size) = match rest != 0 && member >= last {
            true => (last, self.far_set + rest),
            false => (member / self.far_set * self.far_set, self.far_set),
        };
        begin + (member - begin + far * self.near) % size
    }
}
