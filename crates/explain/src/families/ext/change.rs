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
    /// Data that the new version maps by other claims than the old one: some of its blocks may have
    /// moved within the file.
    pub(super) renumbered: Vec<(Mapper, Claim)>,
}

impl Change {
    pub(super) fn differ(&mut self, mapper: Mapper, old: Vec<Claim>, new: Vec<Claim>) {
        let is_data = |claim: &&Claim| claim.kind == Kind::Content(Content::Data);
        let other = changed(&old, &new).iter().filter(is_data);
        self.renumbered.extend(other.map(|&claim| (mapper, claim)));
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
        self.renumbered.extend(other.renumbered);
        self
    }
}

/// Returns the middle of the new list, without the start and end that it has in common with the
/// old one.
fn changed<'n>(old: &[Claim], new: &'n [Claim]) -> &'n [Claim] {
    let same = |(a, b): &(&Claim, &Claim)| a == b;
    let head = old.iter().zip(new).take_while(same).count();
    let rest = old[head..].iter().rev().zip(new[head..].iter().rev());
    &new[head..new.len() - rest.take_while(same).count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_moves_within_its_file_is_renumbered_though_nothing_comes_or_goes() {
        let claim = |start, first| Claim {
            start,
            length: 4,
            kind: Kind::Content(Content::Data),
            first,
        };
        let mapper = Mapper::of_inode(12);
        let old = vec![claim(100, 0), claim(200, 4), claim(300, 20)];
        // The second extent is collapsed onto a hole before it, as it were.
        let new = vec![claim(100, 0), claim(200, 10), claim(300, 20)];
        let mut change = Change::default();
        change.differ(mapper, old.clone(), new.clone());
        assert_eq!(change.renumbered, [(mapper, new[1])]);
        assert!(change.come.is_empty() && change.gone.is_empty());
        change = Change::default();
        change.differ(mapper, old[..2].to_vec(), old.clone());
        assert_eq!(change.renumbered, [(mapper, old[2])]);
    }
}
