//! Metadata blocks, by their magic numbers; all that is behind what a block uses is what was there
//! before.

use super::{be16, be32, be64, forks};
use crate::families::xfs::Geometry;
use crate::strip::{Secret, checksum};

const CORE_BYTES: usize = 176;
/// Where the header of directory and hash blocks ends.
const DIRECTORY_AT: usize = 64;
/// Where that of remote values and targets ends.
const REMOTE_AT: usize = 56;
/// `XFS_ATTR_LOCAL`
const LOCAL: u8 = 1;

/// Take out what is private; `false` if it is no metadata that is known.
pub fn strip(block: &mut [u8], geometry: &Geometry, secret: &mut Secret) -> bool {
    if super::super::is_zero(block) {
        return true;
    }
    let old = block.to_vec();
    let Some(crc_at) = known(block, geometry, secret) else {
        return false;
    };
    let change = checksum::change(&old, block);
    checksum::apply(block, crc_at, change);
    true
}

/// Whether a block that the log changes begins here: it has its own address (`XDB3` and others at
/// 8, hash blocks at 16, tree blocks at 16 or 24,
/// targets at 40), or is a superblock or an inode.
pub fn names_itself(block: &[u8], offset: u64) -> bool {
    let address = offset / 512;
    let addressed = [8, 16, 24, 40].iter().any(|&at| be64(block, at) == address) && address > 0;
    addressed || block.starts_with(b"XFSB") || block.starts_with(b"IN")
}

/// Returns where the checksum is.
fn known(block: &mut [u8], geometry: &Geometry, secret: &mut Secret) -> Option<usize> {
    if block.len() < 128 {
        return None;
    }
    match [block[0], block[1], block[2], block[3]] {
        [b'X', b'F', b'S', b'B'] => {
            secret.path(&mut block[108..120]);
            Some(224)
        }
        [b'X', b'A', b'G', b'F'] => Some(216),
        [b'X', b'A', b'G', b'I'] => Some(312),
        [b'X', b'A', b'F', b'L'] => Some(32),
        [b'I', b'N', ..] if block.len() >= geometry.inode_bytes as usize => {
            let size = geometry.inode_bytes as usize;
            secret.bytes(&mut block[size..]);
            inode(&mut block[..size], secret);
            Some(100)
        }
        [b'A', b'B', b'3', b'B' | b'C'] => tree(block, 8, 8, secret),
        [b'I' | b'F', b'A' | b'I', b'B', b'3'] => tree(block, 16, 4, secret),
        [b'R', b'M', b'B', b'3'] => tree(block, 24, 40, secret),
        [b'R', b'3', b'F', b'C'] => tree(block, 12, 4, secret),
        [b'B', b'M', b'A', b'3'] => {
            let count = usize::from(be16(block, 6));
            if be16(block, 4) == 0 {
                clear(block, 72 + 16 * count, secret);
            } else {
                pointers(block, 72, 8, 8, count, secret);
            }
            Some(64)
        }
        [b'X', b'D', b'B', b'3'] | [b'X', b'D', b'D', b'3'] => {
            directory(block, secret);
            Some(4)
        }
        [b'X', b'D', b'F', b'3'] => {
            let used = (be32(block, 52) as usize).saturating_mul(2);
            clear(block, DIRECTORY_AT.saturating_add(used), secret);
            Some(4)
        }
        [b'X', b'A', b'R', b'M'] => {
            secret.bytes(&mut block[REMOTE_AT..]);
            Some(12)
        }
        [b'X', b'S', b'L', b'M'] => {
            let end = (be32(block, 8) as usize).saturating_add(REMOTE_AT);
            let end = end.min(block.len());
            secret.path(&mut block[REMOTE_AT..end]);
            secret.bytes(&mut block[end..]);
            Some(12)
        }
        _ => hashed(block, secret),
    }
}

fn hashed(block: &mut [u8], secret: &mut Secret) -> Option<usize> {
    let count = usize::from(be16(block, 56));
    match be16(block, 8) {
        // A directory's only leaf has free space counted at its end.
        0x3df1 => {
            let bests = (be32(block, block.len() - 4) as usize)
                .saturating_mul(2)
                .saturating_add(4);
            let end = block.len().saturating_sub(bests);
            clear_until(block, DIRECTORY_AT + 8 * count, end, secret);
        }
        0x3dff | 0x3ebe => clear(block, DIRECTORY_AT + 8 * count, secret),
        0x3bee => attributes(block, count, secret),
        _ => return None,
    }
    Some(12)
}

fn clear(block: &mut [u8], from: usize, secret: &Secret) {
    clear_until(block, from, block.len(), secret);
}

