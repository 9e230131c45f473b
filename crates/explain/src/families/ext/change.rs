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

    /// Like [`differ`](Self::differ) for an inode that now belongs to another file: data blocks
    /// that both versions map are released and claimed again. Writes to them since then may be the
    /// new file's.
    pub(super) fn remade(&mut self, mapper: Mapper, old: Vec<Claim>, new: Vec<Claim>) {
        let is_data = |claim: &Claim| {
            matches!(
                claim.kind,
                Kind::Content(Content::Data)
                    | Kind::Extents(Content::Data)
                    | Kind::Pointers(_, Content::Data)
            )
        };
        let (old_data, old) = old.into_iter().partition(is_data);
        let (new_data, new) = new.into_iter().partition(is_data);
        self.differ(mapper, old_data, Vec::new());
        self.differ(mapper, Vec::new(), new_data);
        self.differ(mapper, old, new);
    }

    /// Combines both changes; claims of `other` are processed first.
    pub(super) fn and(mut self, other: Change) -> Change {
        self.gone.extend(other.gone);
        self.come.extend(other.come);
        self
    }
}
