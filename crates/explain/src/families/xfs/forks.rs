//! Forks of inodes: the names and extents in them, and the owners of these extents' blocks.

use super::block::LEAVES_AT;
use super::directory;
use super::inode::{Core, Extent, Format, extents};
use super::metadata::{Holder, Inode, Metadata};
use super::owners::Owner;
use crate::track::names::Entry;
use crate::{Rows, Shift, Structure};
use std::mem::{replace, take};
use std::ops::Range;

impl Metadata {
    /// Replaces the known forks of an inode with those that are given: data, attributes.
    pub(super) fn read_forks(
        &mut self,
        inode: u64,
        core: &Core,
        [data, xattr]: [Option<&[u8]>; 2],
        rows: &mut Rows,
    ) {
        let is_free = core.mode == 0;
        self.has_xattr_blocks |= !is_free && core.xattr_extents > 0;
        // A fork without extents is not logged.
        let list = |fork: Option<&[u8]>, format, count| match (format, count) {
            _ if is_free => Some(Vec::new()),
            (Format::Btree, _) => None,
            (Format::Extents, 1..) => fork.map(|bytes| extents(bytes, count).collect()),
            _ => Some(Vec::new()),
        };
        let data_list = list(data, core.data_format, core.data_extents);
        if let Some(list) = data_list.filter(|_| is_free || !core.realtime) {
            self.hold(Holder::Data, inode, list, rows);
        }
        let xattr_extents = u64::from(core.xattr_extents);
        if let Some(list) = list(xattr, core.xattr_format, xattr_extents) {
            self.hold(Holder::Xattr, inode, list, rows);
        }
        let is_short = !is_free && core.is_directory() && core.data_format == Format::Local;
        let had_short = |known: &Inode| !known.short_form.is_empty();
        match data.filter(|_| is_short) {
            Some(fork) => self.read_short_form(inode, fork),
            None if !is_short && self.inodes.get(inode).is_some_and(had_short) => {
                self.read_short_form(inode, &[]);
            }
            None => {}
        }
        self.drop_leaves(inode, core, rows);
    }

    /// Updates an inode whose fork changed format: extents that were in leaves may now be in the
    /// inode, or the other way round.
    fn drop_leaves(&mut self, inode: u64, core: &Core, rows: &mut Rows) {
        let Some(known) = self.inodes.get_mut(inode) else {
            return;
        };
        if core.data_format == Format::Btree {
            known.data = Vec::new();
            return;
        }
        let leaves = take(&mut known.leaves);
        if leaves.is_empty() {
            return;
        }
        for leaf in leaves {
            self.hold(Holder::Leaf(leaf), inode, Vec::new(), rows);
        }
        let list = self.inodes.get(inode).map(|known| known.data.clone());
        for extent in list.unwrap_or_default() {
            self.give(&extent, Holder::Data, inode);
        }
    }

    fn read_short_form(&mut self, inode: u64, fork: &[u8]) {
        let known = self.inodes.get_or_insert_with(inode, Inode::default);
        if *known.short_form == *fork {
            return;
        }
        let before = replace(&mut known.short_form, fork.into());
        let entries = |fork| -> Vec<Entry<'_>> {
            let names = directory::short_form(fork);
            names.map(|entry| (entry.name, entry.inode)).collect()
        };
        let (old, new) = (entries(&before), entries(fork));
        self.names.replace(inode, &old, inode, &new);
    }

    /// Replaces the extents listed by `holder`, which belongs to this inode.
    pub(super) fn hold(&mut self, holder: Holder, inode: u64, list: Vec<Extent>, rows: &mut Rows) {
        let known = match holder {
            Holder::Data => self.inodes.get_mut(inode).map(|i| &mut i.data),
            Holder::Xattr => self.inodes.get_mut(inode).map(|i| &mut i.xattr),
            Holder::Leaf(offset) => self.leaf_extents.get_mut(&offset),
        };
        if known.as_deref().map_or(&[][..], Vec::as_slice) == list {
            return;
        }
        let before = known.map(take).unwrap_or_default();
        let (gone, come) = changed(&before, &list);
        for extent in &before[gone] {
            if let Some(block) = self.geometry.block(extent.fs_block) {
                self.owners.drop_of(block, extent.blocks, inode);
            }
        }
        for extent in &list[come] {
            if matches!(holder, Holder::Leaf(_)) {
                self.moved.push((*extent, holder, inode));
            } else {
                self.claim(extent, holder, inode, rows);
            }
        }
        if !list.is_empty() {
            let known = self.inodes.get_or_insert_with(inode, Inode::default);
            match holder {
                Holder::Data => known.data = list,
                Holder::Xattr => known.xattr = list,
                Holder::Leaf(offset) => _ = self.leaf_extents.insert(offset, list),
            }
        }
    }

    /// Claims the extents of tree blocks at their final places.
    pub(super) fn settle_moved(&mut self, rows: &mut Rows) {
        for (extent, holder, inode) in take(&mut self.moved) {
            self.claim(&extent, holder, inode, rows);
        }
    }

    /// Attributes these blocks to an inode, together with data there that had no owner.
    fn claim(&mut self, extent: &Extent, holder: Holder, inode: u64, rows: &mut Rows) {
        let owner = self.give(extent, holder, inode);
        let bytes = self.geometry.block_bytes;
        if let Some(block) = self.geometry.block(extent.fs_block) {
            let (offset, length) = (block * bytes, extent.blocks.saturating_mul(bytes));
            let claimed = self.owners.claim(offset, length, owner, rows);
            self.late
                .extend(claimed.into_iter().map(|row| (row, inode)));
        }
    }

    fn give(&mut self, extent: &Extent, holder: Holder, inode: u64) -> Owner {
        let owner = self.owner(holder, inode, extent);
        if let Some(block) = self.geometry.block(extent.fs_block) {
            let latest = self.inodes.get(owner.inode).and_then(Inode::latest);
            let may_share = latest.is_some_and(|version| version.core.shares);
            self.owners.give(block, extent.blocks, owner, may_share);
        }
        owner
    }

    fn owner(&self, holder: Holder, inode: u64, extent: &Extent) -> Owner {
        let geometry = &self.geometry;
        let latest = self.inodes.get(inode).and_then(Inode::latest);
        let core = latest.map(|version| version.core);
        let file_offset = extent.file_block.saturating_mul(geometry.block_bytes);
        // Leaves of a tree do not identify their fork.
        let of_xattr = matches!(holder, Holder::Leaf(_))
            && core
                .is_some_and(|c| c.xattr_format == Format::Btree && c.data_format != Format::Btree);
        let structure = if holder == Holder::Xattr || of_xattr {
            Structure::Xattr
        } else if geometry.realtime_inodes.contains(&inode) {
            Structure::Realtime
        } else if geometry.quota_inodes.contains(&inode) {
            Structure::Quota
        } else if core.is_some_and(|c| c.is_directory()) {
            match file_offset < LEAVES_AT {
                true => Structure::Directory,
                false => Structure::DirectoryIndex,
            }
        } else if core.is_some_and(|c| c.is_symlink()) {
            Structure::Symlink
        } else {
            Structure::FileData
        };
        let block = geometry.block(extent.fs_block);
        let offset = block.map(|block| block.saturating_mul(geometry.block_bytes));
        Owner {
            inode,
            structure,
            shift: offset.map(|offset| Shift::between(offset, file_offset)),
        }
    }
}

