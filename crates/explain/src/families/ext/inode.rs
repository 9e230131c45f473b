//! Inodes: which of their fields changed. Format: Linux `fs/ext4/ext4.h`, struct `ext4_inode`.

use super::{space::Content, superblock::Superblock, xattr};
use crate::bytes::{le16, le32, part};
use crate::{Cause, Causes};

const FORMAT_MASK: u16 = 0xF000;
const DIRECTORY: u16 = 0x4000;
const REGULAR: u16 = 0x8000;
const SYMLINK: u16 = 0xA000;

const FLAG_INDEX: u32 = 0x1000;
const FLAG_EXTENTS: u32 = 0x8_0000;
const FLAG_EA_INODE: u32 = 0x20_0000;
const FLAG_INLINE_DATA: u32 = 0x1000_0000;

/// Byte offset of `i_block`, and its end.
pub const BLOCK_AT: usize = 0x28;
/// The end of `i_block`.
pub const BLOCK_END: usize = 0x64;

/// The prefix `system.` of attributes' names (`EXT4_XATTR_INDEX_SYSTEM`).
const SYSTEM: u8 = 7;

/// Inode of the root directory.
pub const ROOT: u32 = 2;

/// One inode as it stands in its table.
#[derive(Debug, Clone, Copy)]
pub struct Inode<'a>(pub &'a [u8]);

impl<'a> Inode<'a> {
    fn format(self) -> u16 {
        le16(self.0, 0) & FORMAT_MASK
    }

    fn flags(self) -> u32 {
        le32(self.0, 0x20)
    }

    fn links(self) -> u16 {
        le16(self.0, 0x1A)
    }

    fn size(self) -> u64 {
        u64::from(le32(self.0, 0x6C)) << 32 | u64::from(le32(self.0, 4))
    }

    /// Whether it is a directory.
    pub fn is_directory(self) -> bool {
        self.format() == DIRECTORY
    }

    /// Whether it is a directory with a hash tree.
    pub fn is_indexed(self) -> bool {
        self.is_directory() && self.flags() & FLAG_INDEX != 0
    }

    /// Whether its content lies in the inode itself.
    pub fn is_inline(self) -> bool {
        self.flags() & FLAG_INLINE_DATA != 0
    }

    /// Whether `i_block` is an extent tree's root, not pointers.
    pub fn has_extents(self) -> bool {
        self.flags() & FLAG_EXTENTS != 0
    }

    /// `i_block`.
    pub fn block(self) -> &'a [u8] {
        part(self.0, BLOCK_AT, BLOCK_END)
    }

    /// The block of its extended attributes, or 0.
    pub fn xattr_block(self) -> u64 {
        u64::from(le16(self.0, 0x76)) << 32 | u64::from(le32(self.0, 0x68))
    }

    /// Whether `i_block` maps blocks: not so for inline content, short symbolic links
    /// (`ext4_inode_is_fast_symlink`) and devices.
    pub fn maps_blocks(self) -> bool {
        match self.format() {
            REGULAR | DIRECTORY => !self.is_inline(),
            SYMLINK => !self.is_inline() && (self.has_extents() || self.size() >= 60),
            // The inodes of bad blocks and of the resize area have no type.
            0 => self.links() > 0 || self.size() > 0,
            _ => false,
        }
    }

    /// What its blocks hold.
    pub fn content(self, number: u32, superblock: &Superblock) -> Content {
        if number == superblock.journal_inode {
            Content::Journal
        } else if number == superblock.orphan_inode && number != 0 {
            Content::Orphan
        } else if number != 0 && superblock.quota_inodes.contains(&number) {
            Content::Quota
        } else if self.is_value() {
            Content::Xattr
        } else {
            match self.format() {
                DIRECTORY => Content::Directory,
                SYMLINK => Content::Symlink,
                _ => Content::Data,
            }
        }
    }

    /// Whether it holds the value of an attribute of other inodes (`ea_inode`).
    pub fn is_value(self) -> bool {
        self.flags() & FLAG_EA_INODE != 0
    }

    /// What lies behind its fields.
    pub fn attributes(self) -> &'a [u8] {
        let extra = 0x80 + usize::from(le16(self.0, 0x80));
        part(self.0, extra, usize::MAX)
    }

    /// Whether a name, or an open file without one, holds it.
    pub fn lives(self) -> bool {
        self.links() > 0
    }

    /// Whether it may have blocks: it lives, or was unlinked while it is open.
    pub fn may_map(self) -> bool {
        self.lives() || (self.format() != 0 && self.block().iter().any(|&byte| byte != 0))
    }

    /// Whether it is of a file, an open one without a name included, and not the one that `old` is.
    pub fn is_another_than(self, old: Inode<'_>) -> bool {
        self.format() != 0 && self.generation() != old.generation()
    }

    /// Which of the files it is that had its number.
    pub fn generation(self) -> u32 {
        le32(self.0, 0x64)
    }
}

