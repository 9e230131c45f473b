//! Forks of inodes: the names and extents that they hold, and whose blocks those are.

use super::directory;
use super::inode::{Core, Extent, Format, extents};
use super::metadata::{Holder, Inode, Late, Metadata};
use super::owners::Owner;
use crate::{Rows, Structure};
use std::mem::{replace, take};

/// Where the leaves of a directory begin in its file (fs/xfs/libxfs/xfs_da_format.h,
/// `XFS_DIR2_LEAF_OFFSET`).
const DIRECTORY_INDEX_AT: u64 = 32 << 30;

impl Metadata {
    /// The forks of an inode are these now, where they are given.
    pub(super) fn read_forks(
        &mut self,
        inode: u64,
        core: &Core,
        data: Option<&[u8]>,
        xattr: Option<&[u8]>,
        rows: &mut Rows,
        late: &mut Late,
    ) {
        let list = |bytes, count| extents(bytes, count).collect();
        let is_free = core.mode == 0;
        if is_free {
            self.hold(Holder::Data, inode, Vec::new(), rows, late);
            self.hold(Holder::Xattr, inode, Vec::new(), rows, late);
        } else if let Some(fork) = data
            && core.data_format == Format::Extents
            && !core.realtime
        {
            let list = list(fork, core.data_extents);
            self.hold(Holder::Data, inode, list, rows, late);
        }
        if !is_free && let Some(fork) = xattr.filter(|_| core.xattr_format == Format::Extents) {
            let list = list(fork, u64::from(core.xattr_extents));
            self.hold(Holder::Xattr, inode, list, rows, late);
        }
        let is_short = !is_free && core.is_directory() && core.data_format == Format::Local;
        match data.filter(|_| is_short) {
            Some(fork) => self.read_short_form(inode, fork),
            None if !is_short => self.read_short_form(inode, &[]),
            None => {}
        }
        self.drop_leaves(inode, core, rows, late);
    }

    /// Extents that leaves held may now be in the inode, and the other way round.
    fn drop_leaves(&mut self, inode: u64, core: &Core, rows: &mut Rows, late: &mut Late) {
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
            self.hold(Holder::Leaf(leaf), inode, Vec::new(), rows, late);
        }
        let list = self.inodes.get(inode).map(|known| known.data.clone());
        for extent in list.unwrap_or_default() {
            let owner = self.owner(Holder::Data, inode, &extent);
            self.give(&extent, owner);
        }
    }

    fn read_short_form(&mut self, inode: u64, fork: &[u8]) {
        let known = self.inodes.get_or_insert_with(inode, Inode::default);
        if *known.short_form == *fork {
            return;
        }
        let before = replace(&mut known.short_form, fork.into());
        let entries = |fork| directory::short_form(fork).map_or(Vec::new(), |(_, entries)| entries);
        self.names
            .replace(inode, &entries(&before), inode, &entries(fork));
    }

    /// `holder`, of this inode, lists these extents now.
    pub(super) fn hold(
        &mut self,
        holder: Holder,
        inode: u64,
        list: Vec<Extent>,
        rows: &mut Rows,
        late: &mut Late,
    ) {
        let before = match holder {
            Holder::Data => self.inodes.get_mut(inode).map(|i| take(&mut i.data)),
            Holder::Xattr => self.inodes.get_mut(inode).map(|i| take(&mut i.xattr)),
            Holder::Leaf(offset) => self.leaf_extents.remove(&offset),
        };
        let before = before.unwrap_or_default();
        let same = list.iter().zip(&before).take_while(|(a, b)| a == b).count();
        let new = list[same..].to_vec();
        if !list.is_empty() {
            let known = self.inodes.get_or_insert_with(inode, Inode::default);
            match holder {
                Holder::Data => known.data = list,
                Holder::Xattr => known.xattr = list,
                Holder::Leaf(offset) => _ = self.leaf_extents.insert(offset, list),
            }
        }
        for extent in before.iter().skip(same) {
            if let Some(block) = self.geometry.block(extent.fs_block) {
                self.owners.drop_of(block, extent.blocks, inode);
            }
        }
        for extent in new {
            if matches!(holder, Holder::Leaf(_)) {
                self.moved.push((extent, holder, inode));
            } else {
                self.claim(&extent, holder, inode, rows, late);
            }
        }
    }

    /// The extents of tree blocks are where they are now.
    pub(super) fn settle_moved(&mut self, rows: &mut Rows, late: &mut Late) {
        for (extent, holder, inode) in take(&mut self.moved) {
            self.claim(&extent, holder, inode, rows, late);
        }
    }

    /// An inode has these blocks now: and the data there that had no owner.
    fn claim(
        &mut self,
        extent: &Extent,
        holder: Holder,
        inode: u64,
        rows: &mut Rows,
        late: &mut Late,
    ) {
        let owner = self.owner(holder, inode, extent);
        self.give(extent, owner);
        let bytes = self.geometry.block_bytes;
        if let Some(block) = self.geometry.block(extent.fs_block) {
            let (offset, length) = (block * bytes, extent.blocks.saturating_mul(bytes));
            let claimed = self.owners.claim(offset, length, owner, rows);
            late.extend(claimed.into_iter().map(|row| (row, inode)));
        }
    }

    fn give(&mut self, extent: &Extent, owner: Owner) {
        if let Some(block) = self.geometry.block(extent.fs_block) {
            let latest = self.inodes.get(owner.inode).and_then(Inode::latest);
            let may_share = latest.is_some_and(|version| version.core.shares);
            self.owners.give(block, extent.blocks, owner, may_share);
        }
    }

    fn owner(&self, holder: Holder, inode: u64, extent: &Extent) -> Owner {
        let geometry = &self.geometry;
        let latest = self.inodes.get(inode).and_then(Inode::latest);
        let core = latest.map(|version| version.core);
        let file_offset = extent.file_block.saturating_mul(geometry.block_bytes);
        // A tree's leaves do not say of which fork they are.
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
            match file_offset < DIRECTORY_INDEX_AT {
                true => Structure::Directory,
                false => Structure::DirectoryIndex,
            }
        } else if core.is_some_and(|c| c.is_symlink()) {
            Structure::Symlink
        } else {
            Structure::FileData
        };
        Owner { inode, structure }
    }
}
