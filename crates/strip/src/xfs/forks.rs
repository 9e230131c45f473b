//! Forks of inodes: short directories, targets and attributes, lists of extents. They have the same
//! format in inodes and in the log.

use crate::Secret;
use fscost_ondisk::xfs::inode::{Core, Format, unused};
use fscost_ondisk::xfs::{directory, xattr};

/// Strips a data fork in local format, which holds its content itself.
pub fn local(fork: &mut [u8], core: &Core, size: Option<u64>, secret: &mut Secret) {
    if core.is_directory() {
        names(fork, secret);
    } else if core.is_symlink() {
        let end = size.map_or(fork.len(), |size| fork.len().min(size as usize));
        let (target, rest) = fork.split_at_mut(end);
        secret.path(target);
        secret.bytes(rest);
    } else {
        secret.bytes(fork);
    }
}

/// Strips a fork of extents, or the root of their tree.
pub fn mapped(fork: &mut [u8], format: Format, count: u64, secret: &Secret) {
    for unused in unused(fork, format, count) {
        secret.bytes(&mut fork[unused]);
    }
}

fn names(fork: &mut [u8], secret: &mut Secret) {
    let mut done = directory::short_header_bytes(fork).unwrap_or(0);
    let names = directory::short_form(fork);
    let names = names.map(|entry| (entry.name_at..entry.name_at + entry.name.len(), entry.end));
    for (name, end) in names.collect::<Vec<_>>() {
        secret.name(&mut fork[name]);
        done = end;
    }
    secret.bytes(&mut fork[done..]);
}

/// Strips short attributes and keeps their names.
pub fn attributes(fork: &mut [u8], secret: &Secret) {
    let (header, attributes) = xattr::short_form(fork);
    let kept = attributes.map(|attribute| attribute.at..attribute.value.start);
    let kept: Vec<_> = std::iter::once(0..header).chain(kept).collect();
    secret.all_but(fork, kept);
}
