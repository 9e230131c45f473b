//! Blocks of the file system itself: areas that the superblock names, the maps, and the extent
//! trees of the maps.

use super::superblock::{BACKUP, INODE_MAP, OWN_INODES};
use super::tree::{self, Node};
use super::*;

#[derive(Clone, Copy)]
pub(super) enum OwnPage {
    /// Page of the inode map (`struct iag`).
    Inodes,
    /// Node of this inode's extent tree.
    Tree(u64),
}

impl Jfs {
    /// Registers the structures at places that the superblock names or that never change.
    pub(super) fn own_areas(&mut self, superblock: Superblock<'_>, rows: &mut Rows) {
        let fixed = [
            (0, superblock::AT, Structure::Unused),
            (superblock::AT, INODE_MAP, Structure::Superblock),
            (INODE_MAP, OWN_INODES, Structure::InodeBitmap),
            (OWN_INODES, BACKUP, Structure::InodeTable),
            (BACKUP, OWN_END, Structure::SuperblockBackup),
        ];
        for (from, to, structure) in fixed {
            let owner = Owner::no_inode(structure);
            self.files.own(from, to - from, owner, rows);
        }
        let named = [
            (superblock.own_inodes(), Structure::InodeTable),
            (superblock.own_map(), Structure::InodeBitmap),
            (superblock.log(), Structure::Log),
            (superblock.fsck(), Structure::Unused),
        ];
        for (extent, structure) in named {
            self.own(extent, Owner::no_inode(structure), rows);
        }
    }

    pub(super) fn own(&mut self, extent: (u64, u64), owner: Owner, rows: &mut Rows) {
        let (from, length) = self.bytes(extent);
        self.files.own(from, length, owner, rows);
    }

    /// Returns the offset and length in bytes of an extent, cut at the end of the disk.
    pub(super) fn bytes(&self, (block, count): (u64, u64)) -> (u64, u64) {
        let at = |block: u64| block.saturating_mul(PAGE).min(self.end);
        let from = at(block);
        (from, at(block.saturating_add(count)) - from)
    }

    /// Like [`own`](Self::own), but also reads blocks that did not have this owner before.
    pub(super) fn own_read(
        &mut self,
        (block, count): (u64, u64),
        owner: Owner,
        own_page: Option<OwnPage>,
        now: &mut Now<'_, '_>,
    ) -> Result<()> {
        // Pages of trees and maps are single; inodes come in groups of four pages.
        for block in block..block.saturating_add(count.min(4)) {
            let at = block.saturating_mul(PAGE);
            let is_known = own_page.is_none() || self.own_pages.contains_key(&at);
            if at >= self.end || is_known && self.files.owner(at, 1).0 == Some(owner) {
                continue;
            }
            if self.depth == DEEPEST || self.left == 0 {
                return Ok(());
            }
            self.left -= 1;
            self.files.confirm(at, PAGE, now.rows);
            self.own((block, 1), owner, now.rows);
            if let Some(own_page) = own_page {
                self.own_pages.insert(at, own_page);
            }
            let is_newest = !self.logged.contains_key(&at);
            let page = self.newest(at, now)?;
            self.depth += 1;
            let read = match owner.structure {
                Structure::InodeTable => self.inodes(&page, is_newest, now).map(drop),
                _ => self.page(at, &page, owner, now),
            };
            self.depth -= 1;
            read?;
        }
        Ok(())
    }

    /// Explains a node of the extent tree of one of the file system's own files.
    pub(super) fn own_extents(
        &mut self,
        file: u64,
        node: &[u8],
        now: &mut Now<'_, '_>,
    ) -> Result<()> {
        let structure = match file {
            1 | INODE_MAP_FILE => Structure::InodeBitmap,
            BLOCK_MAP_FILE => Structure::BlockBitmap,
            _ => return Ok(()),
        };
        let owner = Owner::no_inode(structure);
        match tree::extents(node) {
            Node::Leaf(entries) => {
                for entry in entries {
                    let (first, count) = entry.extent;
                    // The first page of the inode map maps no inode extents.
                    let skipped = match file {
                        INODE_MAP_FILE => u64::from(entry.at == 0),
                        _ => count,
                    };
                    self.own((first, skipped.min(count)), owner, now.rows);
                    for block in first + skipped..first.saturating_add(count.min(1 << 16)) {
                        let page = Some(OwnPage::Inodes);
                        self.own_read((block, 1), owner, page, now)?;
                    }
                }
            }
            Node::Internal(pages) => {
                for page in pages {
                    let tree = Some(OwnPage::Tree(file));
                    self.own_read(page, owner, tree, now)?;
                }
            }
        }
        Ok(())
    }
}
