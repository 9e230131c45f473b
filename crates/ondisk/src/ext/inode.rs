//! Inodes. Format: Linux `fs/ext4/ext4.h`, struct `ext4_inode`.

use super::{layout::Content, superblock::Superblock, xattr};
use crate::bytes::{le16, le32, part};

const FORMAT_MASK: u16 = 0xF000;
const DIRECTORY: u16 = 0x4000;
const REGULAR: u16 = 0x8000;
const SYMLINK: u16 = 0xA000;
const CHARACTER_DEVICE: u16 = 0x2000;
const BLOCK_DEVICE: u16 = 0x6000;

const FLAG_INDEX: u32 = 0x1000;
const FLAG_EXTENTS: u32 = 0x8_0000;
const FLAG_EA_INODE: u32 = 0x20_0000;
const FLAG_INLINE_DATA: u32 = 0x1000_0000;

/// Byte offset of `i_block`.
pub const BLOCK_AT: usize = 0x28;
/// The end of `i_block`.
pub const BLOCK_END: usize = 0x64;

/// Inode of the root directory.
pub const ROOT: u32 = 2;

/// The bytes of one inode in the inode table.
#[derive(Debug, Clone, Copy)]
pub struct Inode<'a>(pub &'a [u8]);

impl<'a> Inode<'a> {
    fn format(self) -> u16 {
        le16(self.0, 0) & FORMAT_MASK
    }

    fn flags(self) -> u32 {
        le32(self.0, 0x20)
    }

    fn size(self) -> u64 {
        u64::from(le32(self.0, 0x6C)) << 32 | u64::from(le32(self.0, 4))
    }

    /// Returns whether the modification or change time differs, or the creation of the inode.
    pub fn is_changed_since(self, old: Inode<'_>) -> bool {
        // ctime and mtime, their high parts, and the generation.
        let fields = [(0xC, 0x14), (0x84, 0x8C), (0x64, 0x68)];
        let differs =
            |&(from, to): &(usize, usize)| part(self.0, from, to) != part(old.0, from, to);
        fields.iter().any(differs)
    }

    /// Returns whether the inode is a directory.
    pub fn is_directory(self) -> bool {
        self.format() == DIRECTORY
    }

    /// Returns whether the inode is a directory with a hash tree.
    pub fn is_indexed(self) -> bool {
        self.is_directory() && self.flags() & FLAG_INDEX != 0
    }

    /// Returns whether the content lies in the inode itself.
    pub fn is_inline(self) -> bool {
        self.flags() & FLAG_INLINE_DATA != 0
    }

    /// Returns whether `i_block` is the root of an extent tree, not a list of pointers.
    pub fn has_extents(self) -> bool {
        self.flags() & FLAG_EXTENTS != 0
    }

    /// `i_block`.
    pub fn block(self) -> &'a [u8] {
        part(self.0, BLOCK_AT, BLOCK_END)
    }

    /// Block of the inode's extended attributes, or 0.
    pub fn xattr_block(self) -> u64 {
        u64::from(le16(self.0, 0x76)) << 32 | u64::from(le32(self.0, 0x68))
    }

    /// Returns whether `i_block` maps blocks. It does not for inline content, short symbolic links
    /// and devices.
    pub fn maps_blocks(self) -> bool {
        match self.format() {
            REGULAR | DIRECTORY => !self.is_inline(),
            SYMLINK => !self.is_inline() && !self.is_short_link(),
            // The inodes of bad blocks and of the resize area have no type.
            0 => self.lives() || self.size() > 0,
            _ => false,
        }
    }

    /// Content of the blocks that the inode maps.
    pub fn content(self, number: u32, superblock: &Superblock) -> Content {
        if number == superblock.journal_inode {
            return Content::Journal;
        }
        if number != 0 && number == superblock.orphan_inode {
            return Content::Orphan;
        }
        if number != 0 && superblock.quota_inodes.contains(&number) {
            return Content::Quota;
        }
        match self.format() {
            _ if self.is_value() => Content::Xattr,
            DIRECTORY => Content::Directory,
            SYMLINK => Content::Symlink,
            _ => Content::Data,
        }
    }

    /// Returns whether the inode holds the value of an attribute of other inodes (`ea_inode`).
    pub fn is_value(self) -> bool {
        self.flags() & FLAG_EA_INODE != 0
    }

    /// End of the inode's fields: only attributes follow them.
    pub fn fields_end(self) -> usize {
        0x80 + usize::from(le16(self.0, 0x80))
    }

    /// Bytes after the inode's fields.
    pub fn attributes(self) -> &'a [u8] {
        part(self.0, self.fields_end(), usize::MAX)
    }

    /// Returns whether `i_block` is the target of a short symbolic link
    /// (`ext4_inode_is_fast_symlink`).
    pub fn is_short_link(self) -> bool {
        self.format() == SYMLINK && !self.is_inline() && !self.has_extents() && self.size() < 60
    }

    /// Returns whether `i_block` is the number of a device.
    pub fn is_device(self) -> bool {
        matches!(self.format(), CHARACTER_DEVICE | BLOCK_DEVICE)
    }

    /// Returns whether the inode has links.
    pub fn lives(self) -> bool {
        le16(self.0, 0x1A) > 0
    }

    /// Returns whether the inode may have blocks: it has links, or was unlinked while it was open.
    pub fn may_map(self) -> bool {
        self.lives() || (self.format() != 0 && self.block().iter().any(|&byte| byte != 0))
    }

    /// Returns whether the inode belongs to a different file than `old`. Open files without a name
    /// count as files.
    pub fn is_another_than(self, old: Inode<'_>) -> bool {
        self.format() != 0 && self.generation() != old.generation()
    }

    /// Generation, which tells apart the files that have had this inode number.
    pub fn generation(self) -> u32 {
        le32(self.0, 0x64)
    }
}

/// Returns the parent of a directory with inline content.
pub fn inline_parent(inode: Inode<'_>) -> Option<u32> {
    (inode.is_directory() && inode.is_inline()).then(|| le32(inode.0, BLOCK_AT))
}

/// Returns the directory entries that an inode with inline content holds: in `i_block` after the
/// parent's number, and in the attribute `system.data` (`fs/ext4/inline.c`).
pub fn inline_entries(inode: Inode<'_>) -> [&[u8]; 2] {
    let body = inode.attributes();
    let data = xattr::of_inode(body).find(|attribute| attribute.is_content);
    let more = data.and_then(|data| body.get(data.value));
    let first = part(inode.0, BLOCK_AT + 4, BLOCK_END);
    [first, more.unwrap_or_default()]
}
