//! Causes of a block's write, from its differences from the previous version.

use std::sync::Arc;

use super::{
    blocks::{Area, Content, Kind, Mapper, Use, structure_of},
    causes,
    directory::{self, Entry},
    inode::{self, Inode},
    map,
    state::{Explanation, State, Update},
    superblock::Superblock,
    xattr::{self, Attribute},
};
use crate::bytes::{is_zero, le32, part};
use crate::{Cause, Causes, Disks, Structure};
use fscost_recording::Result;

impl State {
    pub(super) fn inode_table(
        &mut self,
        block: u64,
        used: Use,
        new: &[u8],
        update: &mut Update<'_, '_>,
    ) -> Result<Explanation> {
        let old_table = self.before(block, update.disks)?;
        let size = self.superblock.inode_bytes as usize;
        let origin = self.space.origin(block).unwrap_or(block);
        let before = (block - origin).saturating_mul((new.len() / size.max(1)) as u64);
        let first = u64::from(used.inode).saturating_add(before);
        let (mut causes, mut changed) = (Causes::NONE, Vec::new());
        for (index, slot) in new.chunks_exact(size).enumerate() {
            let Ok(number) = u32::try_from(first + index as u64) else {
                break;
            };
            let old = Inode(part(&old_table, index * size, (index + 1) * size));
            let new = Inode(slot);
            if new.may_map() {
                update.applied.mappers.push(Mapper::of_inode(number));
            }
            let why = causes::causes(old, new);
            if why.is_empty() {
                continue;
            }
            causes = causes.and(why);
            changed.push(number);
            self.changed_inode(number, old, new, why, update);
        }
        if is_zero(&old_table) && is_zero(new) {
            causes = Causes::one(Cause::LazyInit);
        } else if causes.is_empty() {
            causes = Causes::one(Cause::Unchanged);
        }
        Ok(Explanation {
            structure: Structure::InodeTable,
            causes,
            inode: match changed[..] {
                [one] => one,
                _ => 0,
            },
        })
    }

    fn changed_inode(
        &mut self,
        number: u32,
        old: Inode<'_>,
        new: Inode<'_>,
        why: Causes,
        update: &mut Update<'_, '_>,
    ) {
        self.life(number, old, new, why);
        if new.is_changed_since(old) || !new.lives() {
            update.applied.moves.exclude(number);
        }
        if let Some(parent) = inode::inline_parent(new) {
            self.names.see_parent(number, parent);
        }
        self.rename(
            number,
            &inline_names(old, &self.superblock),
            &inline_names(new, &self.superblock),
        );
        let old_claims = map::of_inode(old, number, &self.superblock);
        let new_claims = map::of_inode(new, number, &self.superblock);
        let mapper = Mapper::of_inode(number);
        if new.is_another_than(old) && !old_claims.is_empty() {
            update.applied.remade.insert(number);
            update.of_inodes.remade(mapper, old_claims, new_claims);
        } else {
            update.of_inodes.differ(mapper, old_claims, new_claims);
        }
        if self.superblock.has_value_inodes() {
            if !new.is_value() {
                self.names.not_a_value(number);
            }
            self.values_of(number, xattr::of_inode(new.attributes()));
        }
        if new.is_indexed() {
            self.indexed.insert(number);
        } else {
            self.indexed.remove(&number);
        }
    }

    /// Records whether a changed inode was removed, created, or reused by another file.
    fn life(&mut self, number: u32, old: Inode<'_>, new: Inode<'_>, why: Causes) {
        let is_another = new.is_another_than(old);
        self.names
            .inode_is(number, new.generation(), new.lives(), new.is_directory());
        if why.has(Cause::InodeRemoved) || is_another {
            self.names.inode_removed(number);
        }
        if why.has(Cause::NewInode) || is_another {
            self.names.inode_new(number);
        }
        if is_another && !new.lives() {
            self.names.inode_nameless(number);
        }
    }

