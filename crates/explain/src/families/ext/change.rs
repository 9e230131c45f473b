//! Differences in mapped blocks between two versions of metadata.

use super::{
    blocks::{Content, Kind, Mapper},
    map::{self, Claim},
};

/// Blocks that inodes and nodes no longer map, and blocks that they now map.
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

    /// Marks data blocks that both versions map as released and claimed again, because the inode
    /// now belongs to another file. Writes to them since then may be the new file's.
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

    /// Combines both changes; claims of `other` are processed first.
    pub(super) fn and(mut self, other: Change) -> Change {
        self.gone.extend(other.gone);
        self.come.extend(other.come);
        self
    }
}
