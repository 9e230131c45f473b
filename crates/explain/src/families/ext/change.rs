//! How what is mapped differs between two versions.

use super::{
    map::{self, Claim},
    space::{Content, Kind, Mapper},
};

/// What inodes and nodes no longer map, and what they map now.
#[derive(Default)]
pub(super) struct Change {
    pub(super) gone: Vec<(Mapper, Claim)>,
    pub(super) come: Vec<(Mapper, Claim)>,
}

impl Change {
    pub(super) fn differ(&mut self, mapper: Mapper, old: Vec<Claim>, new: Vec<Claim>) {
        let (gone, come) = map::differences(old, new);
        self.gone
            .extend(gone.into_iter().map(|claim| (mapper, claim)));
        self.come
            .extend(come.into_iter().map(|claim| (mapper, claim)));
    }

    /// The inode is another file by now: data that it maps where the first did is its own, as far
    /// as it may have been written since.
    pub(super) fn remade(&mut self, mapper: Mapper, old: &[Claim], new: &[Claim]) {
        let is_data = |kind| {
            matches!(
                kind,
                Kind::Content(Content::Data)
                    | Kind::Extents(Content::Data)
                    | Kind::Pointers(_, Content::Data)
            )
        };
        for &claim in old.iter().filter(|c| is_data(c.kind) && new.contains(c)) {
            self.gone.push((mapper, claim));
            self.come.push((mapper, claim));
        }
    }

    /// Both; what `other` tells is claimed first.
    pub(super) fn and(mut self, other: Change) -> Change {
        self.gone.extend(other.gone);
        self.come.extend(other.come);
        self
    }
}