    pub(super) fn explain(
        &mut self,
        block: u64,
        new: &[u8],
        was_read: bool,
        disks: &mut Disks<'_>,
    ) -> Result<Explanation> {
        let Some(Use { kind, inode, .. }) = self.space.get(block) else {
            return Ok(self.unowned(block, new));
        };
        let mut structure = structure_of(kind);
        let is_new = was_read || self.unread.remove(&block);
        let old = if is_new || !kind.is_metadata() {
            Arc::default()
        } else {
            self.before(block, disks)?
        };
        let cause = match kind {
            Kind::Content(Content::Data | Content::Symlink) => Cause::Data,
            Kind::Content(Content::Directory) => {
                if self.indexed.contains(&inode) && directory::index_end(new).is_some() {
                    structure = Structure::DirectoryIndex;
                }
                let renamed = was_read || self.rename_in(inode, &old, new);
                // An index block changes when names no longer fit where they were.
                let names = renamed || structure == Structure::DirectoryIndex;
                match names {
                    true => Cause::DirectoryEntries,
                    false => Cause::Accounting,
                }
            }
            Kind::Extents(_) | Kind::Pointers(..) => Cause::SizeOrExtents,
            Kind::Xattr => {
                if self.superblock.has_value_inodes() {
                    self.values_of(inode, xattr::of_block(new));
                }
                Cause::LinksOrMode
            }
            Kind::Content(Content::Xattr) => Cause::LinksOrMode,
            Kind::Fixed(Area::BlockBitmap | Area::InodeBitmap) => Cause::Allocation,
            Kind::Fixed(Area::GroupDescriptors) => self.descriptors_cause(&old, new),
            _ => Cause::Accounting,
        };
        Ok(Explanation {
            structure,
            causes: Causes::one(match *old == *new {
                true => Cause::Unchanged,
                false => cause,
            }),
            inode,
        })
    }

    /// Names each inode that holds an attribute value after the inode that has the attribute.
    pub(super) fn values_of(&mut self, inode: u32, attributes: impl Iterator<Item = Attribute>) {
        for attribute in attributes.filter(|attribute| attribute.inode != 0) {
            self.names.value(attribute.inode, inode);
        }
    }

    fn rename_in(&mut self, directory: u32, old: &[u8], new: &[u8]) -> bool {
        self.see_parent(directory, new);
        let old = self.entries(old).unwrap_or_default();
        let new = self.entries(new).unwrap_or_default();
        self.keep_names(directory, &old, &new);
        self.rename(directory, &old, &new)
    }

    /// Returns [`Cause::Allocation`] if the free counts or the fields that show what is in use
    /// changed: bytes 12 to 19, the unused inodes at 28, and the upper halves at 44 to 51 of
    /// `struct ext4_group_desc`. Otherwise only checksums changed.
    fn descriptors_cause(&self, old: &[u8], new: &[u8]) -> Cause {
        let size = self.superblock.descriptor_bytes as usize;
        let differ = |(old, new): (&[u8], &[u8])| {
            let counts = [(12, 20), (28, 30), (44, 52)];
            counts
                .iter()
                .any(|&(from, to)| part(old, from, to) != part(new, from, to))
        };
        match old.chunks(size).zip(new.chunks(size)).any(differ) {
            true => Cause::Allocation,
            false => Cause::Accounting,
        }
    }

    /// Explains a journal copy of a block that has no owner any more at the commit, from the form
    /// of its content alone.
    fn unowned(&self, block: u64, content: &[u8]) -> Explanation {
        let extents =
            !map::of_node(Kind::Extents(Content::Data), content, &self.superblock).is_empty();
        let (structure, cause) = if block >= self.superblock.blocks {
            (Structure::Unknown, Cause::Unknown)
        } else if extents {
            (Structure::ExtentMap, Cause::SizeOrExtents)
        } else if le32(content, 0) == xattr::MAGIC {
            (Structure::Xattr, Cause::LinksOrMode)
        } else if self.entries(content).is_some() {
            (Structure::Directory, Cause::DirectoryEntries)
        } else {
            (Structure::FileData, Cause::Data)
        };
        Explanation {
            structure,
            causes: Causes::one(cause),
            inode: 0,
        }
    }
}

fn inline_names<'b>(inode: Inode<'b>, superblock: &Superblock) -> Vec<Entry<'b>> {
    if !(inode.is_directory() && inode.is_inline()) {
        return Vec::new();
    }
    let parts = inode::inline_entries(inode);
    let mut entries: Vec<_> = parts
        .iter()
        .flat_map(|p| directory::entries(p, superblock.has_file_types()).unwrap_or_default())
        .collect();
    entries.sort_unstable();
    entries
}
