//! What inodes hold besides numbers: short targets of symbolic links, inline content, attributes.

use super::{Shape, checksum, directory, extents, xattr};
use crate::bytes::{le16, le32};
use crate::strip::Secret;

const BLOCK: std::ops::Range<usize> = 0x28..0x64;
const EXTENTS: u32 = 0x8_0000;
const INLINE_DATA: u32 = 0x1000_0000;

/// One inode of the table.
pub fn strip(slot: &mut [u8], shape: &Shape, secret: &mut Secret) {
    let old = slot.to_vec();
    let extra = 0x80 + usize::from(le16(slot, 0x80));
    let is_directory = le16(slot, 0) >> 12 == 4;
    i_block(slot, is_directory, shape, secret);
    if slot.len() > 0x80 {
        // Fields that are known, then what may have come after them, then attributes.
        let extra = extra.clamp(0x84, slot.len());
        let known = extra.min(0xA0);
        secret.bytes(&mut slot[known..extra]);
        let inline = is_directory && le32(&old, 0x20) & INLINE_DATA != 0;
        xattr::in_inode(&mut slot[extra..], inline, shape, secret);
    }
    if shape.has_checksums {
        let change = checksum::change(&old, slot);
        checksum::apply_half(slot, 0x7C, change as u16);
        if slot.len() > 0x80 && extra >= 0x84 {
            checksum::apply_half(slot, 0x82, (change >> 16) as u16);
        }
    }
}

fn i_block(slot: &mut [u8], is_directory: bool, shape: &Shape, secret: &mut Secret) {
    let flags = le32(slot, 0x20);
    let (kind, is_small) = (
        le16(slot, 0) >> 12,
        le32(slot, 4) < 60 && le32(slot, 0x6C) == 0,
    );
    let Some(block) = slot.get_mut(BLOCK) else {
        return;
    };
    if flags & INLINE_DATA != 0 {
        // Of a directory: the parent's number, then entries.
        let names = if is_directory { &mut block[4..] } else { block };
        if !is_directory || !directory::entries(names, shape, secret) {
            secret.bytes(names);
        }
    } else if flags & EXTENTS != 0 && le16(block, 0) == super::EXTENT_MAGIC {
        extents(block, secret);
    } else {
        match kind {
            10 if is_small => secret.path(block),
            // Character and block devices: their numbers.
            2 | 6 => secret.bytes(&mut block[8..]),
            // Files, directories, long links, and the inodes of bad blocks and of the resize area:
            // pointers.
            0 | 4 | 8 | 10 => {}
            _ => secret.bytes(block),
        }
    }
}
