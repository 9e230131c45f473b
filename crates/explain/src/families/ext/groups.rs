//! Places that the superblock and the group descriptors define.

use super::{
    blocks::{Mapper, Space},
    layout::{self, Group, Kind, Place},
    state::State,
};

/// Records the structure at this place.
fn fix(space: &mut Space, place: &Place) {
    let used = Mapper::of_inode(place.inode).uses(Kind::Fixed(place.area));
    space.set(place.start, place.length, used);
}

impl State {
    /// Records the places that the superblock defines.
    pub(super) fn place(&mut self) {
        let space = &mut self.space;
        layout::places(&self.superblock, |place| fix(space, &place));
        self.descriptors = (0..self.superblock.descriptor_blocks())
            .map(|number| (layout::descriptor_block(&self.superblock, number), number))
            .collect();
    }

    /// Reads the group descriptors in descriptor block `number`, and records places that are new.
    pub(super) fn read_descriptors(&mut self, number: u64, block: &[u8]) {
        let first = number * self.superblock.descriptors_per_block();
        let size = self.superblock.descriptor_bytes as usize;
        let groups = first..self.superblock.groups();
        for (group, bytes) in groups.zip(block.chunks_exact(size)) {
            let index = group as usize;
            if self.groups.len() <= index {
                self.groups.resize(index + 1, Group::default());
            }
            let new = Group::parse(bytes);
            if std::mem::replace(&mut self.groups[index], new) != new {
                let places = new.places(&self.superblock, group);
                places.for_each(|place| fix(&mut self.space, &place));
            }
        }
    }
}
