//! Places that the superblock and the group descriptors define.

use super::{
    blocks::{Space, Use},
    layout::{Group, Kind, Place},
    superblock::Superblock,
};

/// Records the structure at this place.
pub fn fix(space: &mut Space, place: &Place) {
    let used = Use {
        kind: Kind::Fixed(place.area),
        inode: place.inode,
        node: 0,
    };
    space.set(place.start, place.length, used);
}

/// Known groups, from the blocks of their descriptors.
#[derive(Debug, Default)]
pub struct Groups {
    groups: Vec<Group>,
}

impl Groups {
    /// Reads the group descriptors in descriptor block `number`, and records places that are new.
    pub fn update(
        &mut self,
        space: &mut Space,
        superblock: &Superblock,
        number: u64,
        block: &[u8],
    ) {
        let first = number * superblock.descriptors_per_block();
        let size = superblock.descriptor_bytes as usize;
        for (group, bytes) in (first..superblock.groups()).zip(block.chunks_exact(size)) {
            let index = group as usize;
            if self.groups.len() <= index {
                self.groups.resize(index + 1, Group::default());
            }
            let new = Group::parse(bytes);
            if let Some(old) = self.groups.get_mut(index) {
                let moved = new != *old;
                *old = new;
                if moved {
                    new.places(superblock, group)
                        .for_each(|place| fix(space, &place));
                }
            }
        }
    }

    /// Returns the groups in order.
    pub fn iter(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter()
    }
}
