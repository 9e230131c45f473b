//! Private content of inodes: short targets of symbolic links, inline content, attributes.

use super::{directory, extents, xattr};
use crate::{Secret, checksum};
use fscost_ondisk::ext::inode::{BLOCK_AT, BLOCK_END, Inode};
use fscost_ondisk::ext::superblock::Superblock;

/// Ends of the fields that every inode has and of all known fields, and offsets of the checksum
/// halves.
const FIRST_FIELDS_END: usize = 0x80;
const FIELDS_END: usize = 0xA0;
const CHECKSUM_LOW_AT: usize = 0x7C;
const CHECKSUM_HIGH_AT: usize = 0x82;

/// Strips one inode of the table.
pub fn strip(slot: &mut [u8], superblock: &Superblock, secret: &mut Secret) {
    let old = slot.to_vec();
    let inode = Inode(&old);
    i_block(inode, &mut slot[BLOCK_AT..BLOCK_END], superblock, secret);
    let has_more = slot.len() > FIRST_FIELDS_END;
    let fields_end = inode.fields_end();
    if has_more {
        // Known fields, then possibly unknown fields, then attributes.
        let end = fields_end.clamp(FIRST_FIELDS_END + 4, slot.len());
        let known = end.min(FIELDS_END);
        secret.bytes(&mut slot[known..end]);
        let has_names = inode.is_directory() && inode.is_inline();
        xattr::in_inode(&mut slot[end..], has_names, superblock, secret);
    }
    if superblock.has_checksums() {
        let change = checksum::change(&old, slot);
        checksum::apply_half(slot, CHECKSUM_LOW_AT, change as u16);
        if has_more && fields_end >= CHECKSUM_HIGH_AT + 2 {
            checksum::apply_half(slot, CHECKSUM_HIGH_AT, (change >> 16) as u16);
        }
    }
}

fn i_block(inode: Inode<'_>, block: &mut [u8], superblock: &Superblock, secret: &mut Secret) {
    if inode.is_inline() {
        // An inline directory starts with the parent's inode number, followed by entries.
        let is_directory = inode.is_directory();
        let names = if is_directory { &mut block[4..] } else { block };
        if !is_directory || !directory::entries(names, superblock, secret) {
            secret.bytes(names);
        }
    } else if inode.has_extents() {
        if extents(block, secret).is_none() {
            secret.bytes(block);
        }
    } else if inode.is_short_link() {
        secret.path(block);
    } else if inode.is_device() {
        secret.bytes(&mut block[8..]);
    } else if !inode.maps_blocks() {
        secret.bytes(block);
    }
}