/// Why an inode was written: what is different from the version before. Empty if nothing is.
pub fn causes(old: Inode<'_>, new: Inode<'_>) -> Causes {
    if old.0 == new.0 {
        return Causes::NONE;
    }
    match (old.lives(), new.lives()) {
        (false, true) => return Causes::one(Cause::NewInode),
        (true, false) => return Causes::one(Cause::InodeRemoved),
        (true, true) if old.generation() != new.generation() => {
            return Causes::one(Cause::InodeRemoved).with(Cause::NewInode);
        }
        _ => {}
    }
    let differs = |from: usize, to: usize| part(old.0, from, to) != part(new.0, from, to);
    let extra = 0x80 + usize::from(le16(new.0, 0x80));
    let content = match (new.is_inline(), new.is_directory()) {
        (true, true) => Cause::Names,
        (true, false) => Cause::Data,
        _ => Cause::SizeOrMap,
    };
    // Attributes in the inode begin after its extra fields; inline content ends there too
    // (`system.data`).
    let tail = if new.is_inline() {
        content
    } else {
        Cause::LinksOrMode
    };
    let mut found = Causes::NONE;
    let heavy = [
        (0, 4, Cause::LinksOrMode),          // mode, uid
        (4, 8, Cause::SizeOrMap),            // size
        (0x18, 0x1C, Cause::LinksOrMode),    // gid, links
        (0x1C, 0x20, Cause::SizeOrMap),      // blocks
        (0x20, 0x24, Cause::LinksOrMode),    // flags
        (BLOCK_AT, BLOCK_END, content),      // i_block
        (0x68, 0x6C, Cause::LinksOrMode),    // xattr block
        (0x6C, 0x70, Cause::SizeOrMap),      // size, high
        (0x74, 0x76, Cause::SizeOrMap),      // blocks, high
        (0x76, 0x7C, Cause::LinksOrMode),    // xattr block, uid, gid, high
        (0x9C, 0xA0, Cause::LinksOrMode),    // project
        (extra.max(0xA0), usize::MAX, tail), // attributes
    ];
    for (from, to, cause) in heavy {
        if differs(from, to) {
            found = found.with(cause);
        }
    }
    if !found.is_empty() {
        return found; // the times follow from these
    }
    // i_version counts the changes that ctime dates.
    let times = [(0xC, 0x14), (0x24, 0x28), (0x84, 0x8C), (0x90, 0x9C)];
    if times.iter().any(|&(from, to)| differs(from, to)) {
        Causes::one(Cause::Times)
    } else if differs(8, 0xC) || differs(0x8C, 0x90) {
        Causes::one(Cause::Atime)
    } else {
        Causes::one(Cause::Accounting) // the orphan list (dtime), checksums
    }
}

/// The directory entries that an inode with inline content holds: in `i_block` after the parent's
/// number, and in the attribute
/// `system.data` (`fs/ext4/inline.c`).
pub fn inline_entries(inode: Inode<'_>) -> [&[u8]; 2] {
    let body = inode.attributes();
    let data = xattr::of_inode(body).find(|a| a.prefix == SYSTEM && a.name == b"data");
    let more = data.map_or(&[][..], |data| xattr::value_in_inode(body, &data));
    [part(inode.0, BLOCK_AT + 4, BLOCK_END), more]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inode() -> Vec<u8> {
        let mut bytes = vec![0; 256];
        bytes[1] = 0x81; // regular
        bytes[0x1A] = 1; // one link
        bytes[0x80] = 32; // extra fields
        bytes
    }

    fn of(change: impl Fn(&mut Vec<u8>)) -> Causes {
        let (old, mut new) = (inode(), inode());
        change(&mut new);
        causes(Inode(&old), Inode(&new))
    }

    #[test]
    fn each_field_has_its_cause() {
        let cases: [(&[usize], Cause); 10] = [
            (&[8], Cause::Atime),
            (&[8, 0x8C, 0x7C, 0x82], Cause::Atime),
            (&[8, 0x10], Cause::Times),
            (&[0x0C, 0x84, 0x24], Cause::Times),
            (&[8, 0x10, 4], Cause::SizeOrMap),
            (&[0x28], Cause::SizeOrMap),
            (&[0x0C, 0x1A], Cause::LinksOrMode),
            (&[0xB0], Cause::LinksOrMode),
            (&[0x14], Cause::Accounting),
            (&[0x7C], Cause::Accounting),
        ];
        for (bytes, cause) in cases {
            let found = of(|new| bytes.iter().for_each(|&at| new[at] += 1));
            assert_eq!(found, Causes::one(cause), "{bytes:?}");
        }
        assert_eq!(of(|_| ()), Causes::NONE);
    }

    #[test]
    fn links_tell_birth_and_death() {
        assert_eq!(of(|new| new[0x1A] = 0), Causes::one(Cause::InodeRemoved));
        let born = causes(Inode(&[0; 256]), Inode(&inode()));
        assert_eq!(born, Causes::one(Cause::NewInode));
        let again = Causes::one(Cause::NewInode).with(Cause::InodeRemoved);
        assert_eq!(of(|new| new[0x64] = 9), again);
    }

    #[test]
    fn size_and_links_together_are_both() {
        let both = Causes::one(Cause::SizeOrMap).with(Cause::LinksOrMode);
        assert_eq!(of(|new| (new[4], new[0x1A]) = (1, 2)), both);
    }
}
