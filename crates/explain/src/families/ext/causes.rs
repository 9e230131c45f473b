//! Causes of an inode's write, from the fields that changed.

use super::inode::{BLOCK_AT, BLOCK_END, Inode};
use crate::bytes::part;
use crate::{Cause, Causes};

/// Returns the causes of an inode's write, from its differences from the previous version. The set
/// is empty if nothing changed.
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
    let extra = new.fields_end();
    let content = match (new.is_inline(), new.is_directory()) {
        (true, true) => Cause::DirectoryEntries,
        (true, false) => Cause::Data,
        _ => Cause::SizeOrExtents,
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
        (4, 8, Cause::SizeOrExtents),        // size
        (0x18, 0x1C, Cause::LinksOrMode),    // gid, links
        (0x1C, 0x20, Cause::SizeOrExtents),  // blocks
        (0x20, 0x24, Cause::LinksOrMode),    // flags
        (BLOCK_AT, BLOCK_END, content),      // i_block
        (0x68, 0x6C, Cause::LinksOrMode),    // xattr block
        (0x6C, 0x70, Cause::SizeOrExtents),  // size, high
        (0x74, 0x76, Cause::SizeOrExtents),  // blocks, high
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
            (&[8, 0x10, 4], Cause::SizeOrExtents),
            (&[0x28], Cause::SizeOrExtents),
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
        let both = Causes::one(Cause::SizeOrExtents).with(Cause::LinksOrMode);
        assert_eq!(of(|new| (new[4], new[0x1A]) = (1, 2)), both);
    }
}
