//! Linear and RAID 0: every byte is stored once (`drivers/md/raid0.c`, `drivers/md/md-linear.c`).

use crate::{Geometry, Place, Role};

/// RAID 0 layouts with zones: the original one of kernels before 3.14, and the one used since.
const ORIGINAL: u32 = 1;
const BY_ZONE: u32 = 2;

/// Consecutive zones. Linear has one zone for each member, RAID 0 one for each member size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Striped {
    chunk_bytes: u64,
    zones: Vec<Zone>,
    /// True if chunks are distributed by their number in the array instead of in the zone.
    is_original: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Zone {
    /// Start of the zone in the array (`array_offset`) and on each of its members
    /// (`member_offset`).
    array_offset: u64,
    member_offset: u64,
    /// Bytes of the zone on each of its members.
    member_bytes: u64,
    members: Vec<usize>,
}

impl Zone {
    fn bytes(&self) -> u64 {
        self.member_bytes * self.members.len() as u64
    }
}

impl Striped {
    pub(crate) fn linear(geometry: &Geometry) -> Striped {
        let mut zones = Vec::new();
        let mut array_offset = 0;
        for (member, &bytes) in geometry.member_bytes.iter().enumerate() {
            let member_bytes = match geometry.chunk_bytes {
                0 => bytes,
                chunk => bytes / chunk * chunk,
            };
            if member_bytes > 0 {
                zones.push(Zone {
                    array_offset,
                    member_offset: 0,
                    member_bytes,
                    members: vec![member],
                });
                array_offset += member_bytes;
            }
        }
        Striped {
            chunk_bytes: 0,
            zones,
            is_original: false,
        }
    }

    pub(crate) fn raid0(geometry: &Geometry) -> Option<Striped> {
        let chunk_bytes = geometry.chunk_bytes;
        let sizes: Vec<u64> = geometry
            .member_bytes
            .iter()
            .map(|bytes| bytes / chunk_bytes * chunk_bytes)
            .collect();
        let mut zones: Vec<Zone> = Vec::new();
        let (mut array_offset, mut member_offset) = (0, 0);
        while let Some(&end) = sizes.iter().filter(|&&size| size > member_offset).min() {
            let all = 0..sizes.len();
            let zone = Zone {
                array_offset,
                member_offset,
                member_bytes: end - member_offset,
                members: all.filter(|&at| sizes[at] > member_offset).collect(),
            };
            array_offset += zone.bytes();
            member_offset = end;
            zones.push(zone);
        }
        // With one zone, both layouts are the same. With more, the kernel rejects an array that
        // does not specify its layout.
        let is_original = match geometry.layout {
            ORIGINAL => true,
            BY_ZONE => false,
            _ if zones.len() <= 1 => false,
            _ => return None,
        };
        Some(Striped {
            chunk_bytes,
            zones,
            is_original,
        })
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.zones
            .last()
            .map_or(0, |zone| zone.array_offset + zone.bytes())
    }

    pub(crate) fn role(&self, member: usize, offset: u64) -> (Role, u64) {
        let zone = self.zones.iter().find_map(|zone| {
            let within = offset.checked_sub(zone.member_offset)?;
            let place = zone.members.iter().position(|&at| at == member)?;
            (within < zone.member_bytes).then_some((zone, within, place as u64))
        });
        let Some((zone, within, place)) = zone else {
            return (Role::Unused, u64::MAX - offset);
        };
        let chunk_bytes = self.chunk_of(zone);
        let count = zone.members.len() as u64;
        // Place of the zone's first chunk.
        let first = self.first_place(zone, chunk_bytes);
        let turn = (place + count - first) % count;
        let chunk = within / chunk_bytes * count + turn;
        let in_chunk = within % chunk_bytes;
        let role = Role::Data {
            array_offset: zone.array_offset + chunk * chunk_bytes + in_chunk,
            copy: 0,
        };
        (role, chunk_bytes - in_chunk)
    }

    pub(crate) fn places(&self, offset: u64) -> (Vec<Place>, u64) {
        let after = self
            .zones
            .partition_point(|zone| zone.array_offset <= offset);
        let Some(zone) = self.zones.get(after.saturating_sub(1)) else {
            return (Vec::new(), 0);
        };
        let chunk_bytes = self.chunk_of(zone);
        let count = zone.members.len() as u64;
        let within = offset - zone.array_offset;
        let (chunk, in_chunk) = (within / chunk_bytes, within % chunk_bytes);
        let place = (chunk + self.first_place(zone, chunk_bytes)) % count;
        let found = Place {
            member: zone.members[place as usize],
            offset: zone.member_offset + chunk / count * chunk_bytes + in_chunk,
        };
        (vec![found], chunk_bytes - in_chunk)
    }

    /// Returns the chunk size. A linear zone has one member and consists of a single chunk.
    fn chunk_of(&self, zone: &Zone) -> u64 {
        match self.chunk_bytes {
            0 => zone.member_bytes,
            chunk_bytes => chunk_bytes,
        }
    }

    fn first_place(&self, zone: &Zone, chunk_bytes: u64) -> u64 {
        match self.is_original {
            true => zone.array_offset / chunk_bytes % zone.members.len() as u64,
            false => 0,
        }
    }
}
