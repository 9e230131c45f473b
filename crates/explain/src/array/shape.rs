//! Shape of an md array: the disks of a recording that form it, and the kind of each byte of a
//! member.

use crate::disks::read_bytes;
use fscost_raid::{Area, Map, PLACES, Role, Superblock};
use fscost_recording::{ExtentMap, Image, Location, Result};

/// An md array, recognised by its members' superblocks as mkfs left them. An array that lacks a
/// member is not recognised.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Number of the array as a disk, after the recorded disks.
    pub disk: u16,
    pub map: Map,
    /// Recorded disk and superblock of each member, by role.
    pub members: Vec<(u16, Superblock)>,
}

/// Kind of a part of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Data of the array.
    Data { array_offset: u64, copy: u8 },
    /// Parity of data.
    Parity,
    /// Anything else that md keeps there.
    Md(Area),
}

/// A run of bytes of a member that are of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Byte offset on the member's disk.
    pub offset: u64,
    pub length: u64,
    pub kind: Kind,
}

impl Shape {
    /// Finds all arrays whose members are among these images of the recorded disks.
    pub(crate) fn find(images: Vec<Image<'_>>) -> Result<Vec<Shape>> {
        let mut found = Vec::new();
        let disks = images.len() as u16;
        for (disk, image) in (0..disks).zip(images) {
            if let Some(superblock) = superblock_of(image)? {
                found.push((disk, superblock));
            }
        }
        let mut arrays: Vec<Shape> = Vec::new();
        while let Some((_, first)) = found.first() {
            let (uuid, count) = (first.array, first.members);
            let (mut members, others): (Vec<_>, Vec<_>) = found
                .into_iter()
                .partition(|(_, other)| other.array == uuid);
            found = others;
            members.sort_by_key(|(_, superblock)| superblock.role);
            let roles = members.iter().map(|(_, superblock)| superblock.role);
            if members.len() != count || !roles.eq(0..count) {
                continue;
            }
            let superblocks: Vec<&Superblock> = members.iter().map(|(_, s)| s).collect();
            let map = Superblock::geometry(&superblocks).and_then(|geometry| Map::new(&geometry));
            arrays.extend(map.map(|map| Shape {
                disk: disks + arrays.len() as u16,
                map,
                members,
            }));
        }
        Ok(arrays)
    }

    /// Returns the role of a recorded disk in the array, if it is a member.
    pub fn member(&self, disk: u16) -> Option<usize> {
        self.members.iter().position(|&(known, _)| known == disk)
    }

    /// Returns the parts of a range of a member's disk, in order, without gaps.
    pub fn parts(&self, member: usize, offset: u64, length: u64) -> impl Iterator<Item = Part> {
        let end = offset.saturating_add(length);
        let mut at = offset;
        std::iter::from_fn(move || {
            let part = (at < end).then(|| self.part(member, at, end))?;
            at += part.length;
            Some(part)
        })
    }

    /// Returns the part that begins at `offset` of a member's disk, up to `end`.
    pub fn part(&self, member: usize, offset: u64, end: u64) -> Part {
        let (area, mut length) = match self.members.get(member) {
            Some((_, superblock)) => superblock.areas.area(offset),
            None => (Area::Unused, u64::MAX),
        };
        let kind = match area {
            Area::Data { offset: within } => {
                let piece = self.map.piece(member, within);
                length = length.min(piece.length);
                match piece.role {
                    Role::Data { array_offset, copy } => Kind::Data { array_offset, copy },
                    Role::Parity | Role::Syndrome => Kind::Parity,
                    Role::Unused => Kind::Md(Area::Unused),
                }
            }
            area => Kind::Md(area),
        };
        Part {
            offset,
            length: length.min(end - offset),
            kind,
        }
    }

    /// Finds the array's content from that of its members. If there are several copies, the first
    /// one counts.
    pub(crate) fn assemble(&self, maps: &[ExtentMap]) -> ExtentMap {
        let mut array = ExtentMap::default();
        for (member, (disk, _)) in self.members.iter().enumerate() {
            let Some(map) = maps.get(usize::from(*disk)) else {
                continue;
            };
            for segment in map.segments(0, u64::MAX) {
                let Some(location) = segment.location else {
                    continue;
                };
                for part in self.parts(member, segment.offset, segment.length) {
                    let Kind::Data {
                        array_offset,
                        copy: 0,
                    } = part.kind
                    else {
                        continue;
                    };
                    let skipped = (part.offset - segment.offset) as u32;
                    let location = Location {
                        content_offset: location.content_offset + skipped,
                        ..location
                    };
                    array.write(array_offset, part.length, location);
                }
            }
        }
        array
    }
}

fn superblock_of(mut image: Image<'_>) -> Result<Option<Superblock>> {
    let size_bytes = image.size_bytes();
    for at in PLACES.iter().filter_map(|place| place(size_bytes)) {
        if let Some(bytes) = read_bytes::<{ Superblock::BYTES }>(&mut image, at)?
            && let Some(found) = Superblock::parse(&bytes, at, size_bytes)
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
