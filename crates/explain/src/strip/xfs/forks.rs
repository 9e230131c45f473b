//! Forks of inodes: short directories, targets and attributes, lists of extents. They are the same
//! in inodes and in the log.

use super::{be16, block};
use crate::strip::Secret;

/// A data fork that holds what it holds itself.
pub fn local(fork: &mut [u8], mode: u16, size: Option<u64>, secret: &mut Secret) {
    match mode >> 12 {
        4 => directory(fork, secret),
        10 => {
            let end = size.map_or(fork.len(), |size| fork.len().min(size as usize));
            let (target, rest) = fork.split_at_mut(end);
            secret.path(target);
            secret.bytes(rest);
        }
        _ => secret.bytes(fork),
    }
}

/// A fork of extents, or the root of their tree.
pub fn mapped(fork: &mut [u8], format: u8, count: u64, secret: &Secret) {
    let used = match format {
        0 => 8, // a device's number
        2 => usize::try_from(count)
            .unwrap_or(usize::MAX)
            .saturating_mul(16),
        3 if fork.len() >= 4 => {
            let count = usize::from(be16(fork, 2));
            return block::pointers(fork, 4, 8, 8, count, secret);
        }
        _ => 0,
    };
    let used = used.min(fork.len());
    secret.bytes(&mut fork[used..]);
}

/// A short directory: count, whether inodes are wide, parent, entries.
fn directory(fork: &mut [u8], secret: &mut Secret) {
    let (Some(&count), Some(&wide)) = (fork.first(), fork.get(1)) else {
        return secret.bytes(fork);
    };
    let inode_bytes = if wide > 0 { 8 } else { 4 };
    let mut at = 2 + inode_bytes;
    for _ in 0..count {
        let Some(&length) = fork.get(at) else {
            break;
        };
        // Length, two bytes of offset, name, a byte of file type, inode.
        let (name, end) = (at + 3, at + 3 + usize::from(length));
        let next = end + 1 + inode_bytes;
        if next > fork.len() {
            break;
        }
        secret.name(&mut fork[name..end]);
        at = next;
    }
    let at = at.min(fork.len());
    secret.bytes(&mut fork[at..]);
}

/// Short attributes: bytes, count, entries of three lengths, name and value.
pub fn attributes(fork: &mut [u8], secret: &Secret) {
    let Some(&count) = fork.get(2) else {
        return secret.bytes(fork);
    };
    let mut at = 4;
    for _ in 0..count {
        let (Some(&name), Some(&value)) = (fork.get(at), fork.get(at + 1)) else {
            break;
        };
        let value_at = at + 3 + usize::from(name);
        let end = value_at + usize::from(value);
        if end > fork.len() {
            break;
        }
        secret.bytes(&mut fork[value_at..end]);
        at = end;
    }
    let at = at.min(fork.len());
    secret.bytes(&mut fork[at..]);
}