/// Returns the differing parts of both lists, without their common start and end. A list of
/// hundreds of extents changes by one extent at a time.
fn changed(before: &[Extent], after: &[Extent]) -> (Range<usize>, Range<usize>) {
    let same = |(a, b): &(&Extent, &Extent)| a == b;
    let head = before.iter().zip(after).take_while(same).count();
    let rest = before[head..].iter().rev().zip(after[head..].iter().rev());
    let tail = rest.take_while(same).count();
    (head..before.len() - tail, head..after.len() - tail)
}

#[cfg(test)]
mod tests {
    use super::super::geometry;
    use super::super::version::Version;
    use super::*;
    use proptest::{collection::vec, prop_assert, prop_assert_eq};

    /// Logs this version of a regular file: its core, and those forks that are not empty.
    fn log(metadata: &mut Metadata, generation: u8, forks: [&[u8]; 2]) {
        let mut slot = vec![0; 512];
        slot[..6].copy_from_slice(&[b'I', b'N', 0x81, 0xa4, 3, 2]);
        (slot[19], slot[83], slot[95]) = (1, 2, generation);
        [slot[79], slot[81]] = forks.map(|fork| (fork.len() / 16) as u8);
        let version = Version {
            core: Core::on_disk(&slot).unwrap(),
            data: None,
            xattr: None,
        };
        let forks = forks.map(|fork| Some(fork).filter(|fork| !fork.is_empty()));
        metadata.inode_logged(131, version, forks, &mut Rows::default());
    }

    #[test]
    fn a_fork_that_lost_its_last_extent_has_no_blocks() {
        // Two blocks each, from block 40 and from block 50 on.
        let [data, xattr] = [40_u128, 50].map(|block| (block << 21 | 2).to_be_bytes());
        for generation in [0, 1] {
            let mut metadata = Metadata::new(geometry());
            let of = |metadata: &Metadata, block| metadata.owners.of(block, 1).0;
            log(&mut metadata, 0, [&data, &xattr]);
            let structures = [41, 51].map(|block| of(&metadata, block).unwrap().structure);
            assert_eq!(structures, [Structure::FileData, Structure::Xattr]);
            log(&mut metadata, generation, [&data, &[]]);
            assert_eq!(of(&metadata, 51), None);
            assert!(of(&metadata, 41).is_some());
            log(&mut metadata, generation, [&[], &[]]);
            assert_eq!(of(&metadata, 41), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn only_the_middle_of_a_list_changes(
            before in vec(0_u64..3, 0..8),
            after in vec(0_u64..3, 0..8),
        ) {
            let list = |starts: &[u64]| -> Vec<Extent> {
                let of = |&start| Extent { file_block: start, fs_block: start, blocks: 1 };
                starts.iter().map(of).collect()
            };
            let (old, new) = (list(&before), list(&after));
            let (gone, come) = changed(&old, &new);
            prop_assert_eq!(&old[..gone.start], &new[..come.start]);
            prop_assert_eq!(&old[gone.end..], &new[come.end..]);
            let (gone, come) = (&old[gone], &new[come]);
            for (a, b) in [(gone.first(), come.first()), (gone.last(), come.last())] {
                prop_assert!(a.is_none() || a != b);
            }
        }
    }
}
