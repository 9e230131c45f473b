//! Versions of an inode, and the changes between two of them.

use super::inode::Core;
use crate::bytes::fingerprint;
use crate::{Cause, Causes};

/// One version of an inode: its core, and fingerprints of its forks (`None` if not seen).
#[derive(Debug, Clone, Copy)]
pub struct Version {
    /// Fields of the inode core.
    pub core: Core,
    /// Fingerprint of the data fork.
    pub data: Option<u32>,
    /// Fingerprint of the attribute fork.
    pub xattr: Option<u32>,
}

impl Version {
    /// Reads the version in a slot of an inode block.
    pub fn on_disk(slot: &[u8]) -> Option<Version> {
        let core = Core::on_disk(slot)?;
        let (data, xattr) = core.forks(slot);
        Some(Version {
            core,
            data: Some(fingerprint([data])),
            xattr: Some(fingerprint([xattr])),
        })
    }

    /// Returns the causes of the change from `before` to this version. Times change with every
    /// operation, so they count only if nothing else changed, and the access time only if no other
    /// time did.
    pub fn causes(&self, before: Option<&Version>) -> Causes {
        let Some(before) = before else {
            return Causes::one(match self.core.mode {
                0 => Cause::Allocation,
                _ => Cause::NewInode,
            });
        };
        let (new, old) = (&self.core, &before.core);
        if new.mode == 0 || new.links == 0 {
            let gone = old.mode == 0 || old.links == 0;
            let same = (new.mode, new.size, new.blocks) == (old.mode, old.size, old.blocks);
            return Causes::one(if gone && same {
                Cause::Unchanged
            } else {
                Cause::InodeRemoved
            });
        }
        if old.mode == 0 || new.generation != old.generation {
            return Causes::one(Cause::NewInode);
        }
        let differs = |a: Option<u32>, b: Option<u32>| a.is_some() && a != b;
        let mut causes = Causes::NONE;
        let map = |core: &Core| (core.size, core.blocks, core.data_extents, core.data_format);
        if map(new) != map(old) || differs(self.data, before.data) {
            causes = causes.with(match new.is_directory() {
                true => Cause::DirectoryEntries,
                false => Cause::SizeOrExtents,
            });
        }
        let kept = |core: &Core| (core.mode, core.links, core.owner);
        if kept(new) != kept(old) || differs(self.xattr, before.xattr) {
            causes = causes.with(Cause::LinksOrMode);
        }
        if !causes.is_empty() {
            return causes;
        }
        // The kernel also counts an access as a change once the change counter has been queried
        // (fs/xfs/libxfs/xfs_trans_inode.c).
        Causes::one(if new.times != old.times {
            Cause::Times
        } else if new.atime != old.atime {
            Cause::Atime
        } else if new.changes != old.changes {
            Cause::Times
        } else {
            Cause::Unchanged
        })
    }

    /// Returns whether the forks equal those of `before`, as far as they are known.
    pub fn has_forks_of(&self, before: &Version) -> bool {
        let shape = |core: &Core| {
            let formats = (core.data_format, core.xattr_format);
            let counts = (core.data_extents, core.xattr_extents);
            (formats, counts, core.mode, core.generation, core.realtime)
        };
        let same = |new: Option<u32>, old: Option<u32>| new.is_none() || new == old;
        shape(&self.core) == shape(&before.core)
            && same(self.data, before.data)
            && same(self.xattr, before.xattr)
    }

    /// Returns this version with unknown forks taken from `before`.
    pub fn over(self, before: Option<&Version>) -> Version {
        let before = before.filter(|b| b.core.generation == self.core.generation);
        Version {
            data: self.data.or(before.and_then(|b| b.data)),
            xattr: self.xattr.or(before.and_then(|b| b.xattr)),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a slot with a regular file.
    fn slot() -> Vec<u8> {
        let mut slot = vec![0; 512];
        slot[..2].copy_from_slice(b"IN");
        slot[2..4].copy_from_slice(&0o100_644_u16.to_be_bytes());
        slot[4] = 3;
        slot[5] = 2;
        slot[19] = 1;
        slot
    }

    fn causes(change: impl Fn(&mut [u8])) -> String {
        let old = Version::on_disk(&slot()).unwrap();
        let mut new = slot();
        change(&mut new);
        Version::on_disk(&new)
            .unwrap()
            .causes(Some(&old))
            .to_string()
    }

    #[test]
    fn the_strongest_change_is_the_cause() {
        assert_eq!(causes(|_| {}), "unchanged");
        assert_eq!(causes(|s| s[39] = 1), "atime");
        assert_eq!(causes(|s| (s[39], s[111]) = (1, 1)), "atime");
        assert_eq!(causes(|s| s[111] = 1), "times");
        assert_eq!(causes(|s| (s[39], s[47]) = (1, 1)), "times");
        assert_eq!(causes(|s| (s[47], s[63]) = (1, 1)), "size_or_extents");
        assert_eq!(causes(|s| s[200] = 1), "size_or_extents");
        assert_eq!(
            causes(|s| (s[63], s[15]) = (1, 1)),
            "size_or_extents+links_or_mode"
        );
        assert_eq!(causes(|s| s[19] = 0), "inode_removed");
        assert_eq!(causes(|s| s[95] = 1), "new_inode");
    }

    #[test]
    fn checksum_and_sequence_number_are_no_change() {
        assert_eq!(causes(|s| (s[100], s[119]) = (1, 1)), "unchanged");
    }
}