fn clear_until(block: &mut [u8], from: usize, to: usize, secret: &Secret) {
    let to = to.min(block.len());
    secret.bytes(&mut block[from.min(to)..to]);
}

/// A block of a tree within an allocation group.
fn tree(block: &mut [u8], record: usize, key: usize, secret: &Secret) -> Option<usize> {
    let count = usize::from(be16(block, 6));
    if be16(block, 4) == 0 {
        clear(block, 56 + record * count, secret);
    } else {
        pointers(block, 56, key, 4, count, secret);
    }
    Some(52)
}

/// Keys, and pointers behind the space for all keys.
pub fn pointers(
    block: &mut [u8],
    first: usize,
    key: usize,
    pointer: usize,
    count: usize,
    secret: &Secret,
) {
    let most = block.len().saturating_sub(first) / (key + pointer);
    let pointers = first + most * key;
    clear_until(block, first + count * key, pointers, secret);
    clear(block, pointers + count * pointer, secret);
}

/// Entries and free space of a directory's data; in one of a single block, hashes of names behind
/// it.
fn directory(block: &mut [u8], secret: &mut Secret) {
    let mut end = block.len();
    if block.starts_with(b"XDB3") {
        let tail = end - 8;
        let hashes = (be32(block, tail) as usize).saturating_mul(8);
        end = tail.saturating_sub(hashes).max(DIRECTORY_AT);
    }
    let mut at = DIRECTORY_AT;
    while at + 12 <= end {
        if be16(block, at) == 0xffff {
            let next = at + usize::from(be16(block, at + 2));
            if next < at + 8 || next > end {
                break;
            }
            secret.bytes(&mut block[at + 4..next - 2]);
            at = next;
            continue;
        }
        // Inode, length, name, file type, tag: in steps of 8 bytes.
        let name_bytes = usize::from(block[at + 8]);
        let name_end = at + 9 + name_bytes;
        let next = at + (9 + name_bytes + 3).next_multiple_of(8);
        if name_bytes == 0 || next > end {
            break;
        }
        secret.name(&mut block[at + 9..name_end]);
        secret.bytes(&mut block[name_end + 1..next - 2]);
        at = next;
    }
    secret.bytes(&mut block[at..end]);
}

/// A leaf of attributes: names and values grow from its end.
fn attributes(block: &mut [u8], count: usize, secret: &Secret) {
    const AT: usize = 80;
    let entries_end = (AT + 8 * count).min(block.len());
    let entries = (AT..entries_end).step_by(8);
    let mut places: Vec<(usize, bool)> = entries
        .filter(|at| at + 8 <= entries_end)
        .map(|at| (usize::from(be16(block, at + 4)), block[at + 6] & LOCAL != 0))
        .collect();
    places.sort_unstable();
    let mut done = entries_end;
    for (at, is_local) in places {
        let at = at.clamp(done, block.len());
        secret.bytes(&mut block[done..at]);
        let name_at = if is_local { at + 3 } else { at + 9 };
        if name_at > block.len() {
            done = at;
            break;
        }
        let value = name_at + usize::from(block[name_at - 1]);
        let value_bytes = if is_local { be16(block, at) } else { 0 };
        let (value, end) = (
            value.min(block.len()),
            (value + usize::from(value_bytes)).min(block.len()),
        );
        secret.bytes(&mut block[value..end]);
        done = end;
    }
    secret.bytes(&mut block[done..]);
}

/// An inode: its core is numbers, forks are what it says.
fn inode(slot: &mut [u8], secret: &mut Secret) {
    let (core, space) = slot.split_at_mut(CORE_BYTES);
    let mode = be16(core, 2);
    if mode == 0 {
        return secret.bytes(space); // what was there before
    }
    let large_counts = be64(core, 120) & 1 << 4 != 0;
    let (data_count, attribute_count) = if large_counts {
        (be64(core, 24), u64::from(be32(core, 76)))
    } else {
        (u64::from(be32(core, 76)), u64::from(be16(core, 80)))
    };
    let fork_offset = usize::from(core[82]) * 8;
    let middle = if fork_offset == 0 {
        space.len()
    } else {
        fork_offset.min(space.len())
    };
    let (data, attributes) = space.split_at_mut(middle);
    let size = be64(core, 56);
    match core[5] {
        1 => forks::local(data, mode, Some(size), secret),
        format => forks::mapped(data, format, data_count, secret),
    }
    match core[83] {
        1 => forks::attributes(attributes, secret),
        format => forks::mapped(attributes, format, attribute_count, secret),
    }
}
