//! Items of the log: logged content has the same format as in blocks and inodes on disk, but is
//! split into regions.

use super::{block, forks};
use crate::Secret;
use fscost_ondisk::xfs::block::{Kind as BlockKind, begins_inode, by_magic, identify};
use fscost_ondisk::xfs::inode::Core;
use fscost_ondisk::xfs::log_item::{
    BufferItem, BufferKind, InodeItem, Kind, LoggedFork, MOST_BUFFER_BYTES, Regions,
};
use fscost_ondisk::xfs::log_record::SECTOR;
use fscost_ondisk::xfs::superblock::Geometry;
use std::collections::HashMap;

/// Latest content of metadata sectors, as logged or written, by byte offset. Log items contain
/// changes to it.
pub struct Contents {
    geometry: Geometry,
    sectors: HashMap<u64, Box<[u8; SECTOR]>>,
}

impl Contents {
    /// Creates empty contents of a file system.
    pub fn new(geometry: Geometry) -> Contents {
        let sectors = HashMap::new();
        Contents { geometry, sectors }
    }

    /// Records a write outside the log. Sectors that may begin a buffer are kept, up to the maximum
    /// length of a buffer.
    pub fn write(&mut self, offset: u64, content: &[u8]) {
        let mut wanted = 0;
        for (number, sector) in content.as_chunks().0.iter().enumerate() {
            let (at, place) = (number * SECTOR, offset + (number * SECTOR) as u64);
            if may_begin_buffer(sector, place, &self.geometry) {
                wanted = at + MOST_BUFFER_BYTES;
            }
            if at < wanted {
                self.sectors.insert(place, Box::new(*sector));
            } else if let Some(known) = self.sectors.get_mut(&place) {
                **known = *sector;
            }
        }
    }

    fn buffer(&self, offset: u64, length: usize) -> Vec<u8> {
        sector_offsets(offset, length)
            .flat_map(|place| {
                self.sectors
                    .get(&place)
                    .map_or([0; SECTOR], |known| **known)
            })
            .collect()
    }

    fn log(&mut self, offset: u64, buffer: &[u8]) {
        let sectors = buffer.as_chunks().0.iter().map(|sector| Box::new(*sector));
        self.sectors
            .extend(sector_offsets(offset, buffer.len()).zip(sectors));
    }

    fn cancel(&mut self, offset: u64, length: usize) {
        for place in sector_offsets(offset, length) {
            self.sectors.remove(&place);
        }
    }
}

/// Offsets of the sectors of a buffer.
fn sector_offsets(offset: u64, length: usize) -> impl Iterator<Item = u64> {
    (0..length / SECTOR).map(move |number| offset + (number * SECTOR) as u64)
}

/// True if a block that the log changes may begin here: such a block identifies itself.
fn may_begin_buffer(sector: &[u8], offset: u64, geometry: &Geometry) -> bool {
    begins_inode(sector)
        || by_magic(sector).is_some_and(|(kind, _)| kind == BlockKind::Superblock)
        || identify(geometry, offset, sector).is_some()
}

/// Strips an item's regions. The first region identifies the item.
pub fn strip(regions: &mut Regions, contents: &mut Contents, secret: &mut Secret) {
    let understood = match regions.get(0).and_then(Kind::of) {
        Some(Kind::Inode) => inode(regions, secret),
        Some(Kind::Buffer) => buffer(regions, contents, secret),
        Some(Kind::Attributes) | None => None,
        // Only numbers: extents to be freed, mapped or counted; inodes created or removed; quota.
        Some(_) => Some(()),
    };
    if understood.is_none() {
        rest(regions, secret);
    }
}

/// Strips all regions that are not understood, except the first, which holds only numbers.
pub fn rest(regions: &mut Regions, secret: &Secret) {
    for region in regions.iter_mut().skip(1) {
        secret.bytes(region);
    }
}

/// Strips an inode's core and its changed forks. `None` if they are not understood.
fn inode(regions: &mut Regions, secret: &mut Secret) -> Option<()> {
    let item = InodeItem::parse(regions.get(0)?)?;
    let core = Core::in_log(regions.get(1)?)?;
    for (number, region) in regions.iter_mut().enumerate().skip(2) {
        let is_here = |fork: &LoggedFork| fork.region == number;
        match (item.data.filter(is_here), item.xattr.filter(is_here)) {
            (Some(fork), _) if fork.is_local => forks::local(region, &core, None, secret),
            (_, Some(fork)) if fork.is_local => forks::attributes(region, secret),
            (None, None) => secret.bytes(region),
            _ => {} // numbers of blocks
        }
    }
    Some(())
}

/// Strips the changed chunks of a block. `None` if they are not understood.
fn buffer(regions: &mut Regions, contents: &mut Contents, secret: &mut Secret) -> Option<()> {
    let item = BufferItem::parse(regions.get(0)?)?;
    let (offset, length, kind) = (item.offset, item.length, item.kind);
    offset.checked_add(MOST_BUFFER_BYTES as u64)?;
    if item.is_cancelled {
        contents.cancel(offset, length);
        return None;
    }
    let places = item.places(regions.from(1).map(<[u8]>::len))?;
    let mut whole = contents.buffer(offset, length);
    for (region, place) in regions.from(1).zip(&places) {
        whole[place.clone()].copy_from_slice(&region[..place.len()]);
    }
    contents.log(offset, &whole);
    let geometry = &contents.geometry;
    use BufferKind::*;
    match kind {
        Inodes => {
            for slot in whole.chunks_mut(geometry.inode_bytes as usize) {
                if !block::strip(slot, geometry, secret) {
                    secret.bytes(slot);
                }
            }
        }
        // Quota records and AG headers contain only numbers.
        Quota | Agf | Agfl | Agi | Realtime => {}
        _ => block::strip(&mut whole, geometry, secret).then_some(())?,
    }
    for (region, place) in regions.iter_mut().skip(1).zip(places) {
        let (chunks, behind) = region.split_at_mut(place.len());
        chunks.copy_from_slice(&whole[place]);
        secret.bytes(behind);
    }
    Some(())
}
